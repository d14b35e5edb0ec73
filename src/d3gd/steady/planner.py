r"""Planning of the weights of a whole network, from a short vector per agent.

Let the gradients G be constant, with independent noise of variance :math:`\sigma_i^2`. Around their mean, Di-DGD's
models then have the steady deviation :math:`D_c` of :mod:`d3gd.steady.state` and, from the noise, the variance

.. math::
    N = \mathrm{tr}\, J P, \quad P = \sum_{k \ge 0} B^k W B^{kT}, \qquad
    B = A - 1 \pi^T, \quad W = \mathrm{diag}(c_i^2 \sigma_i^2), \quad c_i = \frac{\gamma}{n \pi_i}, \quad
    J = I - \tfrac1n 1 1^T,

(from k = 1 if agents combine after the step). A plan minimizes

.. math::
    \log\big( \|D_c\|_F^2 + N \big) + \sum_i \max\!\Big( \frac{\kappa}{n \pi_i} - 1,\, 0 \Big)^2

over all weights on the graph, for small deviations at nearly equal shares. With
:math:`R = \sum_{k \ge 0} B^{kT} J B^k`, the derivative of N by the weights is :math:`2 R B P` while W is held fixed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from d3gd.arrays import Floats, Ints
from d3gd.steady.state import SteadyState, mixing
from d3gd.validation import patience

PLANNED_UP_TO = 300  # agents: a plan takes O(n^3) operations and, from sketches, tables of n^2 of them
_USUAL = 500  # evaluations after which a plan has usually converged
_DEEPEST = 10  # doublings of the noise sum: 2^10 rounds of mixing
_LEFT = 0.03  # remainder of a deviation after the rounds that the noise sum covers
_LEAST = 1e-4  # smallest share of a weight at the start of a plan, so that it can grow
_RUIN = 1e3  # the cost of weights under which an agent has no influence
_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True, eq=False)
class Planner:
    r"""The planning problem of one network; agents with equal inputs obtain equal weights.

    Args:
        n: The number of agents.
        targets: The target of every edge, in CSR order.
        sources: The source of every edge.
        a0: The initial weights over the edges.
        after: Whether agents combine after their step, rather than before.
        anchor: The fixed share of the initial weights.
        least: :math:`\kappa`, the :math:`n \pi_i` below which an agent costs a penalty.
        negligible: The share of the steps below which a remaining deviation is not reduced further, so that balance
            decides if weights can cancel everything.
        doublings: Doublings of the noise sum, which has :math:`2^{\text{doublings}}` terms; by default enough to leave
            3 % of a deviation under the initial weights.
        instead: What saves a long plan, for its warning.
    """

    n: int
    targets: Ints
    sources: Ints
    a0: Floats
    after: bool = True
    anchor: float = 0.05
    least: float = 0.8
    negligible: float = 1e-6
    doublings: int | None = None
    instead: str = "choose metropolis weights"

    def plan(self, a: Floats, G: Floats, variance: Floats, step_size: float, *, evaluations: int = 20) -> Floats:
        """Return weights of lower cost than ``a``, by L-BFGS on logarithms of weights.

        Args:
            a: The weights to start from.
            G: The gradients or any vectors with the same inner products, (n, r).
            variance: The variance of each agent's gradient, summed over coordinates.
            step_size: The step size.
            evaluations: Limit on evaluations of the cost.
        """
        size = float(np.sum(G**2) + np.sum(variance))
        if size == 0 or self.n == 1:
            return a
        G, variance = G / np.sqrt(size), variance / size
        free = (a - self.anchor * self.a0) / (1 - self.anchor)
        start = np.log(np.maximum(free, _LEAST))
        options = {"maxfun": evaluations, "maxiter": evaluations, "maxcor": 8, "ftol": 1e-4}
        return self.minimise(start, G, variance, step_size, options)

    def minimise(
        self, start: Floats, G: Floats, variance: Floats, step_size: float, options: Mapping[str, float]
    ) -> Floats:
        """Return the weights that L-BFGS finds from ``start``, logarithms of weights."""
        from scipy.optimize import minimize

        noisy = self.depth if variance.any() else 0
        operations = min(options["maxfun"], _USUAL) * (10 * noisy + 8) * self.n**3
        patience(f"weights planned for {self.n:,} agents", operations, self.instead)
        if G.shape[1] > self.n:
            G = np.transpose(np.linalg.qr(G.T, mode="r"))  # the same inner products in n coordinates
        found = minimize(self.cost, start, (G, variance, step_size), "L-BFGS-B", jac=True, options=dict(options))
        return self.weights(found.x)

    def weights(self, logarithms: Floats) -> Floats:
        """Return the weights whose rows, apart from the anchor, are proportional to ``exp(logarithms)``."""
        return (1 - self.anchor) * self._shares(logarithms) + self.anchor * self.a0

    def cost(self, logarithms: Floats, G: Floats, variance: Floats, step_size: float) -> tuple[float, Floats]:
        """Return the cost of a plan and its derivative."""
        shares = self._shares(logarithms)
        value, slope = self.network_cost(self.weights(logarithms), G, variance, step_size)
        h = (1 - self.anchor) * shares * slope
        return value, h - shares * np.add.reduceat(h, self._starts)[self.targets]

    def network_cost(self, a: Floats, G: Floats, variance: Floats, step_size: float) -> tuple[float, Floats]:
        """Return the cost of weights and its derivative along every edge, up to a constant per row."""
        A = self._matrix(a)
        try:
            Z, pi = mixing(A)
        except np.linalg.LinAlgError:  # a weight has vanished and disconnected the graph
            return _RUIN, np.zeros_like(a)
        if not pi.min() > 0:
            return _RUIN, np.zeros_like(a)
        steady = SteadyState(Z, pi, G, step_size, self.after)
        B, W = A - pi, steady.c**2 * variance
        R, P = self._noise_sums(B, W)
        passed = R.diagonal() - (self._centring.diagonal() if self.after else 0)
        left = float(np.vdot(steady.D_c, steady.D_c) + passed @ W)
        total = max(left, self.negligible * float(np.vdot(steady.U, steady.U) + W.sum()), _TINY)
        lacking = np.maximum(self.least / (self.n * pi) - 1, 0)

        rate = 2 / total if left == total else 0.0
        by_log_pi = -(rate * W * passed + 2 * lacking * (lacking + 1))
        slope = steady.derivative(rate, by_log_pi) + rate * (R @ B @ P)
        return float(np.log(total) + lacking @ lacking), slope[self.targets, self.sources]

    def _matrix(self, a: Floats) -> Floats:
        A = np.zeros((self.n, self.n))
        A[self.targets, self.sources] = a
        return A

    def _noise_sums(self, B: Floats, W: Floats) -> tuple[Floats, Floats]:
        r"""Return :math:`\sum_k B^{kT} J B^k` and :math:`\sum_k B^k W B^{kT}`, doubling the number of terms."""
        R, P = self._centring, np.diag(W)
        if not W.any():
            return R, P
        for k in range(self.depth):
            B = B if k == 0 else B @ B
            R, P = R + B.T @ R @ B, P + B @ P @ B.T
        return R, P

    def _shares(self, logarithms: Floats) -> Floats:
        e = np.exp(logarithms - np.maximum.reduceat(logarithms, self._starts)[self.targets])
        shares: Floats = e / np.add.reduceat(e, self._starts)[self.targets]
        return shares

    @cached_property
    def _starts(self) -> Ints:
        return np.searchsorted(self.targets, np.arange(self.n))

    @cached_property
    def _centring(self) -> Floats:
        centring: Floats = np.eye(self.n) - 1 / self.n
        return centring

    @cached_property
    def depth(self) -> int:
        """The number of doublings of the noise sum."""
        if self.doublings is not None:
            return self.doublings
        second = np.sort(np.abs(np.linalg.eigvals(self._matrix(self.a0))))[-2:][0]
        rounds = np.log(_LEFT) / np.log(np.clip(second, 1e-9, 1 - 1e-9))
        return int(np.clip(np.ceil(np.log2(max(rounds, 1.0))), 3, _DEEPEST))
