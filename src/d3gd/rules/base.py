"""What an update needs of a rule that moves weights."""

from typing import Any, NamedTuple

from d3gd.arrays import CSR, Array, Floats
from d3gd.network import Inbox, Network
from d3gd.spectrum import second_within, spectral_gap

_GAIN = 0.05  # of a correction, at most
MARGIN = 0.5  # of what the gain may be, where it is known how fast the weights mix


def gain(shrinks: float, margin: float) -> float:
    r"""Return the gain of a correction: at :math:`1 / |\lambda_2| - 1` it would begin to oscillate."""
    return min(_GAIN, margin * (1 / shrinks - 1)) if shrinks > 0 else _GAIN


def gain_under(A: CSR) -> float:
    """Return the gain of a correction under some weights of the whole network.

    Where they mix so fast that the gain is the largest in any case, their gap is not worked out: for a large network,
    that may take minutes.
    """
    return _GAIN if second_within(A, 1 / (1 + _GAIN / MARGIN)) else gain(1 - spectral_gap(A), MARGIN)


class Use(NamedTuple):
    """The weights of an iteration."""

    a: Floats  # (edges,)      the weights of this block's agents
    pi: Floats  # (agents, 1)  their Perron weights, or what agents take for them
    gain: float  # of the correction; zero while pi is not to be trusted


class Rule:
    """How weights move. Its memory is part of the algorithm's state; here, nothing moves and nothing is sent."""

    def init(self, net: Network, x0: Floats) -> Any:
        """Return the memory before the first iteration."""
        raise NotImplementedError

    def use(self, net: Network, s: Any) -> Use:
        """Return the weights in use."""
        raise NotImplementedError

    def begin(self, net: Network, s: Any, g: Floats, w: Floats, gamma: float, k: int) -> Any:
        """Choose the weights of iteration ``k``, given its gradients and the corrections so far."""
        return s

    def carry(self, old: Any, new: Any, w: Floats) -> Floats:
        """Return the corrections to go on with, given the memory before and after :meth:`begin`.

        They sum to zero over all agents, and still do when weights change whose Perron vectors are known.
        """
        return w

    def send(self, net: Network, s: Any, x: Floats, g: Floats, m: Floats) -> tuple[Any, dict[str, Array]]:
        """Return what to send beside the messages ``m``."""
        return s, {}

    def end(self, net: Network, s: Any, sent: Inbox, x: Floats, new: Floats, gamma: float) -> Any:
        """Take in what arrived, now that models have moved from ``x`` to ``new``."""
        return s
