"""Push-DIGing: gradient tracking with push-sum."""

from dataclasses import dataclass
from typing import NamedTuple

from d3gd.algorithms.base import Algorithm, Gradient, Heading
from d3gd.arrays import Floats
from d3gd.network import Network
from d3gd.rules.push import Mass, gather, remainder, split, unit_mass
from d3gd.rules.tracker import Tracker, untracked
from d3gd.schedules import Schedule, at
from d3gd.state import PerAgent
from d3gd.validation import positive


class PushDIGingState(NamedTuple):
    """The state of Push-DIGing."""

    u: PerAgent  # (agents, d)  what is pushed; the models are u / w
    tracker: Tracker
    mass: Mass  # w


@dataclass(frozen=True, kw_only=True)
class PushDIGing(Algorithm[PushDIGingState]):
    r"""Push-DIGing: push-sum of models and gradient trackers, with models divided by the pushed mass.

    .. math::
        s_i^k &= \sum_j c_{ij} s_j^{k-1} + g_i^k - g_i^{k-1}, \quad s_i^0 = g_i^0, \\
        u_i^{k+1} &= \sum_j c_{ij} (u_j^k - \gamma s_j^k), \qquad x_i^k = u_i^k / w_i^k, \\
        w_i^{k+1} &= \sum_j c_{ij} w_j^k, \quad w_i^0 = 1

    with gradients at :math:`x_i^k`. The columns of C sum to one: a sender splits what it holds equally among its
    out-neighbours and itself. So :math:`\sum_i s_i^k = \sum_i g_i^k` and :math:`\sum_i w_i^k = n` at every iteration:
    gradient push without its bias, at twice the traffic.

    Args:
        step_size: :math:`\gamma`, a constant or a schedule.

    Example:
        >>> import d3gd
        >>> graph, problem = d3gd.graphs.exponential(6), d3gd.problems.quadratic(agents=6, dim=3)
        >>> result = d3gd.run(PushDIGing(step_size=0.1), graph, problem, iterations=1000)
        >>> bool(abs(result.x - problem.optimum).max() < 1e-9)
        True

    References:
        Nedić, Olshevsky and Shi, *Achieving geometric convergence for distributed optimization over time-varying
        graphs*, SIAM Journal on Optimization 27, 2017; Xi, Xin and Khan, *ADD-OPT: accelerated distributed directed
        optimization*, IEEE Transactions on Automatic Control 63, 2018, with models combined before the step.
    """

    coordinatewise = True

    step_size: float | Schedule

    needs = "out-degrees"
    relies_on = "columns that sum to one: a message that is lost, or read twice, changes its sums"
    exact = True

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("step_size", self.step_size)

    def init(self, net: Network, x0: Floats) -> PushDIGingState:
        """Start from ``x0`` and unit mass; the zeros make :math:`s^0 = g^0` once the first gradient is known."""
        return PushDIGingState(u=x0, tracker=untracked(x0), mass=unit_mass(net))

    def point(self, s: PushDIGingState) -> Floats:
        """Gradients are evaluated at the models, u / w."""
        return s.mass.share(s.u)

    def step(self, net: Network, gradient: Gradient, s: PushDIGingState, k: int) -> PushDIGingState:
        """Update the tracker with the change of the gradient, step, and push."""
        g = gradient()
        tracked = s.tracker.at(net, g)
        part, pushed = net.precise(split(net, tracked)), s.u - at(self.step_size, k) * net.precise(tracked)
        sent = net.exchange(u=split(net, pushed), s=part, w=split(net, s.mass.w))
        tracker = Tracker(gather(net, sent.s, double=True) + remainder(net, tracked, part), g)
        return PushDIGingState(u=gather(net, sent.u), tracker=tracker, mass=s.mass.pushed(net, sent.w))

    def heading(self, net: Network, s: PushDIGingState, k: int) -> Heading:
        """The tracker steers; models are u / w."""
        return Heading(1 / s.mass.w, s.tracker.steering / s.mass.w)

    def weights(self, net: Network, s: PushDIGingState) -> Floats:
        """Return the row-stochastic weights on models that are equivalent to the last push."""
        return s.mass.a

    def scale(self, net: Network, s: PushDIGingState) -> Floats:
        """Return w / n, which tends to the Perron vector of these weights."""
        return s.mass.w[:, 0] / net.n
