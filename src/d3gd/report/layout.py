"""Where agents are drawn: computed here, so that a page always looks the same."""

from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from d3gd.arrays import Ints

_DENSE = 0.3  # share of all possible links above which no layout untangles them and a circle is clearest
_BY_DISTANCE = 100  # agents up to which distances are fitted; its cost grows with their square


def places(n: int, sources: Ints, targets: Ints) -> list[list[float]]:
    """Return a point in the unit square for every agent: neighbours are near each other, dense networks in a circle."""
    import networkx as nx

    graph: Any = nx.Graph()
    graph.add_nodes_from(range(n))
    graph.add_edges_from((int(j), int(i)) for j, i in zip(sources, targets, strict=True) if i != j)
    circle = nx.circular_layout(graph)
    if n < 4 or graph.number_of_edges() > _DENSE * n * (n - 1) / 2:
        found = circle
    elif n <= _BY_DISTANCE and nx.is_connected(graph):
        found = nx.kamada_kawai_layout(graph, pos=circle)
    else:
        found = nx.spring_layout(graph, pos=circle, seed=0, iterations=100)
    points = np.array([found[i] for i in range(n)], dtype=np.float64).reshape(n, 2)
    low, high = points.min(axis=0), points.max(axis=0)
    span = float((high - low).max()) or 1.0
    drawn: list[list[float]] = np.round(0.5 + (points - (low + high) / 2) / span, 4).tolist()
    return drawn


def order(n: int, sources: Ints, targets: Ints) -> list[int]:
    """Return the agents in an order in which neighbours are near each other, for a matrix."""
    links = csr_array((np.ones(len(sources)), (targets, sources)), shape=(n, n))
    both = csr_array(links + links.T)
    return [int(i) for i in reverse_cuthill_mckee(both, symmetric_mode=True)]
