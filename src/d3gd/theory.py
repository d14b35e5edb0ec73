r"""The paper's analysis: constants of a network, step bounds, Lyapunov and design functions.

The steady deviation of Di-DGD and the weights that minimize it, which go beyond the paper, are defined in
:mod:`d3gd.steady.oracle` and also available here. Equations are cited by the labels of the paper's source.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from d3gd.arrays import CSR, Floats
from d3gd.errors import ProblemError
from d3gd.problems.base import Problem
from d3gd.spectrum import perron, spectral_gap
from d3gd.steady.oracle import (
    DENSE_UP_TO,
    OptimalWeights,
    optimal_weights,
    steady_deviation,
    steady_disagreement,
    steady_gradient,
)
from d3gd.stochastic import as_weights
from d3gd.validation import constant, not_negative, reals, rows_per_agent, shown, without_overflow

__all__ = [
    "Constants",
    "OptimalWeights",
    "StepBounds",
    "constants",
    "design_function",
    "design_gradient",
    "lyapunov",
    "optimal_weights",
    "steady_deviation",
    "steady_disagreement",
    "steady_gradient",
    "step_bounds",
]


@dataclass(frozen=True, eq=False)
class Constants:
    r"""The constants of a network in the paper's Theorem 2.5.

    The paper's eq. (spectral) reads :math:`\lambda_{\max}(A - 1 \pi^T) \le 1 - \rho < 1`: a bound on an eigenvalue. Its
    appendix then uses :math:`1 - \rho` as if it were the Frobenius norm of that matrix. It is not: the spectral radius
    is at most the spectral norm, which is at most the Frobenius norm, and for directed weights even the spectral
    norm may exceed 1, so that one round of mixing can *increase* disagreement. Theorem 2.5 is proved if the norm it
    uses is at most :math:`1 - \rho`; otherwise its bounds are a guide, and all three readings are given here.

    Attributes:
        n: The number of agents.
        pi: The left Perron vector, shape (n,).
        gap: :math:`\rho = 1 - |\lambda_2(A)|`.
        C_pi1: :math:`\sum_i (1 - \pi_i)^2 + (n - 1) \pi_i^2 = \|I - 1 \pi^T\|_F^2`; at least n - 1, its value for
            uniform pi.
        C_pi2: :math:`\sum_i \pi_i^{-2}`; at least :math:`n^3`, its value for uniform pi.
        spectral_radius: :math:`|\lambda_2(A)|`, the modulus of the largest eigenvalue of :math:`A - 1 \pi^T`.
        spectral_norm: :math:`\|A - 1 \pi^T\|_2`, or None above 2,000 agents.
        frobenius_norm: :math:`\|A - 1 \pi^T\|_F`, or None above 2,000 agents.
    """

    n: int
    pi: Floats
    gap: float
    C_pi1: float
    C_pi2: float
    spectral_radius: float
    spectral_norm: float | None
    frobenius_norm: float | None

    def __str__(self) -> str:
        rows = [
            ("agents n", self.n),
            ("n min pi, n max pi", f"{self.n * self.pi.min():.4g}, {self.n * self.pi.max():.4g}"),
            ("spectral gap rho", self.gap),
            ("C_pi1 (least: n - 1)", self.C_pi1),
            ("C_pi2 (least: n^3)", self.C_pi2),
            ("A - 1 pi^T: spectral radius", self.spectral_radius),
            ("A - 1 pi^T: spectral norm", self.spectral_norm),
            ("A - 1 pi^T: Frobenius norm", self.frobenius_norm),
        ]
        return _table(rows)


@dataclass(frozen=True)
class StepBounds:
    r"""The largest step sizes that Theorem 2.5 allows, as stated and as proved.

    Attributes:
        printed: As stated, :math:`n \rho / (2 L \sqrt{C_{\pi1} (C_{\pi2} + C_0)})`.
        consensus: In the proof, the same with 4 L. Its contraction by :math:`1 - \rho / 2` needs :math:`2 \sqrt2 L`.
        descent: In the proof, :math:`1 / (4 L)`.
        gradient: In the proof, :math:`\gamma^2 \le n^3 \rho^2 / (80 (C_{\pi2} + C_0 / (1 - \lambda)))`, as printed.
        gradient_repaired: The same with the factor :math:`L^2` that the proof loses on the way (the Lyapunov function's
            second term carries it): :math:`\gamma^2 \le n^3 \rho^2 / (80 L^2 (C_{\pi2} + C_0 / (1 - \lambda)))`.
    """

    printed: float
    consensus: float
    descent: float
    gradient: float
    gradient_repaired: float

    @property
    def proof(self) -> float:
        """The largest step that every condition of the proof allows, in either reading of the last."""
        return min(self.consensus, self.descent, self.gradient, self.gradient_repaired)

    def __str__(self) -> str:
        rows = [
            ("as printed: n rho / (2 L sqrt(C_pi1 (C_pi2 + C_0)))", self.printed),
            ("proof, consensus: the same with 4 L", self.consensus),
            ("proof, descent: 1 / (4 L)", self.descent),
            ("proof, gradient: sqrt(n^3 rho^2 / (80 (C_pi2 + C_0 / (1 - lambda))))", self.gradient),
            ("the same with the L^2 that the proof loses", self.gradient_repaired),
            ("the proof's smallest", self.proof),
        ]
        return _table(rows)


def constants(A: CSR | Floats) -> Constants:
    """Return the constants of Theorem 2.5 and the three readings of eq. (spectral); see :class:`Constants`.

    Args:
        A: Row-stochastic weights that connect all agents. The norms are computed up to 2,000 agents.

    Returns:
        The constants; printed, they are a small table.

    Example:
        >>> print(constants([[0.5, 0.5], [0.25, 0.75]]))
        agents n                     2
        n min pi, n max pi           0.6667, 1.333
        spectral gap rho             0.75
        C_pi1 (least: n - 1)         1.111
        C_pi2 (least: n^3)           11.25
        A - 1 pi^T: spectral radius  0.25
        A - 1 pi^T: spectral norm    0.2635
        A - 1 pi^T: Frobenius norm   0.2635
    """
    weights = as_weights(A)
    n, pi, gap = weights.shape[0], perron(weights), spectral_gap(weights)
    deviation = weights.toarray() - pi if n <= DENSE_UP_TO else None
    return Constants(
        n=n,
        pi=pi,
        gap=gap,
        C_pi1=float(np.sum((1 - pi) ** 2 + (n - 1) * pi**2)),
        C_pi2=float(np.sum(pi**-2)),
        spectral_radius=1 - gap,
        spectral_norm=None if deviation is None else float(np.linalg.norm(deviation, 2)),
        frobenius_norm=None if deviation is None else float(np.linalg.norm(deviation)),
    )


@without_overflow
def step_bounds(A: CSR | Floats, L: float, C0: float = 0.0) -> StepBounds:
    r"""Return the step bounds of Theorem 2.5, as printed and as its proof needs them; see :class:`StepBounds`.

    Args:
        A: Row-stochastic weights that connect all agents.
        L: The Lipschitz constant of every agent's gradient.
        C0: The constant :math:`C_0` of Lemma 2, which bounds the transient of :math:`1 / [y_i]_i^2`. The paper gives no
            value, and the definition in the lemma's proof,
            :math:`\sum_i 2 C \lambda^k / (Y_{\min}^2 \pi_{\min}^2)`, still carries the factor :math:`\lambda^k` that
            should have been factored out. With 0 the bounds hold once y has converged; a larger value only lowers them.

    Returns:
        The bounds. The rate :math:`\lambda` of Lemma 1, which the paper also leaves open, is set to its best
        possible value :math:`|\lambda_2(A)|`.

    Example:
        >>> from d3gd import graphs, weights
        >>> bounds = step_bounds(weights.metropolis(graphs.ring(3)), L=1.0)
        >>> round(bounds.printed / bounds.consensus, 6), bounds.descent
        (2.0, 0.25)
    """
    L = constant("L", L)
    C0 = not_negative("C0", C0)
    c = constants(A)
    consensus = c.n * c.gap / (L * math.sqrt(c.C_pi1 * (c.C_pi2 + C0))) if c.n > 1 else math.inf
    gradient = math.sqrt(c.n**3 * c.gap**2 / (80 * (c.C_pi2 + C0 / c.gap)))
    return StepBounds(
        printed=consensus / 2,
        consensus=consensus / 4,
        descent=1 / (4 * L),
        gradient=gradient,
        gradient_repaired=gradient / L,
    )


@without_overflow
def lyapunov(A: CSR | Floats, X: Floats, problem: Any, step_size: float, L: float, factor: float = 3.0) -> float:
    r"""Return the cost-to-go of the paper's analysis.

    .. math::
        L_k = F(\hat x) + \frac{3 \gamma L^2}{n \rho} \sum_i \|x_i - \hat x\|^2, \qquad \hat x = \sum_i \pi_i x_i

    Args:
        A: Row-stochastic weights that connect all agents.
        X: The models, shape (n, d).
        problem: The problem, for F.
        step_size: :math:`\gamma`.
        L: The Lipschitz constant of every agent's gradient.
        factor: 3 in the paper's text and in its design function; its proof of Theorem 2.5 uses 10/3.

    Returns:
        The value.

    Example:
        >>> import d3gd
        >>> problem = d3gd.problems.quadratic(agents=3, dim=2)
        >>> X = np.tile(problem.optimum, (3, 1))  # all agree, so that F is all there is
        >>> A = d3gd.weights.metropolis(d3gd.graphs.ring(3))
        >>> abs(lyapunov(A, X, problem, 0.1, problem.smoothness) - problem.loss(X)) < 1e-12
        True
    """
    if not isinstance(problem, Problem):
        raise ProblemError(f"the problem is {shown(problem)}; pass a d3gd.problems.Problem")
    pi = perron(A)
    X = rows_per_agent("models", X, len(pi))
    step_size, L, factor = (constant(*pair) for pair in (("step_size", step_size), ("L", L), ("factor", factor)))
    mean = pi @ X
    spread = float(np.sum((X - mean) ** 2))
    return float(problem.loss(mean[None])) + factor * step_size * L**2 / (len(X) * spectral_gap(A)) * spread


@without_overflow
def design_function(A: CSR, X: Floats, G: Floats, y: Floats, step_size: float, pi: Floats) -> float:
    r"""Return the paper's design function, eq. (design function of Jk).

    .. math::
        J_k(A) = \|(A - 1 \pi^T) X\|_F^2
            - \frac{2 \gamma}{n} \langle (A - 1 \pi^T) X, (I - 1 \pi^T) \tilde Y^{-1} G \rangle

    Args:
        A: The weights to evaluate.
        X: The models, shape (n, d).
        G: The gradients, shape (n, d).
        y: Each agent's estimate of its Perron weight, :math:`[y_i]_i`, shape (n,).
        step_size: :math:`\gamma_k`.
        pi: The Perron vector of the weights *in use*; the paper holds it fixed while A varies.

    Returns:
        The value, which is negative if the weights make diverging gradient steps cancel.
    """
    return design_value(*_design_arguments(A, X, G, y, step_size, pi))


def design_value(A: CSR, X: Floats, G: Floats, y: Floats, step_size: float, pi: Floats) -> float:
    """Return :func:`design_function` of arguments that are not checked: NaN or infinite if they are."""
    mixed, push = _design_terms(A, X, G, y, step_size, pi)
    return float(np.sum(mixed * (mixed - 2 * push)))


@without_overflow
def design_gradient(A: CSR, X: Floats, G: Floats, y: Floats, step_size: float, pi: Floats) -> Floats:
    r"""Return the derivative of :func:`design_function` along every edge.

    .. math::
        \frac{\partial J_k}{\partial A_{ij}} = 2 \langle x_j, v_i \rangle, \qquad
        V = (A - 1 \pi^T) X - \frac{\gamma}{n} (I - 1 \pi^T) \tilde Y^{-1} G

    This is eq. (grd_J) without damping (:math:`\delta = 0`); with it, :math:`\bar J_k(\bar A)` has :math:`(1 - \delta)`
    times this, in both terms, at :math:`A = (1 - \delta) \bar A + \delta A^0`.

    Args:
        A: The weights, CSR.
        X: The models, shape (n, d).
        G: The gradients, shape (n, d).
        y: Each agent's estimate of its Perron weight, shape (n,).
        step_size: :math:`\gamma_k`.
        pi: The Perron vector of the weights in use, held fixed.

    Returns:
        One number per stored entry of A, in its order.
    """
    A, X, *others = _design_arguments(A, X, G, y, step_size, pi)
    mixed, push = _design_terms(A, X, *others)
    rows = np.repeat(np.arange(len(X)), np.diff(A.indptr))
    gradient: Floats = 2 * np.einsum("ed,ed->e", (mixed - push)[rows], X[A.indices])
    return gradient


def _design_terms(A: CSR, X: Floats, G: Floats, y: Floats, step_size: float, pi: Floats) -> tuple[Floats, Floats]:
    scaled = G / y[:, None]
    return A @ X - pi @ X, step_size / len(X) * (scaled - pi @ scaled)


def _design_arguments(A: CSR, X: Floats, G: Floats, y: Floats, step_size: float, pi: Floats) -> tuple[Any, ...]:
    """Return the arguments of the design function, or raise an error that names the one that is wrong."""
    weights, gamma = as_weights(A), constant("step_size", step_size)
    n = weights.shape[0]
    X, G = rows_per_agent("models", X, n), rows_per_agent("gradients", G, n)
    y, pi = _shares("y", y, n), _shares("pi", pi, n)
    if X.shape != G.shape:
        raise ProblemError(f"the models have shape {X.shape} and the gradients {G.shape}; make them equal")
    return weights, X, G, y, gamma, pi


def _shares(name: str, values: Floats, n: int) -> Floats:
    """Return one positive number per agent, or raise an error."""
    found = reals(name, values, error=ProblemError)
    if found.shape != (n,) or not (np.isfinite(found) & (found > 0)).all():
        raise ProblemError(f"{name} has shape {found.shape}; give one positive finite number for each of {n} agents")
    return found


def _table(rows: list[tuple[str, Any]]) -> str:
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:{width}}  {_shown(value)}" for name, value in rows)


def _shown(value: Any) -> str:
    if value is None:
        return f"not computed above {DENSE_UP_TO} agents"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
