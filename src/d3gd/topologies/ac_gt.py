"""AC-GT's pruning: links between agents with similar values carry little information and are removed."""

import math

import numpy as np

from d3gd.arrays import Array, Bools, Floats, Ints
from d3gd.digraph import Digraph, as_count, require_graph
from d3gd.random import keyed_uniform
from d3gd.rules.pruning import given_up, order, require_pruning
from d3gd.topologies.base import Topology
from d3gd.validation import WHOLE, rows_per_agent, without_overflow
from d3gd.weights import metropolis


@without_overflow
def ac_gt(graph: Digraph, values: Array, *, prune: float = 0.5, sharpness: float = math.inf, seed: int = 0) -> Topology:
    r"""Prune an undirected graph's links between agents with similar values, once.

    Agent i with :math:`d_i` neighbours prunes :math:`\lfloor \kappa d_i \rfloor` of its links, drawn sequentially
    without replacement with probabilities

    .. math::
        p_{ij} \propto \exp\!\Big( -\beta\, \frac{\|v_i - v_j\|}{\bar d} \Big), \qquad
        \bar d = \text{the mean of } \|v_i - v_j\| \text{ over all links},

    so that links to neighbours with similar values tend to be pruned first (:math:`\beta = \infty`: always the most
    similar). A link is kept if both its ends keep it, or if it is on the spanning tree of largest total distance. The
    remaining links get Metropolis weights.

    *What is from the paper and what is ours.* According to the paper's abstract, agents periodically track their
    disagreement and choose, at random, the most influential links to communicate over. The cycles of fixed length, the
    exponential probabilities, the share :math:`\kappa`, the removal by either end and the Metropolis weights are from a
    third party's account, since we could not consult the paper's text. Ours are: a single pruning before the run
    instead of one per cycle; the distances divided by their mean, so that :math:`\beta` is dimensionless; the limit
    :math:`\beta = \infty`; and the spanning tree, because a fixed graph must connect all agents.

    Args:
        graph: A connected, undirected graph.
        values: One row per agent, shape (n, r): models, gradients, or class proportions.
        prune: :math:`\kappa` in [0, 1), the share of its links that each agent prunes.
        sharpness: :math:`\beta \ge 0`; 0 prunes uniformly at random.
        seed: Key of the draws.

    Returns:
        The pruned graph, undirected and connected, and its Metropolis weights.

    Example:
        >>> from d3gd.graphs import complete
        >>> pruned, weights = ac_gt(complete(4), [[0.0], [0.1], [1.0], [1.1]], prune=0.34)
        >>> [pair for pair in pruned.edges.tolist() if pair[0] < pair[1]]  # 0 - 1 and 2 - 3 are gone
        [[0, 2], [1, 2], [0, 3], [1, 3]]

    References:
        Shah, Berahas and Bollapragada, *Adaptive consensus: a network pruning approach for decentralized optimization*,
        arXiv 2309.02626, 2023.
    """
    require_graph(graph)
    graph.require_undirected("AC-GT", "stl_fw, which chooses its own links")
    graph.require_strongly_connected()
    rows = rows_per_agent("values", values, graph.n)
    require_pruning(prune, sharpness)
    prune, sharpness = float(prune), float(sharpness)
    seed = as_count(seed, "seed", at_least=0, at_most=WHOLE)
    if graph.link_count == 0:
        return Topology(graph, metropolis(graph))
    sources, targets = graph.edges.T
    distances: Floats = np.linalg.norm(rows[sources] - rows[targets], axis=1)
    keys = targets * graph.n + sources
    reverse = np.searchsorted(keys, sources * graph.n + targets)
    draws = keyed_uniform(seed, keys, 0, 1)[:, 0]
    kept = ~given_up(targets, order(distances, float(distances.mean()), sharpness, draws), prune)
    stays = (kept & kept[reverse]) | _on_tree(graph.n, sources, targets, distances)
    pruned = Digraph.from_edges(graph.n, graph.edges[stays], graph.labels)
    return Topology(pruned, metropolis(pruned))


def _on_tree(n: int, sources: Ints, targets: Ints, distances: Floats) -> Bools:
    """Return a mask of the links of a spanning tree of largest total distance, in both directions."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import minimum_spanning_tree

    one_way = np.flatnonzero(sources < targets)
    # The tree depends only on the order of distances, and ranks are never zero, which SciPy treats as no link.
    ranks = np.empty(len(one_way))
    ranks[np.argsort(-distances[one_way], kind="stable")] = np.arange(1, len(one_way) + 1)
    tree = minimum_spanning_tree(csr_array((ranks, (sources[one_way], targets[one_way])), shape=(n, n))).tocoo()
    return np.isin(sources * n + targets, np.concatenate([tree.row * n + tree.col, tree.col * n + tree.row]))
