"""A small convolutional network on handwritten digits, over 8 agents that each see only a few of the digits.

    python examples/digits_cnn.py --quick                   # ten seconds: one seed, 30 iterations
    python examples/digits_cnn.py                           # a minute or two: all agents in this process, stacked
    torchrun --nproc-per-node 8 examples/digits_cnn.py      # one agent per process: the same curves

Di-DGD against PerronD3GD on a directed graph, with the same data, initial model, step size and mini-batches. Prints the
final metrics of each run, over three seeds (of graph, data split, initial model, mini-batches), and plots the curves.
Under torchrun, rank 0 then repeats the first seed in one process and prints how much the two differ. Needs
pip install 'd3gd[torch,data]'.
"""

import argparse
from itertools import product
from pathlib import Path

import matplotlib as mpl
import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import d3gd

AGENTS, ALPHA, STEP_SIZE, BATCH = 8, 0.1, 0.1, 32
METHODS = {"Di-DGD": d3gd.DiDGD(step_size=STEP_SIZE), "PerronD3GD": d3gd.PerronD3GD(step_size=STEP_SIZE)}
COLORS = {"Di-DGD": "tab:gray", "PerronD3GD": "tab:blue"}
METRICS = ["accuracy", "accuracy_worst", "disagreement", "bytes"]


def network(seed: int) -> nn.Module:
    """1,898 parameters, in double precision, so that stacked and single networks differ by its rounding only."""
    torch.manual_seed(seed)
    return nn.Sequential(
        *(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(64, 10)),
    ).double()


def problem(seed: int, agents: "list[int] | None" = None) -> d3gd.problems.Problem:
    """The networks and data of some agents: 179 images each, with classes drawn from a Dirichlet distribution."""
    X, y = d3gd.data.digits(constant=False)
    train, test = d3gd.data.hold_out(X.reshape(-1, 1, 8, 8), y, fraction=0.2, seed=seed)
    parts = d3gd.data.split_by_label(*train, agents=AGENTS, alpha=ALPHA, seed=seed)
    here = list(range(AGENTS) if agents is None else agents)
    return d3gd.problems.torch_module(
        network(seed),
        [parts[agent] for agent in here],
        loss=cross_entropy,
        batch=BATCH,
        seed=seed,
        test=test,
        agent_ids=here,
    )


def run(method: str, seed: int, iterations: int, transport: d3gd.transports.Transport | None = None) -> d3gd.Result:
    """Train once: stacked, or on the ranks of a transport, each with its own agents only."""
    return d3gd.run(
        METHODS[method],
        d3gd.graphs.erdos_renyi(AGENTS, 0.3, seed=seed),
        problem(seed) if transport is None else lambda agents: problem(seed, agents),
        iterations=iterations,
        every=10,
        metrics=METRICS,
        transport=transport,
    )


def row(name: str, seed: int, result: d3gd.Result) -> str:
    """Format the final metrics of a run, under the header of `main`."""
    last = {metric: values[-1] for metric, values in result.metrics.items()}
    return (
        f"{name:12s} {seed:4d} {last['accuracy']:9.3f} {last['accuracy_worst']:12.3f} "
        f"{last['disagreement']:13.2e} {last['bytes'] / 1e6:8.1f}"
    )


def draw(results: dict[str, list[d3gd.Result]], path: Path) -> None:
    """Plot every seed thin and their median thick."""
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for name, runs in results.items():
        for axis, metric in zip(axes, ("accuracy", "disagreement"), strict=True):
            curves = np.array([result.metrics[metric] for result in runs])
            # All agents start with the same model: zero disagreement has no place on a logarithmic axis.
            first = 1 if metric == "disagreement" else 0
            k = runs[0].iterations[first:]
            axis.plot(k, curves[:, first:].T, color=COLORS[name], linewidth=0.7, alpha=0.5)
            axis.plot(k, np.median(curves, axis=0)[first:], color=COLORS[name], linewidth=2, label=name)
    axes[0].set(xlabel="iteration", ylabel="test accuracy, mean over agents", ylim=(0, 1))
    axes[1].set(xlabel="iteration", ylabel="disagreement", yscale="log")
    axes[0].legend(frameon=False, loc="lower right")
    figure.suptitle(f"CNN on digits, {AGENTS} agents, directed graph, Dirichlet({ALPHA}) label skew", fontsize=11)
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def main() -> None:
    """Train, print and plot."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--quick", action="store_true", help="one seed and 30 iterations instead of 3 and 300")
    arguments.add_argument("--out", type=Path, default=Path("digits_cnn.png"), help="the figure to write")
    given = arguments.parse_args()
    seeds, iterations = (1, 30) if given.quick else (3, 300)
    torch.set_num_threads(1)  # networks this small are slower on several
    with d3gd.transports.connect() as transport:
        ranks, first = transport if transport.ranks > 1 else None, transport.rank == 0
        if first:
            print("method       seed  accuracy  worst agent  disagreement  MB sent", flush=True)
        results: dict[str, list[d3gd.Result]] = {name: [] for name in METHODS}
        for name, seed in product(METHODS, range(seeds)):
            results[name].append(run(name, seed, iterations, ranks))  # on a terminal, with a progress bar
            if first:
                print(row(name, seed, results[name][-1]), flush=True)
        if not first:
            return
        draw(results, given.out)
        print(f"wrote {given.out}")
        for name in METHODS if ranks else ():
            there, here = results[name][0], run(name, 0, iterations)
            curve = np.abs(there.metrics["accuracy"] - here.metrics["accuracy"]).max()
            models = np.abs(there.x - here.x).max() / np.abs(here.x).max()
            print(f"{name}: difference from one process: accuracy curve {curve:.1e}, models {models:.1e}")


if __name__ == "__main__":
    main()
