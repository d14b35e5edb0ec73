r"""The initial weights, with what agents find out about them from their in-neighbours alone, without any survey.

Agent i tracks row i of :math:`A^k`: :math:`y_i^{k+1} = \sum_j a_{ij} y_j^k`, :math:`y_i^0 = e_i`. It is *settled* from
the iteration on at which :math:`y_i` has no zeros and differs from those of its in-neighbours by at most
:math:`n^{-5/2}`.

**The share.** On long cycles :math:`[y_i]_i` first collapses, which would make steps explode. Until it is settled, an
agent takes half of its mean over all iterations so far, if that is more.

**The gain** of the correction must be the same for all agents and suit the slowest mode of the network. Each agent
sends with its trackers the first iteration :math:`\tau_i` at which all that it has heard of were settled. It
corrects from iteration :math:`2 \tau_i + 1` on, with the gain

.. math:: \beta = \frac{1 - r}{1 + r}, \qquad r = n^{-1 / \tau_i} .

*All agents begin at once.* Let :math:`\tau` be the largest of these iterations, a the agent that settles then, and i an
agent h links away. As long as i has not heard of it, a was unsettled h iterations ago, so that
:math:`\tau_i \ge k - h`. Before i is without zeros, and so has heard of a, it is not settled itself: :math:`\tau_i \ge
\min(k, h)`. Both give :math:`k \le 2 \tau_i`. At iteration :math:`2 \tau + 1` everyone has heard of it.

*The gain is at most half of what is stable* (:mod:`d3gd.rules.gain`). The 1-norm of :math:`y_i - y_j` never grows, so
at iteration :math:`\tau` it is at most :math:`n^{-2}` along links and less than 1/n between any two agents. A right
eigenvector u with eigenvalue :math:`\mu \ne 1` has two entries that differ by its largest one or more, because
:math:`\pi^\top u = 0`. So :math:`|\mu|^\tau < 1/n`, that is :math:`|\mu| < r`. Of all modes in that disk the one at -r
has the smallest bound, :math:`2 (1 - r) / (1 + r)`.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from d3gd.arrays import Array, Floats
from d3gd.distributed.inbox import Inbox
from d3gd.errors import SettingsError
from d3gd.network import Network
from d3gd.rules.base import Now, Rule, Use
from d3gd.rules.gain import Gain
from d3gd.rules.scale import Tracked
from d3gd.state import PerAgent

_LEAST = 0.5  # of the mean of an agent's share so far


class NearbyState(NamedTuple):
    """The state of :class:`Nearby`."""

    Y: PerAgent  # (agents, n)     trackers, row i is y_i
    mean: PerAgent  # (agents, 1)  of an agent's own entry, over all iterations so far
    own: PerAgent  # (agents, 1)   the iterations before the agent was settled
    tau: PerAgent  # (agents, 1)   the same of all that it has heard of


@dataclass(frozen=True)
class Nearby(Rule):
    """The initial weights, tracked Perron weights, and a gain that follows from how these settle.

    Attributes:
        corrected: Whether the method corrects.
    """

    corrected: bool

    def init(self, net: Network, x0: Floats) -> NearbyState:
        """Start from the unit vectors; nobody is settled."""
        if not net.reliable:
            raise SettingsError(
                'perron = "tracked" needs every message to arrive at once, so that all agents begin to correct at the '
                'same iteration; use perron = "discovered", which measures shares under these conditions'
            )
        nothing = np.zeros((len(net.agents), 1))
        return NearbyState(Y=Tracked().init(net, x0), mean=nothing + 1, own=nothing, tau=nothing)

    def use(self, net: Network, s: NearbyState, k: int) -> Use:
        """Return the initial weights, the shares, and the gain, which is zero at first."""
        least = np.where(s.own < k, 0.0, _LEAST * s.mean)
        tau, gain = float(s.tau[0, 0]), 0.0  # all agents answer alike whether they correct
        if self.corrected and 0 < 2 * tau < k:
            r = net.n ** (-1 / tau)
            gain = (1 - r) / (1 + r)
        return Use(net.a0, np.maximum(net.own(s.Y), least), Gain(gain, gain).under(net.damping).last)

    def message(self, net: Network, s: NearbyState, now: Now) -> tuple[NearbyState, dict[str, Array]]:
        """Send the trackers, and when all were settled."""
        return s, {**Tracked().message(net, s.Y, now)[1], "T": s.tau}

    def end(self, net: Network, s: NearbyState, sent: Inbox, now: Now) -> NearbyState:
        """Mix the trackers, after a look at whether they are settled."""
        away = net.reduce(net.distances(s.Y, sent.Y), np.maximum)
        unsettled = (away > net.n**-2.5) | (s.Y == 0).any(axis=1)
        own = np.where(unsettled[:, None] & (s.own == now.k), now.k + 1.0, s.own)
        heard = net.reduce(net.along(sent.T)[:, 0], np.maximum)[:, None]
        Y = Tracked().end(net, s.Y, sent, now)
        return NearbyState(Y, s.mean + (net.own(Y) - s.mean) / (now.k + 2), own, np.maximum(own, heard))
