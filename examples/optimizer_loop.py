"""The usual PyTorch training script, with one agent per process.

    torchrun --nproc-per-node 4 examples/optimizer_loop.py --epochs 1   # a few seconds
    torchrun --nproc-per-node 4 examples/optimizer_loop.py              # goes on from there, up to 20 epochs

Every process has a part of the digits, few classes of them, and its own loader; `step` exchanges models with the
neighbours. Checkpoints are those of a number of processes: another number starts anew. docs/tutorial/pytorch.md makes
this script from one for a single process. Needs pip install 'd3gd[torch,data]'.
"""

import argparse
from pathlib import Path

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

import d3gd


def main(transport: d3gd.transports.Transport) -> None:
    """Train, from a checkpoint if there is one, and print the test accuracy."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--epochs", type=int, default=20, help="epochs in all")
    arguments.add_argument("--folder", type=Path, default=Path("checkpoints"), help="where checkpoints are")
    given = arguments.parse_args()

    torch.manual_seed(0)
    images, labels = load_digits(return_X_y=True)
    images, labels = torch.tensor(images / 16, dtype=torch.float32), torch.tensor(labels)
    order = torch.randperm(len(labels))
    train, test = order[:1440], order[1440:]
    sizes = [1440 * (rank + 1) // sum(range(transport.ranks + 1)) for rank in range(transport.ranks)]
    parts = d3gd.data.split_by_label(images[train], labels[train], agents=transport.ranks, alpha=0.1, sizes=sizes)
    data = TensorDataset(*map(torch.tensor, parts[transport.rank]))
    loader = DataLoader(data, batch_size=32, shuffle=True)

    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    network = d3gd.torch.network(d3gd.graphs.exponential(transport.ranks), transport=transport)
    algorithm = d3gd.PerronD3GD(step_size=0.1, momentum=0.9)
    opt = d3gd.torch.DecentralizedOptimizer(model.parameters(), algorithm=algorithm, network=network)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(opt, gamma=0.95)

    checkpoint = given.folder / f"agent_{transport.rank}_of_{transport.ranks}.pt"
    if checkpoint.exists():
        state = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(state["model"])
        opt.load_state_dict(state["optimizer"])
        scheduler.load_state_dict(state["scheduler"])

    for _ in range(scheduler.last_epoch, given.epochs):
        with opt.join():
            for inputs, target in loader:
                opt.zero_grad()
                loss = cross_entropy(model(inputs), target)
                loss.backward()
                opt.step()
        scheduler.step()

    given.folder.mkdir(parents=True, exist_ok=True)
    states = {"model": model.state_dict(), "optimizer": opt.state_dict(), "scheduler": scheduler.state_dict()}
    torch.save(states, checkpoint)

    with torch.no_grad():
        accuracy = (model(images[test]).argmax(dim=1) == labels[test]).float().mean().item()
    print(f"agent {transport.rank}: test accuracy {accuracy:.3f}")


if __name__ == "__main__":
    with d3gd.transports.connect() as transport:
        main(transport)
