"""What the engine asks of an algorithm."""

from typing import Protocol, TypeVar

from d3gd.arrays import Floats
from d3gd.network import Network

S = TypeVar("S")


class Algorithm(Protocol[S]):
    """A method: frozen settings, an explicit state, and a step that is pure seen from outside.

    The engine asks :meth:`point`, evaluates one gradient per agent there, and calls :meth:`step`. So the same object
    serves a simulation of all agents, a rank that holds a few of them, and an optimizer's ``step()``.

    To add a method, write one class with these names in one file, and hand an instance to :func:`d3gd.run`.
    """

    @property
    def decentralized(self) -> bool:
        """Whether agents use only their own data and what arrives along their in-edges."""

    def init(self, net: Network, x0: Floats) -> S:
        """Return the state before the first iteration."""

    def point(self, s: S) -> Floats:
        """Return each agent's model, (agents, d): where its gradient is wanted."""

    def step(self, net: Network, g: Floats, s: S, k: int) -> S:
        """Return the state after iteration ``k``, given the agents' gradients ``g`` at :meth:`point`."""

    def weights(self, net: Network, s: S) -> Floats:
        """Return the weights in use, over the block's edges."""

    def scale(self, net: Network, s: S) -> Floats | None:
        r"""Return what each agent takes for its Perron weight :math:`\pi_i`, or None if it keeps no such estimate."""
