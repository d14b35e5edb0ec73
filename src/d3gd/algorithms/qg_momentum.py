"""Quasi-global momentum on directed graphs."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from d3gd.algorithms.base import Gradient, Heading
from d3gd.algorithms.quasi_global import QuasiGlobal
from d3gd.arrays import Floats
from d3gd.network import Network
from d3gd.rules.fixed import Fixed, Known
from d3gd.schedules import Schedule, at
from d3gd.state import PerAgent


class QGState(NamedTuple):
    """The state of QGMomentum."""

    x: PerAgent  # (agents, d)  models
    q: PerAgent  # (agents, d)  quasi-global momentum, per unit of the step size
    rule: Known


@dataclass(frozen=True, kw_only=True)
class QGMomentum(QuasiGlobal[QGState]):
    r"""Gradient descent with quasi-global momentum: the movement of mixed models takes the place of past gradients.

    .. math::
        x_i^{k+1} &= \sum_j a_{ij} \Big( x_j^k - \gamma_k \Big( \frac{1}{n \pi_j} g_j^k + \mu q_j^k \Big) \Big), \\
        q_i^{k+1} &= \mu q_i^k + (1 - \mu) \frac{x_i^k - x_i^{k+1}}{\gamma_k}, \qquad q_i^0 = 0 .

    The momentum of an agent's own gradients would carry it towards its own optimum. The models move by what all agents
    want, so their differences are nearly the same for all. It was proposed for doubly stochastic weights; here the
    Perron factor scales gradients, not the momentum, which is common already. So
    :math:`\sum_i \pi_i x_i` moves along the mean gradient and the weighted mean of momenta.

    At rest :math:`q = 0`: it ends where Di-DGD without momentum ends if agents combine after their step, and the
    effective step size along the mean gradient is :math:`\gamma / (1 - \mu)`. With a correction, and so
    exact: ``PerronD3GD(momentum=0.9)``.

    Args:
        step_size: :math:`\gamma`, a constant or a schedule.
        momentum: :math:`\mu`.
        rule: ``"mixing"``: weights planned for fast mixing, from the graph alone; ``"fixed"``: the initial weights.
        perron: ``"discovered"``: agents discover the network by flooding; ``"known"`` takes it as known beforehand, as
            it must be in simulations of more than 2,000 agents.

    Example:
        >>> import d3gd
        >>> graph, problem = d3gd.graphs.exponential(8), d3gd.problems.quadratic(agents=8, dim=3)
        >>> local = d3gd.Local(method=d3gd.PerronD3GD(step_size=0.02, correct=False), optimizer=d3gd.Momentum())
        >>> ends = [d3gd.run(method, graph, problem, iterations=1000) for method in (local, QGMomentum(step_size=0.02))]
        >>> local, quasi_global = (result.metrics["disagreement"][-1] for result in ends)
        >>> bool(quasi_global < 0.05 * local)
        True

    References:
        Lin, Karimireddy, Stich and Jaggi, *Quasi-global momentum: accelerating decentralized deep learning on
        heterogeneous data*, International Conference on Machine Learning, 2021.
    """

    step_size: float | Schedule
    momentum: float = 0.9
    rule: Literal["mixing", "fixed"] = "mixing"
    perron: Literal["discovered", "known"] = "discovered"

    survives = frozenset({"delay"})

    @property
    def _rule(self) -> Fixed:
        return Fixed(self.rule == "mixing", corrected=False)

    def init(self, net: Network, x0: Floats) -> QGState:
        """Start from ``x0`` without momentum."""
        return QGState(x=x0, q=np.zeros_like(x0), rule=self._rule.init(net, x0))

    def step(self, net: Network, gradient: Gradient, s: QGState, k: int) -> QGState:
        """Step with the momentum, mix, and observe the movement."""
        gamma, mu, (a, pi, _) = at(self.step_size, k), self.momentum, self._rule.use(net, s.rule, k)
        m = net.precise(s.x - gamma * (gradient() / (net.n * pi) + mu * s.q))
        x = net.mix(a, net.exchange(m=m).m)
        return s._replace(x=x, q=mu * s.q + (1 - mu) / gamma * (s.x - x))

    def heading(self, net: Network, s: QGState, k: int) -> Heading:
        """The momentum steers."""
        return Heading(1 / (net.n * self._rule.use(net, s.rule, k).pi), self.momentum * s.q)
