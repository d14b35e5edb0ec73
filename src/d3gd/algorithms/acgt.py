"""AC-GT: gradient tracking that temporarily prunes links between agents with similar models."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from d3gd.algorithms.base import Algorithm, Gradient, Heading
from d3gd.arrays import Floats
from d3gd.distributed.received import Received
from d3gd.errors import SettingsError
from d3gd.network import Network
from d3gd.rules.pruning import given_up, order, require_pruning
from d3gd.rules.tracker import Tracker, untracked
from d3gd.schedules import Schedule, at
from d3gd.state import PerAgent, PerEdge
from d3gd.validation import count, positive


class ACGTState(NamedTuple):
    """The state of AC-GT."""

    x: PerAgent  # (agents, d)  models
    tracker: Tracker
    a: PerEdge  # (edges,)      W^k, the weights of the coming iteration; zero on pruned links


@dataclass(frozen=True, kw_only=True)
class ACGT(Algorithm[ACGTState]):
    r"""AC-GT: gradient tracking that prunes links in every cycle, preferably those between similar models.

    .. math::
        s_i^k = \sum_j w_{ij}^{k-1} s_j^{k-1} + g_i^k - g_i^{k-1}, \quad s_i^0 = g_i^0, \qquad
        x_i^{k+1} = \sum_j w_{ij}^k m_j^k, \quad m_j^k = x_j^k - \gamma s_j^k

    The first iteration of a cycle, k = 0, T, 2T and so on, uses all links and the initial weights. From the models it
    receives, agent i with :math:`d_i` neighbours chooses :math:`\lfloor \kappa d_i \rfloor` links to prune until the
    next cycle, drawn sequentially without replacement with probabilities

    .. math::
        p_{ij} \propto \exp\!\Big( -\beta\, \frac{\|m_i^k - m_j^k\|}{\bar d_i} \Big), \qquad
        \bar d_i = \frac{1}{d_i} \sum_{j} \|m_i^k - m_j^k\| .

    A link that either end prunes carries nothing for the rest of the cycle; the remaining links have Metropolis
    weights. The weights are symmetric in every iteration, so that always :math:`\sum_i s_i^k = \sum_i g_i^k`. Every
    cycle has an iteration on all links, so that no agent is cut off permanently, even if it is isolated during a cycle.
    So at every fixed point all agents agree on a stationary point.

    *How the two ends of a link agree.* Both know their distance, bitwise equal, and a random number of the link, drawn
    from the seed. So a neighbour can repeat agent i's draw if it also knows :math:`\bar d_i` and the smallest value
    that i kept. Agent i sends these two numbers to all neighbours, and then its new degree to the remaining ones, for
    the weights. A cycle costs no more than this in addition to models and trackers.

    *What is from the paper and what is ours.* According to the paper's abstract, agents periodically track their
    disagreement and choose, at random, the most influential links to communicate over. The cycles of fixed length, the
    exponential probabilities, the share :math:`\kappa`, the removal by either end, the Metropolis weights and models
    combined after the step are from a third party's account, since we could not consult the paper's text. In that
    account trackers are pruned separately, by their own distances. In trials on quadratics that took more bytes, and on
    a geometric graph smaller steps; so here trackers use the links chosen by the models. Also ours are: the iteration
    on all links; distances divided by their mean, so that :math:`\beta` is dimensionless; the limit
    :math:`\beta = \infty`, in which links of equal distance are kept or pruned together; one random number for both
    ends of a link, so that they tend to prune the same links; and how the ends agree.

    Args:
        step_size: :math:`\gamma`, a constant or a schedule.
        cycle: T, the number of iterations of a cycle; with 1, nothing is pruned, and the method is ``DIGing`` with
            models combined after the step.
        prune: :math:`\kappa` in [0, 1), the share of its links that each agent prunes.
        sharpness: :math:`\beta \ge 0`; 0 prunes uniformly at random, infinity always the most similar neighbours.

    Example:
        >>> import d3gd
        >>> graph, problem = d3gd.graphs.complete(6), d3gd.problems.quadratic(agents=6, dim=3)
        >>> result = d3gd.run(ACGT(step_size=0.1), graph, problem, iterations=1000)
        >>> bool(abs(result.x - problem.optimum).max() < 1e-9)
        True

    References:
        Shah, Berahas and Bollapragada, *Adaptive consensus: a network pruning approach for decentralized optimization*,
        arXiv 2309.02626, 2023; Nedić, Olshevsky and Shi, *Achieving geometric convergence for distributed optimization
        over time-varying graphs*, SIAM Journal on Optimization 27, 2017, for the convergence of tracking on changing
        links.
    """

    step_size: float | Schedule
    cycle: int = 3
    prune: float = 0.8
    sharpness: float = 3.0

    needs = "undirected links"
    relies_on = "the sum that it tracks, and on both ends of a link agreeing whether it is pruned"
    exact = True

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("step_size", self.step_size)
        count("cycle", self.cycle, least=1)
        require_pruning(self.prune, self.sharpness)

    def init(self, net: Network, x0: Floats) -> ACGTState:
        """Start from ``x0`` with all links; the zeros make :math:`s^0 = g^0` once the first gradient is known."""
        if not net.reliable:
            raise SettingsError(
                "ACGT needs every message to arrive at once, so that both ends of a link agree whether it is pruned; "
                "choose DIGing under these conditions"
            )
        return ACGTState(x=x0, tracker=untracked(x0), a=net.a0)

    def step(self, net: Network, gradient: Gradient, s: ACGTState, k: int) -> ACGTState:
        """Update the tracker, step, mix over this iteration's links, and choose those of the next."""
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
        inbox = net.exchange(unit=unit, least=least)
        theirs = order(distances, net.along(inbox.unit), self.sharpness, draws)
        kept = links & (race >= net.spread(least)) & (theirs >= net.along(inbox.least))
        degrees = net.reduce(kept.astype(np.float64))
        inbox = net.exchange(over=kept | net.loops, degrees=degrees)
        most = np.maximum(net.spread(degrees), net.along(inbox.degrees))
        a = np.where(kept, 1 / (1 + most), 0.0)
        a[net.loops] = 1 - net.reduce(a)
        return a

    def heading(self, net: Network, s: ACGTState, k: int) -> Heading:
        """The tracker steers."""
        return Heading(1.0, s.tracker.steering)

    def weights(self, net: Network, s: ACGTState) -> Floats:
        """Return the weights of the coming iteration."""
        return s.a
