"""Ranks of one machine, through the memory that they share or, with a word, as if they were apart."""

import sys

import numpy as np

import d3gd
from d3gd.network import Network
from d3gd.transports.torch_dist import TorchDistributed

SIZES = (1, 7, 40_000, 3, 100_000)  # the memory grows between exchanges


def row(agent, turn):
    """What an agent sends in an exchange."""
    return np.random.default_rng([agent, turn]).normal(size=(1, SIZES[turn]))


def hears(transport):
    """Whether each agent hears what its only in-neighbour sends, two arrays at once."""
    n, agent = transport.ranks, transport.rank
    graph = d3gd.Digraph.from_edges(n, [(i, (i + 1) % n) for i in range(n)])
    net = Network(graph, d3gd.weights.metropolis(graph), transport=transport)
    heard = sorted([agent, (agent - 1) % n])
    found = []
    for turn in range(len(SIZES)):
        sent = row(agent, turn)
        inbox = net.exchange(x=sent, y=-sent.astype(np.float32))
        wanted = np.concatenate([row(j, turn) for j in heard])
        found += [np.array_equal(net.along(inbox.x), wanted)]
        found += [np.array_equal(net.along(inbox.y), -wanted.astype(np.float32))]
    return all(found)


def main():
    if sys.argv[1:]:
        TorchDistributed._neighbours = lambda self: set()
    with d3gd.transports.connect(timeout=30) as transport:
        shared = sorted(transport._near) == [rank for rank in range(transport.ranks) if rank != transport.rank]
        graph, problem = d3gd.graphs.erdos_renyi(5, 0.5, seed=3), d3gd.problems.quadratic(agents=5, dim=3)
        method = d3gd.PerronD3GD(step_size=0.05)
        together = d3gd.run(method, graph, problem, iterations=20, transport=transport)
        alone = d3gd.run(method, graph, problem, iterations=20)
        equal = transport.rank > 0 or np.array_equal(together.x, alone.x)
        print(f"shared {shared}, heard {hears(transport)}, equal {equal}")


if __name__ == "__main__":
    sys.exit(main())
