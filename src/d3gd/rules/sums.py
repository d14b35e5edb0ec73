r"""The two network-wide sums that D3GD's weight gradient needs, known or tracked.

Eq. (grd_J) compares an agent with :math:`\hat x = \sum_l \pi_l x_l` and with
:math:`\hat g = \sum_l (\pi_l / [y_l]_l) g_l`. :class:`TrueSums` looks at all agents; :class:`TrackedSums` is what
Algorithm 1 puts in their place.
"""

from typing import NamedTuple

import numpy as np

from d3gd.arrays import Array, Floats
from d3gd.network import Inbox, Network
from d3gd.state import PerAgent


class Sums(NamedTuple):
    """What stands for the two sums at each agent (one row for all where they are known)."""

    x: Floats
    g: Floats


class Nothing(NamedTuple):
    """The memory of a rule that keeps none."""


class TrueSums:
    r"""The sums themselves, with the Perron vector of the current weights: global knowledge."""

    def init(self, net: Network, x0: Floats) -> Nothing:
        """There is nothing to remember."""
        return Nothing()

    def message(self, m: Nothing, g: Floats) -> dict[str, Array]:
        """There is nothing to send."""
        return {}

    def look(
        self, net: Network, m: Nothing, a: Floats, x: Floats, g: Floats, y: Floats, message: dict[str, Array]
    ) -> Sums:
        r"""Return :math:`\pi^\top X` and :math:`\pi^\top \tilde Y^{-1} G`."""
        pi = net.precise(net.perron(a))
        everyone = net.everyone(x), net.everyone(g / y)
        # A sum over agents in their order, not a BLAS product: the same bits on any number of ranks.
        x_hat, g_hat = (np.einsum("i,id->d", pi, values)[None] for values in everyone)
        return Sums(x=np.repeat(x_hat, len(x), axis=0), g=np.repeat(g_hat, len(x), axis=0))

    def advance(self, net: Network, m: Nothing, a: Floats, sent: Inbox, g: Floats, x: Floats, new: Floats) -> Nothing:
        """There is nothing to remember."""
        return m


class Trackers(NamedTuple):
    """The memory of Algorithm 1 besides models and weights."""

    z: PerAgent  # (agents, d)  z^k
    q: PerAgent  # (agents, d)  A^{k-1} q^{k-1}: lags, for the gradient at x^k is not known before iteration k
    g: PerAgent  # (agents, d)  the gradient of iteration k - 1


class TrackedSums:
    r"""Algorithm 1's trackers, eqs. (tracker_z) and (tracker_q).

    .. math::
        z_i^{k+1} = \sum_j a_{ij}^k z_j^k + x_i^{k+1} - x_i^k, \quad z_i^0 = x_i^0, \qquad
        q_i^{k+1} = \sum_j a_{ij}^k q_j^k + g_i^{k+1} - g_i^k, \quad q_i^0 = g_i^0.

    For fixed weights :math:`z_i \to \sum_l \pi_l x_l` and :math:`q_i \to \sum_l \pi_l g_l`, and the paper takes
    :math:`q_i / [y_i]_i` for :math:`\hat g`.
    """

    def init(self, net: Network, x0: Floats) -> Trackers:
        """Start with z = x; the zeros make :math:`q^0 = g^0` once the first gradient is known."""
        return Trackers(z=x0, q=np.zeros_like(x0), g=np.zeros_like(x0))

    def message(self, m: Trackers, g: Floats) -> dict[str, Array]:
        """Send :math:`z^k` and :math:`q^k`."""
        q = m.q + g
        q -= m.g
        return {"z": m.z, "q": q}

    def look(
        self, net: Network, m: Trackers, a: Floats, x: Floats, g: Floats, y: Floats, message: dict[str, Array]
    ) -> Sums:
        """Return the trackers of iteration k."""
        return Sums(x=m.z, g=net.rowwise(lambda q, y: q / y, message["q"], y))

    def advance(self, net: Network, m: Trackers, a: Floats, sent: Inbox, g: Floats, x: Floats, new: Floats) -> Trackers:
        """Mix both trackers and add how far the model moved from ``x``."""
        z = net.mix(a, sent.z)
        z = net.rowwise(lambda z, x, new: z + (new - x), z, x, new, out=z)
        return Trackers(z=z, q=net.mix(a, sent.q), g=g)
