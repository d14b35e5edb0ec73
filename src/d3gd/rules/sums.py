r"""The two network-wide sums that D3GD's weight gradient needs, known or tracked.

Eq. (grd_J) compares an agent with :math:`\hat x = \sum_l \pi_l x_l` and with
:math:`\hat g = \sum_l (\pi_l / [y_l]_l) g_l`. :class:`TrueSums` sees all agents; :class:`TrackedSums` are the
trackers of Algorithm 1.
"""

from typing import Any, NamedTuple

import numpy as np

from d3gd.arrays import Array, Floats
from d3gd.distributed.inbox import Inbox
from d3gd.network import Network
from d3gd.rules.base import Now, Part
from d3gd.rules.tracker import Tracker, untracked
from d3gd.rules.updates import displaced, over
from d3gd.state import PerAgent


class Sums(NamedTuple):
    """Each agent's estimates of the two sums, (agents, d) each."""

    x: Floats
    g: Floats


class Summing(Part):
    """A part that provides the two sums."""

    def look(self, net: Network, s: Any, now: Now) -> Sums:
        """Return the sums of this iteration."""
        raise NotImplementedError


class Nothing(NamedTuple):
    """The state of a part without any."""


class TrueSums(Summing):
    """The sums themselves, with the Perron vector of the current weights: global knowledge."""

    def init(self, net: Network, x0: Floats) -> Nothing:
        """Return the empty state."""
        return Nothing()

    def look(self, net: Network, s: Nothing, now: Now) -> Sums:
        r"""Return :math:`\pi^\top X` and :math:`\pi^\top \tilde Y^{-1} G`."""
        pi = net.precise(net.perron(now.a))
        everyone = net.everyone(now.x), net.everyone(now.g / now.y)
        # A sum over agents in their order, not a BLAS product: the same bits on any number of ranks.
        x_hat, g_hat = (np.einsum("i,id->d", pi, values)[None] for values in everyone)
        return Sums(x=np.repeat(x_hat, len(now.x), axis=0), g=np.repeat(g_hat, len(now.x), axis=0))


class Trackers(NamedTuple):
    """The state of Algorithm 1 in addition to models and weights."""

    z: PerAgent  # (agents, d)  z^k
    q: Tracker


class TrackedSums(Summing):
    r"""Algorithm 1's trackers, eqs. (tracker_z) and (tracker_q).

    .. math::
        z_i^{k+1} = \sum_j a_{ij}^k z_j^k + x_i^{k+1} - x_i^k, \quad z_i^0 = x_i^0, \qquad
        q_i^{k+1} = \sum_j a_{ij}^k q_j^k + g_i^{k+1} - g_i^k, \quad q_i^0 = g_i^0.

    For fixed weights :math:`z_i \to \sum_l \pi_l x_l` and :math:`q_i \to \sum_l \pi_l g_l`, and the paper uses
    :math:`q_i / [y_i]_i` in place of :math:`\hat g`.
    """

    def init(self, net: Network, x0: Floats) -> Trackers:
        """Start with z = x."""
        return Trackers(z=x0, q=untracked(x0))

    def message(self, net: Network, s: Trackers, now: Now) -> tuple[Trackers, dict[str, Array]]:
        """Send :math:`z^k` and :math:`q^k`; the state holds the latter until the end of the iteration."""
        q = s.q.at(net, now.g)
        return s._replace(q=Tracker(q, now.g)), {"z": s.z, "q": net.precise(q)}

    def look(self, net: Network, s: Trackers, now: Now) -> Sums:
        """Return the trackers of this iteration."""
        return Sums(x=s.z, g=over(net, net.precise(s.q.mixed), now.y))

    def end(self, net: Network, s: Trackers, sent: Inbox, now: Now) -> Trackers:
        """Mix both trackers and add the change of the models."""
        z = displaced(net, net.mix(now.a, sent.z), now.x, now.new)
        q = net.mix(now.a, sent.q, double=True) + net.residual(s.q.mixed, net.precise(s.q.mixed))
        return Trackers(z=z, q=Tracker(q, now.g))
