"""The parts of a method: what each adds to its state, to its messages and to its step."""

from typing import Any, NamedTuple

from d3gd.arrays import Array, Floats
from d3gd.distributed.inbox import Inbox
from d3gd.network import Network

_LATER: Any = None


class Now(NamedTuple):
    """An iteration as seen by its parts. What is not known yet is None."""

    k: int
    gamma: float  # the step size
    a: Floats = _LATER  # (edges,)      the weights
    x: Floats = _LATER  # (agents, d)   models before the step
    g: Floats = _LATER  # (agents, d)   gradients
    v: Floats = _LATER  # (agents, d)   corrections
    y: Floats = _LATER  # (agents, 1)   Perron weights, as far as agents know them
    new: Floats = _LATER  # (agents, d) models after the step


class Part:
    """A part of a method. Its state is a field of the method's state; all parts share one exchange."""

    def init(self, net: Network, x0: Floats) -> Any:
        """Return the state before the first iteration."""
        raise NotImplementedError

    def begin(self, net: Network, s: Any, now: Now) -> Any:
        """Return the state for this iteration, once its gradients are known."""
        return s

    def message(self, net: Network, s: Any, now: Now) -> tuple[Any, dict[str, Array]]:
        """Return what to send besides the models, by name."""
        return s, {}

    def end(self, net: Network, s: Any, sent: Inbox, now: Now) -> Any:
        """Return the state after the iteration, given what arrived."""
        return s


class Use(NamedTuple):
    """What an iteration uses of a rule."""

    a: Floats  # (edges,)      the weights of this block's agents
    pi: Floats  # (agents, 1)  their Perron weights, as far as they are known
    gain: float  # of the correction


class Rule(Part):
    """A part that chooses weights.

    Attributes:
        looks: Whether it looks at gradients, in ``begin`` and ``carry``, which are called only then after local steps.
    """

    looks = False

    def use(self, net: Network, s: Any, k: int) -> Use:
        """Return what iteration ``k`` uses."""
        raise NotImplementedError

    def carry(self, net: Network, old: Any, new: Any, now: Now) -> Floats:
        """Return the corrections to continue with, given the states before and after :meth:`begin`."""
        return now.v
