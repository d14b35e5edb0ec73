r"""Where Di-DGD's agents settle around their mean, and the weights that keep them closest together.

Freeze the gradients G. With :math:`\Pi = \mathrm{diag}(\pi)` and :math:`B = -\frac{\gamma}{n}(\Pi^{-1} G - 1 1^T G)`,
Di-DGD's deviations :math:`D = X - 1 \pi^T X` obey

.. math::
    D^+ = (A - 1 \pi^T) D + B \quad\text{(combine before)}, \qquad
    D^+ = (A - 1 \pi^T)(D + B) \quad\text{(combine after)}

and settle at :math:`D = M^{-1} B`, respectively :math:`D = M^{-1} A B`, with :math:`M = I - A + 1 \pi^T`. A and
:math:`M^{-1}` commute, so the second is A times the first.

All that is wanted of D here is its centred form :math:`D_c = D - \frac1n 1 1^T D`, and that is what
:math:`Z = (I - A + \frac1n 1 1^T)^{-1}` gives at once: :math:`D_c = Z B`. The same Z gives :math:`\pi = Z^T 1 / n`, the
adjoint :math:`\lambda = Z^T D_c = M^{-T} D_c` and, up to a constant, the prices :math:`t = Z s`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from d3gd.arrays import CSR, Floats, Ints
from d3gd.digraph import Digraph
from d3gd.errors import D3GDError, ProblemError, SettingsError
from d3gd.spectrum import as_weights, perron
from d3gd.steady.planner import Planner
from d3gd.validation import within
from d3gd.weights import check, metropolis, uniform

Combine: TypeAlias = Literal["before", "after"]

DENSE_UP_TO = 2000  # agents; what is solved here takes n x n arrays and n^3 work

_ROUNDING = 1e-26  # of the squared size of the gradients: below, a disagreement is nothing else
_STARVED = 1e-6  # n pi_i under which a linear solve no longer gives pi_i to enough digits
_RANGE = 6.0  # of a weight's logarithm: weights stay above about 1e-6, so that the graph stays connected


def steady_deviation(A: CSR | Floats, G: Floats, step_size: float, combine: Combine = "before") -> Floats:
    r"""Return how far each agent settles from the weighted mean :math:`\sum_i \pi_i x_i` under constant gradients.

    .. math::
        D = -\frac{\gamma}{n} (I - A + 1 \pi^T)^{-1} (\Pi^{-1} G - 1 1^T G), \qquad \pi^T D = 0

    for :math:`x^+ = A x - \frac{\gamma}{n} \Pi^{-1} g` (combine before), and A times that for
    :math:`x^+ = A (x - \frac{\gamma}{n} \Pi^{-1} g)` (combine after, also called adapt-then-combine).

    Args:
        A: Row-stochastic weights that connect everyone; up to 2,000 agents.
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
    steady = _Steady.of(A, G, step_size, combine)
    return steady.centred - steady.pi @ steady.centred


def steady_disagreement(A: CSR | Floats, G: Floats, step_size: float, combine: Combine = "before") -> float:
    r"""Return the disagreement at which agents settle under constant gradients, :math:`\frac2n \|D_c\|_F^2`.

    Args:
        A: Row-stochastic weights that connect everyone; up to 2,000 agents.
        G: The gradients, shape (n, d).
        step_size: :math:`\gamma`.
        combine: Whether agents combine models before or after they step.

    Returns:
        What the metric ``disagreement`` tends to.

    Example:
        >>> round(steady_disagreement([[0.5, 0.5], [0.5, 0.5]], np.array([[1.0], [-1.0]]), step_size=0.1), 12)
        0.02
    """
    return _Steady.of(A, G, step_size, combine).disagreement


def steady_gradient(A: CSR | Floats, G: Floats, step_size: float, combine: Combine = "before") -> Floats:
    r"""Return the exact derivative of :func:`steady_disagreement` along every edge, in closed form.

    .. math::
        \frac{n}{2} h_{ij} = 2 \langle \lambda_i, m_j \rangle + \pi_i t_j + \text{const}_i, \qquad
        t = Z s, \quad s_j = \frac{2 \gamma}{n \pi_j^2} \langle l_j, g_j \rangle

    with m = D and :math:`l = \lambda` where agents combine before they step, and :math:`m = D + B`, the messages, and
    :math:`l = A^T \lambda`, what j's listeners make of it, where they combine after. The first term is how j's
    deviation cancels i's, the second what more weight on j does to the Perron weights.

    Args:
        A: Row-stochastic weights that connect everyone; up to 2,000 agents.
        G: The gradients, shape (n, d).
        step_size: :math:`\gamma`.
        combine: Whether agents combine models before or after they step.

    Returns:
        One number per stored entry of A in CSR order. Rows keep their sum, so a row's derivatives matter up to a
        constant; it is chosen so that :math:`\sum_j A_{ij} h_{ij} = 0`, which makes h the derivative under
        renormalisation of the row.
    """
    weights = as_weights(A)
    rows = np.repeat(np.arange(weights.shape[0]), np.diff(weights.indptr))
    return _Steady.of(A, G, step_size, combine).gradient(rows, weights.indices)


@dataclass(frozen=True, eq=False)
class OptimalWeights:
    """The weights that keep agents closest together under given gradients.

    Attributes:
        weights: The weights on the graph's structure, CSR; all positive.
        value: Their steady disagreement.
        metropolis: The steady disagreement of Metropolis weights, for comparison.
    """

    weights: CSR
    value: float
    metropolis: float

    def share(self, value: float) -> float:
        r"""Return the share of the possible gain over Metropolis weights that ``value`` collects, in logarithms.

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

    The logarithm of the disagreement is minimised over :math:`A_{ij} \propto e^{\theta_{ij}}` by L-BFGS with the exact
    derivative, from each start in turn, and the best result is kept. The problem is not convex: what is returned is
    a local minimum. On three agents an exhaustive search finds nothing better. On random graphs of 20 agents, six
    random starts found nothing better where agents combine before, and values up to 11 % lower where after.

    Where agents combine before they step, the best weights are balanced of their own accord (:math:`n \min_i \pi_i`
    between 0.6 and 0.9). Where they combine after, constant gradients leave a loophole: an agent that hardly hears
    itself and is hardly heard may step by a huge :math:`\gamma / (n \pi_i)` unpunished. Those weights tell how low the
    disagreement could be; with gradients that do change they are not weights to run with. Nor does this objective ask
    how soon agents settle: on a one-way ring the best weights pass all on, and settling takes almost for ever.

    Args:
        graph: A strongly connected graph of up to 2,000 agents.
        G: The gradients, shape (n, d).
        step_size: :math:`\gamma`. It scales the values by its square and leaves the best weights as they are.
        combine: Whether agents combine models before or after they step.
        start: Weights to start from as well as from Metropolis and from uniform ones.
        least: Penalise weights under which some :math:`n \pi_i` is below this. Combining after the step, the optimum
            otherwise starves agents, which frozen gradients do not punish: a floor, not weights to run with.

    Returns:
        The weights, all positive, with their disagreement and that of Metropolis weights. Where combining after the
        step can cancel the gradients altogether (on a complete graph, or with few dimensions), the value is rounding.

    Example:
        >>> from d3gd import graphs
        >>> G = np.array([[3.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
        >>> best = optimal_weights(graphs.ring(3), G)
        >>> best.value < best.metropolis
        True
    """
    graph.require_strongly_connected()
    _require(graph.n, G, combine)
    within("least", least, 0, 1)
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
    for A in starts:
        theta = np.log(np.maximum(A.data, math.exp(-_RANGE)))
        candidates += [A.data, planner.minimise(theta, G / size, quiet, 1.0, options)]
    costs = [planner.network_cost(a, G / size, quiet, 1.0)[0] for a in candidates]
    best = graph.matrix(candidates[int(np.argmin(costs))])
    return OptimalWeights(best, steady_disagreement(best, G, step_size, combine), before)


class _Steady:
    """Where constant gradients lead; the attributes carry the names of the module's formulas."""

    def __init__(self, A: Floats, G: Floats, step_size: float, combine: Combine, pi: Floats | None = None) -> None:
        n = len(A)
        self.A, self.G, self.combine, self.rate = A, G, combine, step_size / n
        self.Z: Floats = np.asarray(np.linalg.inv(np.eye(n) - A + 1 / n), dtype=np.float64)
        if pi is None:
            pi = self.Z.mean(axis=0)
            pi = pi / pi.sum() if n * pi.min() > _STARVED else perron(A)
        self.pi = pi
        self.B: Floats = -self.rate * (G / self.pi[:, None] - G.sum(axis=0))
        D = self.Z @ self.B
        if combine == "after":
            D = A @ D
        self.centred: Floats = D - D.mean(axis=0)

    @classmethod
    def of(cls, A: CSR | Floats, G: Floats, step_size: float, combine: Combine) -> _Steady:
        weights = as_weights(A)
        _require(weights.shape[0], G, combine)
        return cls(weights.toarray(), G, step_size, combine, perron(weights))

    @property
    def disagreement(self) -> float:
        return float(2 / len(self.A) * np.sum(self.centred**2))

    def gradient(self, rows: Ints, columns: Ints) -> Floats:
        adjoint = self.Z.T @ self.centred
        if self.combine == "before":
            messages, heard = self.centred, adjoint
        else:
            messages, heard = self.centred + self.B, self.A.T @ adjoint
        s = 2 * self.rate * np.einsum("id,id->i", heard, self.G) / self.pi**2
        h = 2 * adjoint @ messages.T + np.outer(self.pi, self.Z @ s)
        h -= np.sum(self.A * h, axis=1, keepdims=True)
        gradient: Floats = 2 / len(self.A) * h[rows, columns]
        return gradient


def _require(n: int, G: Floats, combine: Combine) -> None:
    if n > DENSE_UP_TO:
        raise D3GDError(
            f"the steady state of {n} agents takes arrays of {n} x {n}; it is computed up to {DENSE_UP_TO} agents: "
            f"take a smaller graph"
        )
    if combine not in ("before", "after"):
        raise SettingsError(f"combine = {combine!r}: agents combine 'before' or 'after' they step; choose one")
    if G.ndim != 2 or G.shape[0] != n:
        raise ProblemError(f"the gradients have shape {G.shape}; give one row for each of the {n} agents")
    if not np.isfinite(G).all():
        raise ProblemError("the gradients hold NaN or infinite numbers; give finite ones")
