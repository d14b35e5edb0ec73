"""What every rank runs of methods that ask for several gradients in an iteration."""

import sys
from pathlib import Path

import numpy as np

import d3gd
from tests.helpers.own_methods import METHODS

GRAPH = d3gd.graphs.erdos_renyi(5, 0.5, seed=3)
ITERATIONS = 23


def part(agents):
    """Mini-batches of agents' own data."""
    draw = np.random.default_rng(0)
    data = [(draw.normal(size=(9 + i, 4)), draw.integers(0, 3, 9 + i)) for i in range(GRAPH.n)]
    chosen = [data[agent] for agent in agents]
    return d3gd.problems.softmax_regression(chosen, batch=3, seed=1, classes=3, agent_ids=list(agents))


def problem():
    return part(range(GRAPH.n))


def runs(transport):
    """Every method, as one process or as a rank that makes its own agents' data."""
    for name, method in METHODS.items():
        made = problem() if transport is None else part
        options = {"iterations": ITERATIONS, "every": 5, "metrics": ["gradients", "bytes"]}
        yield name, d3gd.run(method, GRAPH, made, transport=transport, **options)


def main(out):
    with d3gd.transports.connect("mpi") as transport:
        found = dict(runs(transport))
        if transport.rank == 0:
            arrays = {f"{name}/x": result.x for name, result in found.items()}
            arrays |= {f"{name}/gradients": result.metrics["gradients"] for name, result in found.items()}
            np.savez(Path(out), ranks=transport.ranks, **arrays)


if __name__ == "__main__":
    main(*sys.argv[1:])
