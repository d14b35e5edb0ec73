"""Common parts of topology learning."""

from typing import NamedTuple

from d3gd.arrays import CSR
from d3gd.digraph import Digraph


class Topology(NamedTuple):
    """Chosen links and their weights, for ``d3gd.run(method, graph, problem, weights=weights)``.

    Attributes:
        graph: The network.
        weights: Row-stochastic, on the graph's structure.
    """

    graph: Digraph
    weights: CSR
