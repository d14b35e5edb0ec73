"""The steady deviation of agents under constant gradients, and the weights that minimize it.

The formulas are those of :mod:`d3gd.steady.state`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from threadpoolctl import threadpool_limits

from d3gd.arrays import CSR, Floats
from d3gd.digraph import Digraph, require_graph
from d3gd.errors import D3GDError
from d3gd.spectrum import perron
from d3gd.steady.planner import Planner
from d3gd.steady.state import SteadyState, mixing
from d3gd.stochastic import as_weights
from d3gd.validation import constant, one_of, rows_per_agent, within, without_overflow
from d3gd.weights import check, metropolis, uniform

Combine: TypeAlias = Literal["before", "after"]

DENSE_UP_TO = 2000  # agents; the systems here take n x n arrays and O(n^3) operations

_ROUNDING = 1e-26  # relative to the squared gradients: below, a disagreement is rounding
ONE_THREAD = 300  # agents: up to so many, threads of BLAS cost more than they gain
_RANGE = 6.0  # range of a weight's logarithm: weights stay above about 1e-6, so that the graph stays connected


@without_overflow
def steady_deviation(A: CSR | Floats, G: Floats, step_size: float, combine: Combine = "before") -> Floats:
    r"""Return the steady deviations from the weighted mean :math:`\sum_i \pi_i x_i` under constant gradients.

    .. math::
        D = -\frac{\gamma}{n} (I - A + 1 \pi^T)^{-1} (\Pi^{-1} G - 1 1^T G), \qquad \pi^T D = 0

    for :math:`x^+ = A x - \frac{\gamma}{n} \Pi^{-1} g` (combine before), and A times that for
    :math:`x^+ = A (x - \frac{\gamma}{n} \Pi^{-1} g)` (combine after, also called adapt-then-combine).

    Args:
        A: Row-stochastic weights that connect all agents; up to 2,000 agents.
        G: The gradients, shape (n, d).
        step_size: :math:`\gamma`.
        combine: Whether agents combine models before or after they step.

    Returns:
        The deviations, shape (n, d).

    Example:
        >>> A = [[0.5, 0.5], [0.5, 0.5]]
        >>> steady_deviation(A, np.array([[1.0], [-1.0]]), step_size=0.1)
        array([[-0.1],
               [ 0.1]])
        >>> steady_deviation(A, np.array([[1.0], [-1.0]]), step_size=0.1, combine="after").round(12) + 0.0
        array([[0.],
               [0.]])
    """
    _, steady = _settled(A, G, step_size, combine)
    return steady.D_c - steady.pi @ steady.D_c


@without_overflow
def steady_disagreement(A: CSR | Floats, G: Floats, step_size: float, combine: Combine = "before") -> float:
    r"""Return the steady disagreement under constant gradients, :math:`\frac2n \|D_c\|_F^2`.

    Args:
        A: Row-stochastic weights that connect all agents; up to 2,000 agents.
        G: The gradients, shape (n, d).
        step_size: :math:`\gamma`.
        combine: Whether agents combine models before or after they step.

    Returns:
        The limit of the metric ``disagreement``.

    Example:
        >>> round(steady_disagreement([[0.5, 0.5], [0.5, 0.5]], np.array([[1.0], [-1.0]]), step_size=0.1), 12)
        0.02
    """
    _, steady = _settled(A, G, step_size, combine)
    return float(2 / len(G) * np.sum(steady.D_c**2))


@without_overflow
def steady_gradient(A: CSR | Floats, G: Floats, step_size: float, combine: Combine = "before") -> Floats:
    r"""Return the exact derivative of :func:`steady_disagreement` along every edge, in closed form.

    .. math::
        \frac{n}{4} h_{ij} = \langle \lambda_i, (Z U)_j \rangle + \pi_i (Z s)_j + \text{const}_i,

    the derivative of :math:`\frac12 \|D_c\|_F^2`, with the symbols of :mod:`d3gd.steady.state`.

    Args:
        A: Row-stochastic weights that connect all agents; up to 2,000 agents.
        G: The gradients, shape (n, d).
        step_size: :math:`\gamma`.
        combine: Whether agents combine models before or after they step.

    Returns:
        One number per stored entry of A in CSR order. Rows keep their sum, so a row's derivatives matter up to a
        constant; it is chosen so that :math:`\sum_j A_{ij} h_{ij} = 0`, which makes h the derivative under
        renormalization of the row.
    """
    weights, steady = _settled(A, G, step_size, combine)
    h = steady.derivative(4 / len(G))
    h -= np.sum(weights.toarray() * h, axis=1, keepdims=True)
    rows = np.repeat(np.arange(len(G)), np.diff(weights.indptr))
    gradient: Floats = h[rows, weights.indices]
    return gradient


@dataclass(frozen=True, eq=False)
class OptimalWeights:
    """The weights with the smallest steady disagreement under given gradients.

    Attributes:
        weights: The weights on the graph's structure, CSR; all positive.
        value: Their steady disagreement.
        metropolis: The steady disagreement of Metropolis weights, for comparison.
    """

    weights: CSR
    value: float
    metropolis: float

    def share(self, value: float) -> float:
        r"""Return the share of the possible gain over Metropolis weights that ``value`` achieves, in logarithms.

        1 is the optimum, 0 no gain, negative a loss:
        :math:`\log(\text{metropolis} / \text{value}) / \log(\text{metropolis} / \text{optimum})`.
        """
        if not 0 < self.value < self.metropolis:
            raise D3GDError(
                f"there is no gain to share: Metropolis weights give {self.metropolis:g} and the best {self.value:g}; "
                f"compare the values themselves"
            )
        return math.log(self.metropolis / value) / math.log(self.metropolis / self.value)


def optimal_weights(
    graph: Digraph,
    G: Floats,
    step_size: float = 1.0,
    combine: Combine = "before",
    start: CSR | Floats | None = None,
    least: float = 0.0,
) -> OptimalWeights:
    r"""Return the weights on a graph whose :func:`steady_disagreement` is smallest: the oracle for learned weights.

    The logarithm of the disagreement is minimized over :math:`A_{ij} \propto e^{\theta_{ij}}` by L-BFGS with the exact
    derivative, from each start in turn, and the best result is kept. The problem is not convex: the result is a local
    minimum. On three agents an exhaustive search finds nothing better. On random graphs of 20 agents, six random starts
    found nothing better if agents combine before the step, and values up to 11 % lower if after.

    If agents combine before they step, the best weights are balanced by themselves (:math:`n \min_i \pi_i` between 0.6
    and 0.9). If they combine after, constant gradients leave a loophole: an agent that has little weight on itself and
    little influence may take huge steps :math:`\gamma / (n \pi_i)` at no cost. Such weights are a lower bound on the
    disagreement; with changing gradients they should not be used in a run. The objective also ignores the rate of
    convergence: on a directed ring the best weights have almost no self-weights, and convergence is extremely slow.

    Args:
        graph: A strongly connected graph of up to 2,000 agents.
        G: The gradients, shape (n, d).
        step_size: :math:`\gamma`. It scales the values by its square and does not change the best weights.
        combine: Whether agents combine models before or after they step.
        start: Initial weights in addition to Metropolis and uniform ones.
        least: Penalize weights under which some :math:`n \pi_i` is below this. Combining after the step, the optimum
            otherwise starves agents, which constant gradients do not penalize.

    Returns:
        The weights, all positive, with their disagreement and that of Metropolis weights. If combining after the
        step can cancel the gradients completely (on a complete graph, or in few dimensions), the value is rounding.

    Example:
        >>> from d3gd import graphs
        >>> G = np.array([[3.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
        >>> best = optimal_weights(graphs.ring(3), G)
        >>> best.value < best.metropolis
        True
    """
    require_graph(graph)
    graph.require_strongly_connected()
    G, step_size = _checked(graph.n, G, step_size, combine)
    within("least", least, 0, 1)
    least = float(least)
    starts = [metropolis(graph), uniform(graph)] + ([] if start is None else [check(start, graph)])
    before = steady_disagreement(starts[0], G, step_size, combine)
    size = float(np.linalg.norm(G))
    if size == 0 or graph.link_count == 0:
        return OptimalWeights(starts[0], before, before)
    planner = Planner(
        graph.n,
        graph.targets,
        graph.sources,
        starts[0].data,
        after=combine == "after",
        anchor=0.0,
        least=least,
        negligible=_ROUNDING,
    )
    quiet = np.zeros(graph.n)
    options = {"maxiter": 5000, "maxfun": 10000, "maxcor": 30, "ftol": 1e-13, "gtol": 1e-8}
    candidates = []
    with threadpool_limits(1 if graph.n <= ONE_THREAD else None, "blas"):
        for A in starts:
            theta = np.log(np.maximum(A.data, math.exp(-_RANGE)))
            candidates += [A.data, planner.minimise(theta, G / size, quiet, 1.0, options)]
    costs = [planner.network_cost(a, G / size, quiet, 1.0)[0] for a in candidates]
    best = graph.matrix(candidates[int(np.argmin(costs))])
    return OptimalWeights(best, steady_disagreement(best, G, step_size, combine), before)


def _settled(A: CSR | Floats, G: Floats, step_size: float, combine: Combine) -> tuple[CSR, SteadyState]:
    """Return the checked weights and their steady state; pi is accurate also for starved agents."""
    weights = as_weights(A)
    G, step_size = _checked(weights.shape[0], G, step_size, combine)
    pi = perron(weights)
    Z, _ = mixing(weights.toarray())
    return weights, SteadyState(Z, pi, G, step_size, combine == "after")


def _checked(n: int, G: Floats, step_size: float, combine: Combine) -> tuple[Floats, float]:
    """Return gradients and a step size that can be used, or raise an error."""
    if n > DENSE_UP_TO:
        raise D3GDError(
            f"the steady state of {n} agents takes arrays of {n} x {n}; it is computed up to {DENSE_UP_TO} agents: "
            f"choose a smaller graph"
        )
    one_of("combine", combine, ("before", "after"))
    return rows_per_agent("gradients", G, n), constant("step_size", step_size)
