"""The worker of every rank, for methods with several gradients in an iteration."""

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


class Spoiled(d3gd.problems.Problem):
    """One agent's gradient is not a number at one iteration."""

    dim = 3

    def __init__(self, agents):
        self.ids, self.agents = np.asarray(agents), len(agents)

    def gradients(self, x, k=None):
        return np.where(((self.ids == 4) & (k == 17))[:, None], np.nan, x - 1.0)


def ends_badly(transport):
    """What a run with it says in the end."""
    return d3gd.run(d3gd.DiDGD(step_size=0.1), GRAPH, Spoiled, iterations=100, transport=transport).message


def runs(transport):
    """Every method, as one process or as a rank that makes its own agents' data."""
    for name, method in METHODS.items():
        made = problem() if transport is None else part
        options = {"iterations": ITERATIONS, "every": 5, "metrics": ["gradients", "bytes"]}
        yield name, d3gd.run(method, GRAPH, made, transport=transport, **options)


def main(out):
    with d3gd.transports.connect("mpi") as transport:
        found, message = dict(runs(transport)), ends_badly(transport)
        if transport.rank == 0:
            arrays = {f"{name}/x": result.x for name, result in found.items()}
            arrays |= {f"{name}/gradients": result.metrics["gradients"] for name, result in found.items()}
            np.savez(Path(out), ranks=transport.ranks, message=message, **arrays)


if __name__ == "__main__":
    main(*sys.argv[1:])
