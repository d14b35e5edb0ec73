"""The usual PyTorch training loop, with one agent per process.

    torchrun --nproc-per-node 4 examples/optimizer_loop.py --steps 20    # a few seconds
    torchrun --nproc-per-node 4 examples/optimizer_loop.py               # 200 steps; again: 200 more

Each process has its own part of the digits, its own model and its own loader; `step` exchanges models with the
neighbours. A second run, on as many processes, continues where the first one stopped. A warning says that running
statistics of batch norm stay with each process; the last lines average them before the test. Needs
pip install 'd3gd[torch,data]'.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import d3gd


def main() -> None:
    """Train for some steps, print the accuracies, and save."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--steps", type=int, default=200, help="steps to take in this run")
    arguments.add_argument("--folder", type=Path, default=Path("optimizer_loop"), help="where states are saved")
    given = arguments.parse_args()

    with d3gd.transports.connect() as transport:  # an error in one process ends all, with one message
        graph = d3gd.graphs.exponential(transport.ranks)
        network = d3gd.torch.network(graph, transport=transport)
        agent = int(network.agents[0])

        images, labels = d3gd.data.digits(constant=False)
        train, test = d3gd.data.hold_out(images.astype(np.float32), labels, fraction=0.2)
        own = d3gd.data.split_by_label(*train, agents=graph.n, alpha=0.1)[agent]

        model = nn.Sequential(nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 10))
        algorithm = d3gd.PerronD3GD(step_size=0.1)
        opt = d3gd.torch.DecentralizedOptimizer(model.parameters(), algorithm=algorithm, network=network)

        saved = given.folder / f"agent_{agent}_of_{graph.n}.pt"  # another number of processes starts anew
        if saved.exists():
            state = torch.load(saved, weights_only=True)
            model.load_state_dict(state["model"])  # for its buffers; the optimizer's state holds the parameters
            opt.load_state_dict(state["optimizer"])

        # Any loader will do. With this sampler, a resumed run equals an uninterrupted one.
        batches = d3gd.torch.KeyedBatches(
            len(own[1]), 32, agent=agent, start=opt.iteration, stop=opt.iteration + given.steps
        )
        loader = DataLoader(TensorDataset(*map(torch.tensor, own)), batch_sampler=batches)
        for inputs, target in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(model(inputs), target).backward()
            opt.step()

        given.folder.mkdir(parents=True, exist_ok=True)
        torch.save({"model": model.state_dict(), "optimizer": opt.state_dict()}, saved)

        for _ in range(graph.diameter()):
            opt.mix_buffers(model)  # average the running statistics of batch norm with the neighbours'
        model.eval()
        right = (model(torch.tensor(test[0])).argmax(dim=1) == torch.tensor(test[1])).double().mean().item()
        accuracies = transport.each(np.array(right))
        if transport.rank == 0:
            shown = ", ".join(f"{value:.3f}" for value in accuracies)
            print(f"after {opt.iteration} steps, each agent's test accuracy: {shown}")


if __name__ == "__main__":
    main()
