"""Momentum of mixed models: what they have moved so far, per unit of the step size."""

from typing import NamedTuple

import numpy as np

from d3gd.arrays import Floats
from d3gd.network import Network
from d3gd.rules.updates import observed, pushed, remembered
from d3gd.state import PerAgent


class Still(NamedTuple):
    """The state of no momentum."""

    def offset(self, net: Network, v: Floats, mu: float) -> Floats:
        """Return a correction as it is."""
        return v

    def before(self, net: Network, x: Floats, gamma: float) -> "Still":
        """Remember nothing."""
        return self

    def after(self, net: Network, x: Floats, gamma: float) -> "Still":
        """Observe nothing."""
        return self


class Moving(NamedTuple):
    """The state of the momentum."""

    q: PerAgent  # (agents, d)  the average movement of mixed models, per unit of the step size

    def offset(self, net: Network, v: Floats, mu: float) -> Floats:
        r"""Return a correction with the momentum: :math:`v_i + \mu q_i`, in the precision of models."""
        return net.precise(pushed(net, self.q, v, np.full((v.shape[0], 1), mu)))

    def before(self, net: Network, x: Floats, gamma: float) -> "Moving":
        """Remember the models before they move: what they send may take their place."""
        return Moving(remembered(net, self.q, x, gamma=gamma))

    def after(self, net: Network, x: Floats, gamma: float) -> "Moving":
        """Observe where they have moved to."""
        return Moving(observed(net, self.q, x, gamma=gamma))
