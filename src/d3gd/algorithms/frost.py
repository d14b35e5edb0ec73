"""Gradient tracking with row-stochastic weights."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from d3gd.algorithms.base import Algorithm, Gradient, Heading, Needs
from d3gd.arrays import Floats
from d3gd.distributed.coding import damped
from d3gd.network import Network
from d3gd.rules.base import Now
from d3gd.rules.scale import Given, Scale, scale_by
from d3gd.rules.tracker import Tracker, untracked
from d3gd.schedules import Schedule, at
from d3gd.state import PerAgent, PerEdge
from d3gd.steady.fast import fast_weights
from d3gd.validation import one_of, positive


class FROSTState(NamedTuple):
    """The state of FROST."""

    x: PerAgent  # (agents, d)  models
    tracker: Tracker
    a: PerEdge  # (edges,)      the weights, computed before the first iteration
    Y: PerAgent  # (agents, n)  Perron trackers, row i is y_i; (agents, 1) if pi_i is known


@dataclass(frozen=True, kw_only=True)
class FROST(Algorithm[FROSTState]):
    r"""Row-stochastic gradient tracking: every agent tracks the sum of all gradients.

    .. math::
        s_i^k = \sum_j a_{ij} s_j^{k-1} + \frac{g_i^k}{\pi_i} - \frac{g_i^{k-1}}{\pi_i}, \quad
        s_i^0 = \frac{g_i^0}{\pi_i}, \qquad
        x_i^{k+1} = \sum_j a_{ij} x_j^k - \frac{\gamma}{n} s_i^k

    or, combining after the step,

    .. math:: x_i^{k+1} = \sum_j a_{ij} \Big( x_j^k - \frac{\gamma}{n} s_j^k \Big).

    The paper tracks :math:`\pi_i` instead of knowing it: :math:`[y_i^k]_i` of the same iteration takes its place,
    where :math:`y_i^{k+1} = \sum_j a_{ij} y_j^k` and :math:`y_i^0 = e_i`.

    Since :math:`\pi^\top S^k = \sum_i g_i^k` at every iteration (with trackers, :math:`\sum_i \pi_i g_i^k /
    [y_i^k]_i`), agents agree exactly on a stationary point, at twice the traffic. The weights then only determine how
    fast and how evenly agents mix, not which gradients cancel. So the planned weights are those for white noise,
    computed once, before the first iteration.

    Args:
        step_size: :math:`\gamma`, a constant or a schedule.
        rule: ``"mixing"`` plans the weights for fast mixing and a balanced Perron vector from the network alone (and
            averages them with the identity if agents combine before their step); ``"fixed"`` uses the initial weights.
        combine: Whether agents combine ``"after"`` or ``"before"`` their step; the paper has before.
        perron: ``"discovered"``: agents discover the network, and thereby :math:`\pi`, by flooding; ``"known"`` takes
            it as known beforehand, as it must be in simulations of more than 2,000 agents; ``"tracked"`` estimates
            :math:`\pi` during the run, which sends n more numbers per link, and the first steps are unstable.

    Example:
        >>> import d3gd
        >>> graph, problem = d3gd.graphs.exponential(6), d3gd.problems.quadratic(agents=6, dim=3)
        >>> as_printed = FROST(step_size=0.05, rule="fixed", combine="before", perron="tracked")
        >>> result = d3gd.run(as_printed, graph, problem, iterations=2000)
        >>> bool(abs(result.x - problem.optimum).max() < 1e-9)
        True

    References:
        Xin, Xi and Khan, *FROST: fast row-stochastic optimization with uncoordinated step-sizes*, EURASIP Journal on
        Advances in Signal Processing, 2019.
    """

    coordinatewise = True

    step_size: float | Schedule
    rule: Literal["mixing", "fixed"] = "mixing"
    combine: Literal["after", "before"] = "after"
    perron: Literal["discovered", "known", "tracked"] = "discovered"

    relies_on = "the sum that it tracks, which needs the same Perron vector in every iteration"
    exact = True

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("step_size", self.step_size)
        one_of("rule", self.rule, ("mixing", "fixed"))
        one_of("combine", self.combine, ("after", "before"))
        one_of("perron", self.perron, ("discovered", "known", "tracked"))

    @property
    def needs(self) -> Needs:
        """In-neighbours suffice, unless the network is said to be known."""
        return "the network" if self.perron == "known" else "in-neighbours"

    @property
    def _scale(self) -> Scale:
        return scale_by(self.perron)

    def init(self, net: Network, x0: Floats) -> FROSTState:
        r"""Start from ``x0``; zeros make :math:`s^0 = g^0 / \pi` once the first gradient is known."""
        a, scale = net.a0, self._scale
        if self.rule == "mixing":
            # With tracking, agents of little influence become unstable first.
            plan = fast_weights(net.survey().graph, least=0.95)
            a = damped(net.block(plan), net.loops, net.damping)
            scale = Given(plan) if self.perron != "tracked" else scale
        if self.rule == "mixing" and self.combine == "before":
            a = (a + net.loops) / 2  # the damping that tracking then needs; it leaves pi unchanged
        return FROSTState(x0, untracked(x0.astype(np.float64)), a=a, Y=scale.init(net, x0))

    def step(self, net: Network, gradient: Gradient, s: FROSTState, k: int) -> FROSTState:
        """Update the tracker with the change of the gradient, step, and mix."""
        scale, now = self._scale, Now(k=k, gamma=at(self.step_size, k), a=s.a)
        scaled = gradient() / scale.own(net, s.Y)
        tracked = s.tracker.at(net, scaled)
        message = net.precise(tracked)
        push = now.gamma / net.n * message
        after = self.combine == "after"
        Y, trackers = scale.message(net, s.Y, now)
        sent = net.exchange(m=s.x - push if after else s.x, s=message, **trackers)
        mixed = net.mix(now.a, sent.m)
        x = mixed if after else mixed - push
        tracker = Tracker(net.mix(now.a, sent.s, double=True) + net.residual(tracked, message), scaled)
        return s._replace(x=x, tracker=tracker, Y=scale.end(net, Y, sent, now))

    def heading(self, net: Network, s: FROSTState, k: int) -> Heading:
        """The tracker steers."""
        return Heading(1 / (net.n * self._scale.own(net, s.Y)), s.tracker.steering / net.n)

    def weights(self, net: Network, s: FROSTState) -> Floats:
        """Return the weights in use."""
        return s.a

    def scale(self, net: Network, s: FROSTState) -> Floats:
        """Return the Perron weights that agents use."""
        return self._scale.own(net, s.Y)[:, 0]
