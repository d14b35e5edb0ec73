"""FRSD: row-stochastic weights and a momentum term in place of gradient tracking."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from d3gd.algorithms.base import Algorithm, Gradient, Heading
from d3gd.arrays import Floats
from d3gd.network import Network
from d3gd.rules.updates import corrected, correction
from d3gd.schedules import Schedule, at
from d3gd.state import PerAgent
from d3gd.validation import constant, positive


class FRSDState(NamedTuple):
    """The state of FRSD."""

    x: PerAgent  # (agents, d)  models
    v: PerAgent  # (agents, d)  corrections per unit of the step size, in double precision
    Y: PerAgent  # (agents, n)  Perron trackers, row i is y_i


@dataclass(frozen=True, kw_only=True)
class FRSD(Algorithm[FRSDState]):
    r"""Fast row-stochastic decentralized gradient descent: Di-DGD with a term that accumulates disagreement.

    .. math::
        v_i^{k+1} &= v_i^k + \frac{\beta}{\gamma} \Big( x_i^k - \sum_j a_{ij} x_j^k \Big), \quad v_i^0 = 0, \\
        x_i^{k+1} &= \sum_j a_{ij} x_j^k - \gamma \Big( \frac{g_i^k}{n\,[y_i^k]_i} + v_i^{k+1} \Big), \\
        y_i^{k+1} &= \sum_j a_{ij} y_j^k, \quad y_i^0 = e_i

    Since :math:`\pi^\top V^k = 0` at every iteration, whatever y does meanwhile, all agents agree at every fixed point,
    and there :math:`\sum_i g_i = 0`: exact, with the traffic and the knowledge of Di-DGD. Without gradients, a mode of
    the weights with eigenvalue :math:`\mu` obeys :math:`z^2 - (1 + \mu - \beta (1 - \mu)) z + \mu = 0`, which is stable
    for small :math:`\beta`: below 0.4 on a directed ring of 4 agents, below 0.012 on one of 20, below 1 on most random
    graphs.

    That only row-stochastic weights are needed, that a constant step and a constant momentum parameter give a linear
    rate, and that a momentum term takes the place of gradient tracking is the paper's. We wrote this recurrence from
    its summary; the order of the updates, the division by :math:`\gamma`, which lets step sizes change, and the default
    :math:`\beta` are ours.

    Args:
        step_size: :math:`\gamma`, a constant or a schedule.
        gain: :math:`\beta`, by how much disagreement enters the correction; times the damping of
            :class:`d3gd.Compressed`, if any.

    Example:
        >>> import d3gd
        >>> graph, problem = d3gd.graphs.exponential(6), d3gd.problems.quadratic(agents=6, dim=3)
        >>> result = d3gd.run(FRSD(step_size=0.1), graph, problem, iterations=1000)
        >>> bool(abs(result.x - problem.optimum).max() < 1e-9)
        True

    References:
        Ghaderyan, Aybat, Aguiar and Pereira, *A fast row-stochastic decentralized method for distributed optimization
        over directed graphs*, arXiv 2112.13257.
    """

    coordinatewise = True

    step_size: float | Schedule
    gain: float = 0.1

    relies_on = "corrections that cancel under the Perron vector, which needs the same weights in every iteration"
    exact = True

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("step_size", self.step_size)
        constant("gain", self.gain)

    def init(self, net: Network, x0: Floats) -> FRSDState:
        """Start from ``x0``, without a correction."""
        return FRSDState(x=x0, v=np.zeros_like(x0, dtype=np.float64), Y=net.eye())

    def step(self, net: Network, gradient: Gradient, s: FRSDState, k: int) -> FRSDState:
        """Mix, correct by what mixing changed, and step against the rescaled gradient."""
        gamma = at(self.step_size, k)
        sent = net.exchange(x=s.x, Y=s.Y)
        g = gradient()  # while messages are in flight
        mixed = net.mix(net.a0, sent.x, double=True)
        v = correction(net, s.v, s.x, mixed, rate=self.gain * net.damping / gamma)
        x = corrected(net, mixed, g, v, net.own(s.Y), gamma=gamma, n=net.n)
        return FRSDState(x=net.precise(x), v=v, Y=net.mix(net.a0, sent.Y))

    def heading(self, net: Network, s: FRSDState, k: int) -> Heading:
        """The correction steers."""
        return Heading(1 / (net.n * net.own(s.Y)), s.v)

    def scale(self, net: Network, s: FRSDState) -> Floats:
        """Return :math:`[y_i]_i`."""
        return net.own(s.Y)[:, 0]
