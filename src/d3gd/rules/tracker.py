"""Gradient tracking: every agent tracks a sum of all gradients."""

from typing import NamedTuple

import numpy as np

from d3gd.arrays import Floats
from d3gd.network import Network
from d3gd.rules.updates import tracked
from d3gd.state import PerAgent


class Tracker(NamedTuple):
    r"""The state of :math:`s_i^k = \sum_j c_{ij} s_j^{k-1} + g_i^k - g_i^{k-1}` with :math:`s_i^0 = g_i^0`.

    The gradient at :math:`x^k` is not known before iteration k, so the state lags by one gradient. Mixing preserves the
    (weighted) sum of the trackers, and the added differences make it the sum of the gradients at every iteration. To
    avoid drift, trackers are stored and mixed in double precision, and the rounding error of a message stays with its
    sender.
    """

    mixed: PerAgent  # (agents, d)  sum_j c_ij s_j^{k-1}, in double precision
    g: PerAgent  # (agents, d)      the gradient of iteration k - 1

    def at(self, net: Network, g: Floats) -> Floats:
        """Return the trackers of this iteration, given its gradients."""
        return tracked(net, self.mixed, g, self.g)

    @property
    def steering(self) -> Floats:
        """What the trackers of this iteration add to its gradients."""
        return self.mixed - self.g


def untracked(x0: Floats) -> Tracker:
    """Return the state before the first gradient: the zeros make :math:`s^0 = g^0`."""
    return Tracker(np.zeros_like(x0, dtype=np.float64), np.zeros_like(x0))
