"""Row-stochastic weights on a graph: ``A[i, j]`` is the weight of agent i on what agent j sends."""

from __future__ import annotations

import numpy as np

from d3gd.arrays import CSR, Floats
from d3gd.digraph import Digraph, require_graph
from d3gd.errors import GraphError, WeightsError
from d3gd.spectrum import perron, spectral_gap
from d3gd.stochastic import as_weights, require_row_sums
from d3gd.validation import is_number, shown

__all__ = ["balanced", "check", "lazy", "metropolis", "perron", "spectral_gap", "uniform"]


_SWEEPS = 2000
_BALANCED = 1e-9


def metropolis(graph: Digraph) -> CSR:
    r"""Return Metropolis weights, with d the in-degree (without the self-loop).

    .. math::
        A_{ij} = \frac{1}{1 + \max(d_i, d_j)}, \qquad A_{ii} = 1 - \sum_{j \ne i} A_{ij}

    Args:
        graph: The graph.

    Returns:
        The matrix on the graph's structure; its ``data`` are the weights in the graph's order.

    Example:
        >>> from d3gd.graphs import star
        >>> metropolis(star(3)).toarray().round(3)
        array([[0.333, 0.333, 0.333],
               [0.333, 0.667, 0.   ],
               [0.333, 0.   , 0.667]])
    """
    require_graph(graph)
    return graph.matrix(_metropolis(graph))


def uniform(graph: Digraph) -> CSR:
    """Return uniform weights: each agent averages over its in-neighbours and itself, ``A_ij = 1 / (d_i + 1)``.

    Example:
        >>> from d3gd.graphs import star
        >>> uniform(star(3)).toarray().round(3)
        array([[0.333, 0.333, 0.333],
               [0.5  , 0.5  , 0.   ],
               [0.5  , 0.   , 0.5  ]])
    """
    require_graph(graph)
    return graph.matrix(1 / (graph.in_degrees + 1.0)[graph.targets])


def balanced(graph: Digraph) -> CSR:
    r"""Return weights that are doubly stochastic, or nearly so, on a directed graph, by Sinkhorn's iteration.

    Starting from equal entries, columns and rows are divided by their sums in turn. On a strongly connected graph with
    self-loops every edge is on a cycle, so the iteration converges to the doubly stochastic matrix of largest entropy:
    all agents have the same influence, :math:`\pi_i = 1/n`, although links are one-way. It ends when every column sums
    to 1 within 1e-9, or after 2,000 sweeps; rows sum to 1 in any case.

    Args:
        graph: A strongly connected graph.

    Returns:
        The matrix on the graph's structure.

    Example:
        >>> from d3gd.graphs import Digraph
        >>> A = balanced(Digraph.from_edges(3, [(0, 1), (1, 2), (2, 0), (1, 0)])).toarray()
        >>> A.sum(axis=0).round(6), A.sum(axis=1).round(6)
        (array([1., 1., 1.]), array([1., 1., 1.]))

    References:
        Sinkhorn and Knopp, *Concerning nonnegative matrices and doubly stochastic matrices*, Pacific Journal of
        Mathematics 21, 1967.
    """
    require_graph(graph)
    graph.require_strongly_connected()
    rows, columns = graph.targets, graph.sources
    pattern = graph.matrix(np.ones(columns.size))
    transposed = pattern.T.tocsr()
    left = np.ones(graph.n)
    for _ in range(_SWEEPS):
        right = 1 / (transposed @ left)
        sums = pattern @ right
        if float(np.abs(left * sums - 1).max()) <= _BALANCED:
            break
        left = 1 / sums
    values = left[rows] * right[columns]
    values /= np.add.reduceat(values, graph.indptr[:-1])[rows]
    return graph.matrix(values)


def lazy(graph: Digraph, stay: float = 0.5) -> CSR:
    """Return lazy Metropolis weights, ``stay * I + (1 - stay) * metropolis``.

    Args:
        graph: The graph.
        stay: The additional weight of every agent on itself, in [0, 1).

    Returns:
        The matrix on the graph's structure.

    Example:
        >>> from d3gd.graphs import ring
        >>> lazy(ring(3)).toarray()
        array([[0.75, 0.  , 0.25],
               [0.25, 0.75, 0.  ],
               [0.  , 0.25, 0.75]])
    """
    if not (is_number(stay) and 0 <= stay < 1):
        raise WeightsError(f"stay = {shown(stay)}: it must be at least 0 and below 1 (1 would ignore neighbours)")
    require_graph(graph)
    stay = float(stay)
    values = (1 - stay) * _metropolis(graph)
    values[graph.self_loops] += stay
    return graph.matrix(values)


def check(matrix: CSR | Floats, graph: Digraph) -> CSR:
    """Return a user's weights on the graph's structure, or raise an error that names what is invalid.

    The weights must be finite and not negative, zero where the graph has no link, positive on the diagonal,
    sum to one in every row (to 1e-9), and the positive ones must leave the graph strongly connected.

    Args:
        matrix: n x n, dense or any SciPy sparse format.
        graph: The graph of the weights.

    Returns:
        The matrix as CSR on the graph's full structure: a link with weight zero keeps its entry.

    Example:
        >>> from d3gd.graphs import ring
        >>> check([[0.9, 0.1], [0.2, 0.8]], ring(2)).data
        array([0.9, 0.1, 0.2, 0.8])
    """
    require_graph(graph)
    weights = as_weights(matrix)
    n = graph.n
    if weights.shape != (n, n):
        raise WeightsError(
            f"the weights have shape {weights.shape} but the graph has {n} agents; give a matrix of shape ({n}, {n})"
        )
    entries = weights.tocoo()
    rows, columns = entries.row.astype(np.int64), entries.col.astype(np.int64)
    keys = graph.keys
    wanted = rows * n + columns
    places = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
    off_graph = np.flatnonzero((keys[places] != wanted) & (entries.data != 0))
    if off_graph.size:
        i, j, value = rows[off_graph[0]], columns[off_graph[0]], entries.data[off_graph[0]]
        raise WeightsError(
            f"weight A[{i}, {j}] = {value:g} but there is no link {j} -> {i}; set it to zero or add the link "
            f"to the graph ({off_graph.size} such weights)"
        )
    on_graph = keys[places] == wanted
    values = np.zeros(keys.size)
    values[places[on_graph]] = entries.data[on_graph]
    alone = np.flatnonzero(values[graph.self_loops] == 0)
    if alone.size:
        i = int(alone[0])
        raise WeightsError(
            f"{graph.name(i)} has a zero self-weight, A[{i}, {i}] = 0 ({alone.size} such agents); every agent "
            f"needs a positive weight on itself"
        )
    checked = graph.matrix(values)
    require_row_sums(checked)
    heard = values > 0
    used = Digraph.from_edges(n, np.column_stack([graph.sources[heard], graph.targets[heard]]), graph.labels)
    try:
        used.require_strongly_connected()
    except GraphError as error:
        raise WeightsError(f"counting only links with positive weight, {error}") from None
    return checked


def _metropolis(graph: Digraph) -> Floats:
    degrees = graph.in_degrees
    values: Floats = 1 / (1.0 + np.maximum(degrees[graph.targets], degrees[graph.sources]))
    values[graph.self_loops] = 0
    values[graph.self_loops] = 1 - np.add.reduceat(values, graph.indptr[:-1])
    return values
