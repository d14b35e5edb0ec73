"""STL-FW: few links, chosen so that every neighbourhood has the class proportions of the whole data."""

import numpy as np

from d3gd.arrays import Array, Floats
from d3gd.digraph import Digraph, as_count
from d3gd.errors import GraphError, ProblemError
from d3gd.topologies.base import Topology
from d3gd.validation import patience, rows_per_agent, within, without_overflow

_SUMS = 1e-6  # tolerance of row sums of proportions
_MOST = 1e100  # of lam: the objective holds its product with n
_SETTLED = 1e-14  # relative to the objective: for smaller gains, rounding would choose the links


@without_overflow
def stl_fw(proportions: Array, budget: int, *, lam: float = 0.1) -> Topology:
    r"""Learn sparse doubly stochastic weights from class proportions: sparse topology learning by Frank-Wolfe.

    With :math:`\Pi_{ik}` the share of class k among agent i's samples, it decreases

    .. math::
        g(W) = \frac1n \Big\| W \Pi - \tfrac1n 1 1^T \Pi \Big\|_F^2
        + \frac{\lambda}{n} \Big\| W - \tfrac1n 1 1^T \Big\|_F^2,

    the neighbourhoods' bias and their variance, over all doubly stochastic matrices. From :math:`W^0 = I`, each
    iteration finds the best permutation, a linear assignment problem, and adds it by exact line search:

    .. math::
        P^l = \arg\min_P \langle \nabla g(W^l), P \rangle, \qquad W^{l+1} = (1 - s_l) W^l + s_l P^l .

    So after l iterations every agent has at most l in-neighbours and l out-neighbours, and

    .. math::
        g(W^l) \le \frac{16}{l + 2} \Big( \lambda + \frac1n \Big\| \Pi - \tfrac1n 1 1^T \Pi \Big\|_F^2 \Big).

    All permutations have the same g, so the first step is 1/2 and none is larger: :math:`W^l_{ii} \ge 2^{-l}`.
    The weights are doubly stochastic but in general not symmetric: a link need not have its reverse.

    Args:
        proportions: Shape (n, classes), each row of sum 1; ``problem.class_proportions()`` of a labelled problem.
        budget: The number of iterations, which bounds the in-degrees. Each iteration takes n x n arrays and up to
            O(n^3) operations.
        lam: :math:`\lambda \ge 0`. In theory it grows with the ratio of the gradients' noise to their heterogeneity;
            with 0, only class proportions count, and groups of agents may be disconnected.

    Returns:
        The strongly connected graph and its weights.

    Example:
        >>> graph, weights = stl_fw([[1, 0], [1, 0], [0, 1], [0, 1]], budget=2)
        >>> graph.in_degrees.max() <= 2, weights.sum(axis=0).tolist()
        (np.True_, [1.0, 1.0, 1.0, 1.0])

    References:
        Le Bars, Bellet, Tommasi, Lavoie and Kermarrec, *Refined convergence and topology learning for decentralized SGD
        with heterogeneous data*, AISTATS 2023.
    """
    shares = _checked_proportions(proportions)
    budget = as_count(budget, "budget")
    lam = _checked_lam(lam)
    centred = shares - shares.mean(axis=0)
    n = len(centred)
    patience(f"STL-FW for {n:,} agents", 20.0 * budget * n**3, "choose a smaller budget")
    W = np.eye(n)
    for _ in range(budget):
        W = _improved(W, centred, lam)
    graph = _links(W)
    if not graph.is_strongly_connected:
        raise GraphError(_how_to_connect(W, centred, lam, budget))
    return Topology(graph, graph.matrix(W[graph.targets, graph.sources]))


@without_overflow
def stl_fw_objective(weights: Array, proportions: Array, *, lam: float = 0.1) -> float:
    r"""Return :math:`g(W)`, the objective of :func:`stl_fw`; 0 for exact averaging over all agents.

    Args:
        weights: Dense or sparse, shape (n, n).
        proportions: Shape (n, classes).
        lam: :math:`\lambda`.

    Returns:
        The objective.

    Example:
        >>> round(stl_fw_objective(np.eye(2), [[1, 0], [0, 1]]), 12)
        0.55
    """
    from d3gd.stochastic import as_weights

    shares = _checked_proportions(proportions)
    lam, W = _checked_lam(lam), as_weights(weights).toarray()
    if len(W) != len(shares):
        raise ProblemError(
            f"there are proportions of {len(shares)} agents and weights of {len(W)}; give the same number"
        )
    return _objective(W, shares - shares.mean(axis=0), lam)


def _objective(W: Floats, centred: Floats, lam: float) -> float:
    # Rows of W sum to one, so W Pi - 11'Pi/n is W times Pi minus its mean.
    n = len(W)
    return float((np.sum((W @ centred) ** 2) + lam * np.sum((W - 1 / n) ** 2)) / n)


def _improved(W: Floats, centred: Floats, lam: float) -> Floats:
    """One iteration of Frank-Wolfe."""
    from scipy.optimize import linear_sum_assignment

    n = len(W)
    gradient = W @ centred @ centred.T + lam * (W - 1 / n)  # scaled by n / 2, as everything below
    rows, columns = linear_sum_assignment(gradient)
    D = -W
    D[rows, columns] += 1
    slope = float(np.vdot(gradient, D))
    curvature = float(np.sum((D @ centred) ** 2) + lam * np.sum(D**2))
    if -slope <= _SETTLED * (np.sum(centred**2) + lam * n):
        return W
    # g(P) = g(I) >= g(W), so the best step from W to P is at most 1/2, up to rounding.
    return W + min(-slope / curvature, 0.5) * D


def _links(W: Floats) -> Digraph:
    targets, sources = np.nonzero(W)
    return Digraph.from_edges(len(W), np.column_stack([sources, targets]))


def _how_to_connect(W: Floats, centred: Floats, lam: float, budget: int) -> str:
    n = len(W)
    groups = _groups(W)
    found = f"after {budget} iterations of STL-FW the agents form {groups} groups that do not hear each other"
    for more in range(budget + 1, budget + n + 1):
        W = _improved(W, centred, lam)
        if _groups(W) == 1:
            return f"{found}; a budget of {more} connects them"
    return f"{found}, and {n} more would not change that; raise lam = {lam:g}, the weight of mixing regardless of data"


def _groups(W: Floats) -> int:
    from scipy.sparse.csgraph import connected_components

    # In a doubly stochastic matrix, weak components are strong components.
    count: int = connected_components(W, connection="weak")[0]
    return count


def _checked_proportions(proportions: Array) -> Floats:
    shares = rows_per_agent("class proportions", proportions)
    if shares.min() < 0:
        agent, label = (int(place) for place in np.argwhere(shares < 0)[0])
        raise ProblemError(
            f"the class proportions hold {shares[agent, label]:g} at agent {agent}, class {label}; give shares of 0 "
            f"or more"
        )
    off = np.flatnonzero(np.abs(shares.sum(axis=1) - 1) > _SUMS)
    if off.size:
        raise ProblemError(
            f"the class proportions of agent {off[0]} sum to {shares[off[0]].sum():g} ({off.size} such agents); "
            f"divide each agent's counts by its number of samples"
        )
    return shares


def _checked_lam(lam: float) -> float:
    within("lam", lam, 0, _MOST, closed="[]")
    return float(lam)
