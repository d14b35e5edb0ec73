"""Weights that mix fast at nearly equal shares, on any strongly connected graph."""

from d3gd.arrays import CSR
from d3gd.digraph import Digraph, require_graph
from d3gd.steady.fast import fast_weights
from d3gd.weights import check


def fast_mixing(graph: Digraph) -> CSR:
    r"""Plan row-stochastic weights from the graph alone: those of :class:`d3gd.PerronD3GD`, for any method.

    Doubly stochastic weights come first (:func:`d3gd.weights.balanced`). They are then changed to minimize the models'
    variance under white noise, as long as no :math:`n \pi_i` falls far below 0.8. Links may be one-way, in contrast to
    :func:`d3gd.topologies.fastest_mixing`, which finds the best symmetric weights.

    Args:
        graph: A strongly connected graph.

    Returns:
        The weights on the graph's structure.

    Example:
        >>> from d3gd import graphs, weights
        >>> graph = graphs.star(12)
        >>> gaps = [weights.spectral_gap(A) for A in (weights.metropolis(graph), fast_mixing(graph))]
        >>> gaps[1] > 3 * gaps[0]
        True
    """
    require_graph(graph)
    graph.require_strongly_connected()
    return check(graph.matrix(fast_weights(graph)), graph)
