"""The parts of a method: what each adds to its state, to its messages and to its step."""

from typing import Any, NamedTuple

from d3gd.arrays import CSR, Array, Floats
from d3gd.network import Inbox, Network
from d3gd.spectrum import second_within, spectral_gap

_GAIN = 0.05  # of a correction, at most
MARGIN = 0.5  # of what the gain may be, where it is known how fast the weights mix


_LATER: Any = None


class Now(NamedTuple):
    """An iteration as its parts see it. What it does not know yet is None."""

    k: int
    gamma: float  # the step size
    a: Floats = _LATER  # (edges,)      the weights
    x: Floats = _LATER  # (agents, d)   models before the step
    g: Floats = _LATER  # (agents, d)   gradients
    w: Floats = _LATER  # (agents, d)   corrections
    y: Floats = _LATER  # (agents, 1)   what the agents take for their Perron weight
    m: Floats = _LATER  # (agents, d)   what is sent
    new: Floats = _LATER  # (agents, d) models after the step


class Part:
    """A part of a method. Its state is a field of the method's; there is one exchange for all parts."""

    def init(self, net: Network, x0: Floats) -> Any:
        """Return the state before the first iteration."""
        raise NotImplementedError

    def begin(self, net: Network, s: Any, now: Now) -> Any:
        """Return the state for this iteration, once its gradients are known."""
        return s

    def message(self, net: Network, s: Any, now: Now) -> tuple[Any, dict[str, Array]]:
        """Return what to send beside the models, by name."""
        return s, {}

    def end(self, net: Network, s: Any, sent: Inbox, now: Now) -> Any:
        """Return the state after the iteration, given what arrived."""
        return s


class Use(NamedTuple):
    """The weights of an iteration."""

    a: Floats  # (edges,)      the weights of this block's agents
    pi: Floats  # (agents, 1)  their Perron weights, or what agents take for them
    gain: float  # of the correction; zero while pi is not to be trusted


class Rule(Part):
    """A part that moves weights."""

    def use(self, net: Network, s: Any) -> Use:
        """Return the weights in use."""
        raise NotImplementedError

    def carry(self, old: Any, new: Any, w: Floats) -> Floats:
        """Return the corrections to go on with, given the states before and after :meth:`begin`.

        They sum to zero over all agents, and still do when weights change whose Perron vectors are known.
        """
        return w


def gain(shrinks: float, margin: float) -> float:
    r"""Return the gain of a correction: at :math:`1 / |\lambda_2| - 1` it would begin to oscillate."""
    return min(_GAIN, margin * (1 / shrinks - 1)) if shrinks > 0 else _GAIN


def gain_under(A: CSR) -> float:
    """Return the gain of a correction under some weights of the whole network.

    Where they mix so fast that the gain is the largest in any case, their gap is not computed: for a large network,
    that may take minutes.
    """
    return _GAIN if second_within(A, 1 / (1 + _GAIN / MARGIN)) else gain(1 - spectral_gap(A), MARGIN)
