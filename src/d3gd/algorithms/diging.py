"""Gradient tracking on undirected networks."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from d3gd.algorithms.base import Algorithm, Gradient, Heading
from d3gd.arrays import Floats
from d3gd.network import Network
from d3gd.rules.tracker import Tracker, untracked
from d3gd.schedules import Schedule, at
from d3gd.state import PerAgent
from d3gd.validation import one_of, positive, within


class DIGingState(NamedTuple):
    """The state of DIGing."""

    x: PerAgent  # (agents, d)  models
    tracker: Tracker
    was: PerAgent  # (agents, d)  the models of iteration k - 1


@dataclass(frozen=True, kw_only=True)
class DIGing(Algorithm[DIGingState]):
    r"""Gradient tracking: every agent tracks the mean of all gradients, so that all take the same step in the limit.

    .. math::
        s_i^k = \sum_j w_{ij} s_j^{k-1} + g_i^k - g_i^{k-1}, \quad s_i^0 = g_i^0, \qquad
        x_i^{k+1} = \sum_j w_{ij} x_j^k - \gamma s_i^k + \beta (x_i^k - x_i^{k-1})

    Models may be combined after the step instead. If trackers are too, they must arrive before models are sent, so that
    an iteration takes two rounds:

    .. math::
        x_i^{k+1} = \sum_j w_{ij} (x_j^k - \gamma s_j^k) + \beta (x_i^k - x_i^{k-1}), \qquad
        s_i^k = \sum_j w_{ij} (s_j^{k-1} + g_j^k - g_j^{k-1})

    Since W is symmetric, :math:`\sum_i s_i^k = \sum_i g_i^k` at every iteration. So at every fixed point all agents
    agree on a stationary point, at twice the traffic of DGD.

    Args:
        step_size: :math:`\gamma`, a constant or a schedule.
        combine: ``"before"`` is DIGing; ``"after"`` mixes models after their step, as SONATA does; ``"both"`` mixes
            models and trackers after the step, which is Aug-DGM, or ATC tracking.
        momentum: :math:`\beta`, heavy-ball momentum; it multiplies the effective step size by :math:`1/(1-\beta)`.

    Example:
        >>> import d3gd
        >>> graph, problem = d3gd.graphs.star(5), d3gd.problems.quadratic(agents=5, dim=3)
        >>> result = d3gd.run(DIGing(step_size=0.1), graph, problem, iterations=1000)
        >>> bool(abs(result.x - problem.optimum).max() < 1e-9)
        True

    References:
        Nedić, Olshevsky and Shi, *Achieving geometric convergence for distributed optimization over time-varying
        graphs*, SIAM Journal on Optimization 27, 2017; Xu, Zhu, Soh and Xie, *Augmented distributed gradient methods
        for multi-agent optimization under uncoordinated constant stepsizes*, IEEE Conference on Decision and Control,
        2015; Scutari and Sun, *Distributed nonconvex constrained optimization over time-varying digraphs*, Mathematical
        Programming 176, 2019; Xin and Khan, *Distributed heavy-ball: a generalization and acceleration of first-order
        methods with gradient tracking*, IEEE Transactions on Automatic Control 65, 2020.
    """

    coordinatewise = True

    step_size: float | Schedule
    combine: Literal["before", "after", "both"] = "before"
    momentum: float = 0.0

    needs = "undirected links"
    relies_on = "the sum that it tracks, which needs columns that sum to one in every iteration"
    exact = True

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("step_size", self.step_size)
        one_of("combine", self.combine, ("before", "after", "both"))
        within("momentum", self.momentum, 0, 1)

    def init(self, net: Network, x0: Floats) -> DIGingState:
        """Start from ``x0`` without momentum; the zeros make :math:`s^0 = g^0` once the first gradient is known."""
        return DIGingState(x=x0, tracker=untracked(x0), was=x0)

    def step(self, net: Network, gradient: Gradient, s: DIGingState, k: int) -> DIGingState:
        """Update the tracker with the change of the gradient, then step and mix in the order of ``combine``."""
        g = gradient()
        gamma, ball = at(self.step_size, k), self.momentum * (s.x - s.was)
        tracked = s.tracker.at(net, g)
        message = net.precise(tracked)
        if self.combine == "both":
            if k > 0:  # s^0 = g^0, not W g^0
                received = net.exchange(s=message).s
                tracked = net.mix(net.a0, received, double=True) + net.residual(tracked, message)
            moved = net.mix(net.a0, net.exchange(m=s.x - gamma * net.precise(tracked)).m, double=True)
            return DIGingState(x=net.precise(moved + ball), tracker=Tracker(tracked, g), was=s.x)
        after = self.combine == "after"
        sent = net.exchange(m=s.x - gamma * message if after else s.x, s=message)
        mixed = net.mix(net.a0, sent.m, double=True)
        moved = mixed if after else mixed - gamma * tracked
        tracker = Tracker(net.mix(net.a0, sent.s, double=True) + net.residual(tracked, message), g)
        return DIGingState(x=net.precise(moved + ball), tracker=tracker, was=s.x)

    def heading(self, net: Network, s: DIGingState, k: int) -> Heading:
        """The tracker steers, and momentum does."""
        return Heading(1.0, s.tracker.steering - self.momentum / at(self.step_size, k) * (s.x - s.was))
