"""AC-GT: gradient tracking that is silent, for a while, between agents that nearly agree."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from d3gd.algorithms.base import Algorithm, Gradient
from d3gd.arrays import Floats
from d3gd.distributed.received import Received
from d3gd.errors import SettingsError
from d3gd.network import Network
from d3gd.rules.pruning import given_up, order, require_pruning
from d3gd.rules.tracker import Tracker, untracked
from d3gd.schedules import Schedule, at
from d3gd.state import PerAgent, PerEdge
from d3gd.validation import positive


class ACGTState(NamedTuple):
    """The memory of AC-GT."""

    x: PerAgent  # (agents, d)  models
    tracker: Tracker
    a: PerEdge  # (edges,)      W^k, the weights of the coming iteration; zero on links that are silent


@dataclass(frozen=True, kw_only=True)
class ACGT(Algorithm[ACGTState]):
    r"""AC-GT: gradient tracking whose links are pruned anew in every cycle, those between similar models first.

    .. math::
        s_i^k = \sum_j w_{ij}^{k-1} s_j^{k-1} + g_i^k - g_i^{k-1}, \quad s_i^0 = g_i^0, \qquad
        x_i^{k+1} = \sum_j w_{ij}^k m_j^k, \quad m_j^k = x_j^k - \gamma s_j^k

    The first iteration of a cycle, k = 0, T, 2T and so on, uses all links and the initial weights. From what it brings,
    agent i with :math:`d_i` neighbours gives up :math:`\lfloor \kappa d_i \rfloor` of them until the next cycle, drawn
    one after the other without replacement with probabilities

    .. math::
        p_{ij} \propto \exp\!\Big( -\beta\, \frac{\|m_i^k - m_j^k\|}{\bar d_i} \Big), \qquad
        \bar d_i = \frac{1}{d_i} \sum_{j} \|m_i^k - m_j^k\| .

    A link that either end gives up is silent for the rest of the cycle, which the others run through with Metropolis
    weights. Those are symmetric in every iteration, so that :math:`\sum_i s_i^k = \sum_i g_i^k` always, and every cycle
    has an iteration on all links, so that nobody is cut off for good, even an agent that is alone for a cycle: agents
    come to rest only where all agree on a stationary point.

    *How two ends agree without a word per link.* Both know their distance, to the same bits, and a random number of
    their link that the seed gives. So agent i's draw is known to whoever also knows :math:`\bar d_i` and the least
    number that i kept: these two numbers it tells to all its neighbours, and then to those that remain how many they
    are, for the weights. That is all a cycle costs beside models and trackers.

    *What is from the paper and what is ours.* The paper has agents periodically track how far they disagree and choose,
    at random, the most influential links of each to communicate over: that much its abstract says. The cycles of fixed
    length, the exponential probabilities, the share :math:`\kappa`, the removal by either end, the Metropolis weights
    and models combined after the step are from a third party's account of it; its text we could not consult. In that
    account trackers have a pruning of their own, by their own distances. In trials on quadratics that took more bytes,
    and on a geometric graph smaller steps; so here both travel over the links that models decide on. Also ours are: the
    iteration on all links; distances divided by their mean, so that :math:`\beta` has no unit; the limit
    :math:`\beta = \infty`, where equal distances stay together; one random number for both ends of a link, so that they
    tend to give up the same ones; and how ends agree.

    Args:
        step_size: :math:`\gamma`, a number or a function of the iteration.
        cycle: T, the iterations of a cycle; with 1, nothing is ever pruned, and the method is ``DIGing`` with models
            combined after the step.
        prune: :math:`\kappa` in [0, 1), the share of its links that each agent gives up.
        sharpness: :math:`\beta \ge 0`; 0 prunes at random, infinity always the most similar.

    Example:
        >>> import d3gd
        >>> graph, problem = d3gd.graphs.complete(6), d3gd.problems.quadratic(agents=6, dim=3)
        >>> result = d3gd.run(ACGT(step_size=0.1), graph, problem, iterations=1000)
        >>> bool(abs(result.x - problem.optimum).max() < 1e-9)
        True

    References:
        Shah, Berahas and Bollapragada, *Adaptive consensus: a network pruning approach for decentralized optimization*,
        arXiv 2309.02626, 2023; Nedić, Olshevsky and Shi, *Achieving geometric convergence for distributed optimization
        over time-varying graphs*, SIAM Journal on Optimization 27, 2017, for why tracking converges on links that come
        and go.
    """

    step_size: float | Schedule
    cycle: int = 3
    prune: float = 0.8
    sharpness: float = 3.0

    needs = "undirected links"
    relies_on = "the sum that it tracks, and on two ends that agree which links are silent"
    exact = True

    def __post_init__(self) -> None:
        positive("step_size", self.step_size)
        if isinstance(self.cycle, bool) or not isinstance(self.cycle, int) or self.cycle < 1:
            raise SettingsError(f"cycle = {self.cycle!r}: it must be a whole number of at least 1; try 3")
        require_pruning(self.prune, self.sharpness)

    def init(self, net: Network, x0: Floats) -> ACGTState:
        """Start from ``x0`` with all links; the zeros make :math:`s^0 = g^0` once the first gradient is known."""
        if not net.reliable:
            raise SettingsError(
                "ACGT needs every message to arrive at once: the two ends of a link must come to know the same, to be "
                "silent together; choose DIGing under these conditions"
            )
        return ACGTState(x=x0, tracker=untracked(x0), a=net.a0)

    def step(self, net: Network, gradient: Gradient, s: ACGTState, k: int) -> ACGTState:
        """Take up the change of the gradient, step, mix over today's links, and choose tomorrow's."""
        g = gradient()
        begins, ends = k % self.cycle == 0, (k + 1) % self.cycle == 0
        tracked = s.tracker.at(net, g)
        message = net.precise(tracked)
        m = s.x - at(self.step_size, k) * message
        sent = net.exchange(over=None if begins else s.a > 0, m=m, s=message)
        x, mixed = net.mix(s.a, sent.m), net.mix(s.a, sent.s, double=True) + net.residual(tracked, message)
        a = net.a0 if ends else self._pruned(net, m, sent.m, k) if begins else s.a
        return ACGTState(x=x, tracker=Tracker(mixed, g), a=a)

    def _pruned(self, net: Network, m: Floats, received: Received, k: int) -> Floats:
        """Return Metropolis weights on the links that both ends keep, zero on others."""
        links = ~net.loops
        degrees = net.reduce(links.astype(np.float64))
        distances, draws = net.distances(m, received), net.draw_links(k)
        unit = net.reduce(distances) / np.maximum(degrees, 1)
        race = order(distances, net.spread(unit), self.sharpness, draws)
        gone = net.loops.copy()
        gone[links] = given_up(net.spread(np.arange(len(net.agents)))[links], race[links], self.prune)
        least = net.reduce(np.where(gone, np.inf, race), np.minimum)
        told = net.exchange(unit=unit, least=least)
        theirs = order(distances, net.along(told.unit), self.sharpness, draws)
        kept = links & (race >= net.spread(least)) & (theirs >= net.along(told.least))
        degrees = net.reduce(kept.astype(np.float64))
        told = net.exchange(over=kept | net.loops, degrees=degrees)
        most = np.maximum(net.spread(degrees), net.along(told.degrees))
        a = np.where(kept, 1 / (1 + most), 0.0)
        a[net.loops] = 1 - net.reduce(a)
        return a

    def weights(self, net: Network, s: ACGTState) -> Floats:
        """Return the weights of the coming iteration."""
        return s.a
