"""Offline refinement: weights planned once for the gradients at one point, for any method."""

import numpy as np
from threadpoolctl import threadpool_limits

from d3gd.arrays import CSR, Array, Floats
from d3gd.digraph import Digraph, require_graph
from d3gd.errors import D3GDError, ProblemError
from d3gd.problems.base import Problem
from d3gd.problems.checks import check_returned
from d3gd.steady.oracle import DENSE_UP_TO, ONE_THREAD, Combine
from d3gd.steady.planner import Planner
from d3gd.validation import one_of, reals, rows_per_agent, within, without_overflow
from d3gd.weights import check, metropolis

_DRAWS = 8  # mini-batches from which the gradients' variance is estimated
_OPTIONS = {"maxiter": 2000, "maxfun": 4000, "maxcor": 30, "ftol": 1e-11, "gtol": 1e-8}
_NO_GAIN = 1e-26  # relative to the squared gradients: smaller values are rounding


@without_overflow
def refined(
    graph: Digraph,
    data: Problem | Array,
    *,
    at: Floats | None = None,
    start: CSR | Floats | None = None,
    combine: Combine = "after",
    anchor: float = 0.05,
    least: float = 0.8,
) -> CSR:
    r"""Plan row-stochastic weights on a given graph once, for all agents, from their gradients.

    With D the steady deviations under constant gradients G, N the variance due to mini-batches and :math:`\pi` the
    Perron vector (:mod:`d3gd.steady.planner`), it minimizes

    .. math::
        \log\big( \|D_c\|_F^2 + N \big) + \sum_i \max\!\Big( \frac{\kappa}{n \pi_i} - 1,\, 0 \Big)^2

    over :math:`(1 - \delta) \bar A + \delta A^0` by L-BFGS. The predicted :math:`\|D_c\|_F^2 + N` is never larger than
    that of the start: if balance would cost more than the plan gains, the second sum is dropped, and if even that gains
    nothing, the start is returned. The step size scales the prediction and does not change the plan.

    It is one plan of :class:`d3gd.PerronD3GD`'s rule ``"planned"`` without its sketches and floods, and it does not
    follow the gradients as they change. The objective is not convex; the result is a local minimum.

    Args:
        graph: A strongly connected graph of up to 2,000 agents; links may be one-way.
        data: A problem, for its gradients on all data and the variance of its mini-batches; or the
            gradients, shape (n, r), or other vectors with similar inner products, such as class proportions.
        at: Where to evaluate a problem's gradients: a model, shape (dim,), or one per agent; by default 0.
        start: The initial weights and the anchor; Metropolis weights by default.
        combine: Whether the method combines models ``"after"`` or ``"before"`` it steps.
        anchor: :math:`\delta` in [0, 1), the fixed share of the start.
        least: :math:`\kappa` in [0, 1), the :math:`n \pi_i` below which an agent costs a penalty.

    Returns:
        The weights on the graph's structure.

    Example:
        >>> from d3gd import graphs, theory
        >>> graph, G = graphs.ring(3), np.array([[3.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
        >>> both = metropolis(graph), refined(graph, G)
        >>> before, now = (theory.steady_disagreement(A, G, 0.1, "after") for A in both)
        >>> now < before
        True

    References:
        The D3GD paper for the idea of data-dependent weights; the objective is this library's own.
    """
    require_graph(graph)
    graph.require_strongly_connected()
    if graph.n > DENSE_UP_TO:
        raise D3GDError(
            f"a plan for {graph.n} agents takes arrays of {graph.n} x {graph.n}; it is computed up to {DENSE_UP_TO} "
            f"agents: choose a smaller graph, or metropolis weights"
        )
    one_of("combine", combine, ("after", "before"))
    within("anchor", anchor, 0, 1)
    within("least", least, 0, 1)
    anchor, least = float(anchor), float(least)
    first = metropolis(graph) if start is None else check(start, graph)
    G, variance = _gradients(graph, data, at)
    size = float(np.sum(G**2) + np.sum(variance))
    if size == 0 or graph.n == 1:
        return first
    G, variance = G / np.sqrt(size), variance / size
    a0 = first.data
    theta = np.log(np.maximum(a0, 1e-6))

    def planner(least: float) -> Planner:
        after = combine == "after"
        return Planner(graph.n, graph.targets, graph.sources, a0, after, anchor, least, negligible=_NO_GAIN)

    def predicted(a: Floats) -> float:
        return planner(0.0).network_cost(a, G, variance, 1.0)[0]

    for floor in (least, 0.0):
        with threadpool_limits(1 if graph.n <= ONE_THREAD else None, "blas"):
            a = planner(floor).minimise(theta, G, variance, 1.0, _OPTIONS)
        if predicted(a) < predicted(a0):
            return check(graph.matrix(a), graph)
    return first


def _gradients(graph: Digraph, data: Problem | Array, at: Floats | None) -> tuple[Floats, Floats]:
    """Return every agent's gradient and its variance, summed over coordinates."""
    if not isinstance(data, Problem):
        if at is not None:
            raise ProblemError("at is for the gradients of a problem, but gradients were given; leave it out")
        return rows_per_agent("gradients", data, graph.n), np.zeros(graph.n)
    if data.agents != graph.n:
        raise ProblemError(f"the problem has {data.agents} agents and the graph {graph.n}; make them the same")
    point = np.zeros(data.dim) if at is None else reals("at", at, error=ProblemError)
    if point.shape not in ((data.dim,), (data.agents, data.dim)):
        raise ProblemError(
            f"at has shape {point.shape}; give one model, ({data.dim},), or one per agent, ({data.agents}, {data.dim})"
        )
    x = np.array(np.broadcast_to(point, (data.agents, data.dim)))

    def gradients(k: int | None) -> Array:
        return check_returned(data.gradients(x, k), x.shape, f"{type(data).__name__}.gradients")

    G = rows_per_agent("gradients", gradients(None).copy(), graph.n)  # the problem may reuse its buffer
    draws = [np.sum((gradients(k) - G) ** 2, axis=1) for k in range(_DRAWS)]
    return G, np.mean(draws, axis=0)
