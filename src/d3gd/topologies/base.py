"""Common parts of topologies."""

from typing import NamedTuple

import numpy as np

from d3gd.arrays import CSR, Floats, Ints
from d3gd.digraph import Digraph

MOST = 100_000  # agents, and steps of a sequence


class Topology(NamedTuple):
    """Chosen links and their weights, for ``d3gd.run(method, graph, problem, weights=weights)``.

    Attributes:
        graph: The network.
        weights: Row-stochastic, on the graph's structure.
    """

    graph: Digraph
    weights: CSR


def with_links(n: int, sources: Ints, targets: Ints, weights: Floats) -> Topology:
    """Return the topology of distinct links with weights; what is left of every row stays with the agent."""
    graph = Digraph.from_edges(n, np.stack([sources, targets], axis=1))
    kept = 1.0 - np.bincount(targets, weights, minlength=n)
    values = np.where(graph.sources == graph.targets, kept[graph.targets], 0.0)
    order = np.lexsort((sources, targets))
    values[graph.sources != graph.targets] = weights[order]
    return Topology(graph, graph.matrix(values))


def shifted(n: int, shift: int, weight: float) -> Topology:
    """Return the topology in which every agent hears the one that is some places before it."""
    targets = np.arange(n)
    return with_links(n, (targets - shift) % n, targets, np.full(n, weight))
