"""Push-Pull: gradient tracking with row-stochastic weights for models and column-stochastic weights for gradients."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from d3gd.algorithms.base import Algorithm, Gradient, Heading, Needs
from d3gd.arrays import Floats
from d3gd.network import Network
from d3gd.rules.push import gather, remainder, shares, split
from d3gd.rules.tracker import Tracker, untracked
from d3gd.schedules import Schedule, at
from d3gd.spectrum import perron
from d3gd.state import PerAgent, Scalar
from d3gd.validation import one_of, positive


class PushPullState(NamedTuple):
    """The state of Push-Pull."""

    x: PerAgent  # (agents, d)  models
    tracker: Tracker
    share: Scalar  # n pi_A . pi_C, by which the step is divided


@dataclass(frozen=True, kw_only=True)
class PushPull(Algorithm[PushPullState]):
    r"""Push-Pull, or AB: models are pulled with weights A, gradients pushed with weights C.

    .. math::
        s_i^k = \sum_j c_{ij} s_j^{k-1} + g_i^k - g_i^{k-1}, \quad s_i^0 = g_i^0, \qquad
        x_i^{k+1} = \sum_j a_{ij} \Big( x_j^k - \frac{\gamma}{n\, \pi_A^\top \pi_C} s_j^k \Big)

    or, combining before the step,

    .. math:: x_i^{k+1} = \sum_j a_{ij} x_j^k - \frac{\gamma}{n\, \pi_A^\top \pi_C} s_i^k.

    The columns of C sum to one: a sender splits what it holds equally among its out-neighbours and itself, so that
    :math:`\sum_i s_i^k = \sum_i g_i^k` at every iteration. So at every fixed point all agents agree on a stationary
    point. An agent must know its out-degree. The factor :math:`n\, \pi_A^\top \pi_C` gives the step size the same
    meaning as in other methods. Agents compute it once, from the network that they discover by flooding
    (:meth:`d3gd.network.Network.survey`).

    Args:
        step_size: :math:`\gamma`, a constant or a schedule.
        combine: ``"after"`` is Push-Pull; ``"before"`` is AB.
        perron: ``"discovered"``: agents discover the network, and thereby :math:`\pi_A` and :math:`\pi_C`; ``"known"``
            takes it as known beforehand, as it must be in simulations of more than 2,000 agents.

    Example:
        >>> import d3gd
        >>> graph, problem = d3gd.graphs.exponential(6), d3gd.problems.quadratic(agents=6, dim=3)
        >>> result = d3gd.run(PushPull(step_size=0.1), graph, problem, iterations=1000)
        >>> bool(abs(result.x - problem.optimum).max() < 1e-9)
        True

    References:
        Pu, Shi, Xu and Nedić, *Push-pull gradient methods for distributed optimization in networks*, IEEE Transactions
        on Automatic Control 66, 2021; Xin and Khan, *A linear algorithm for optimization over directed graphs with
        geometric convergence*, IEEE Control Systems Letters 2, 2018.
    """

    coordinatewise = True

    step_size: float | Schedule
    combine: Literal["after", "before"] = "after"
    perron: Literal["discovered", "known"] = "discovered"

    relies_on = "columns that sum to one: a message that is lost, or read twice, changes its sums"
    exact = True

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("step_size", self.step_size)
        one_of("combine", self.combine, ("after", "before"))
        one_of("perron", self.perron, ("discovered", "known"))

    @property
    def needs(self) -> Needs:
        """Out-degrees suffice, unless the network is said to be known."""
        return "the network" if self.perron == "known" else "out-degrees"

    def init(self, net: Network, x0: Floats) -> PushPullState:
        """Start from ``x0``; the zeros make :math:`s^0 = g^0` once the first gradient is known."""
        found = net.survey()
        pull = perron(found.graph.matrix(found.a0))
        push = perron(found.graph.matrix(shares(found.graph, net.damping)).T)
        return PushPullState(x=x0, tracker=untracked(x0), share=float(net.n * (pull @ push)))

    def step(self, net: Network, gradient: Gradient, s: PushPullState, k: int) -> PushPullState:
        """Update the tracker with the change of the gradient, step, pull the models and push the trackers."""
        g = gradient()
        tracked = s.tracker.at(net, g)
        part, along = net.precise(split(net, tracked)), at(self.step_size, k) / s.share * net.precise(tracked)
        after = self.combine == "after"
        sent = net.exchange(m=s.x - along if after else s.x, s=part)
        mixed = net.mix(net.a0, sent.m)
        x = mixed if after else mixed - along
        tracker = Tracker(gather(net, sent.s, double=True) + remainder(net, tracked, part), g)
        return s._replace(x=x, tracker=tracker)

    def heading(self, net: Network, s: PushPullState, k: int) -> Heading:
        """The tracker steers."""
        return Heading(1 / s.share, s.tracker.steering / s.share)
