"""A method on an unreliable network, without changes to the method."""

from typing import Any, NamedTuple

from d3gd.algorithms.base import Algorithm, Gradient
from d3gd.arrays import Floats
from d3gd.conditions.network import ConditionedNetwork, Post
from d3gd.network import Network
from d3gd.state import kinds


class UnderState(NamedTuple):
    """The state of a method and of the network."""

    method: Any
    post: Post


class Under(Algorithm[UnderState]):
    """A method on a network with conditions: each iteration opens the network, steps and closes it.

    Args:
        algorithm: The method.
        net: The network.
        pauses: Whether agents may pause; then the fields of the method's state must be declared per agent or per edge.
    """

    def __init__(self, algorithm: Algorithm[Any], net: ConditionedNetwork, *, pauses: bool) -> None:
        self._algorithm, self._net, self._pauses = algorithm, net, pauses

    def init(self, net: Network, x0: Floats) -> UnderState:
        """Start without messages in flight."""
        method = self._algorithm.init(net, x0)
        if self._pauses:
            kinds(method)  # fail now, not at the first pause
        return UnderState(method, self._net.close())

    def point(self, s: UnderState) -> Floats:
        """Return the models at which the method evaluates gradients."""
        return self._algorithm.point(s.method)

    def step(self, net: Network, gradient: Gradient, s: UnderState, k: int) -> UnderState:
        """Step the agents that do not pause."""
        self._net.open(k, s.post)
        method = self._algorithm.step(net, gradient, s.method, k)
        return UnderState(self._net.hold(s.method, method), self._net.close())

    def weights(self, net: Network, s: UnderState) -> Floats:
        """Return the weights that the method uses if everything arrives."""
        return self._algorithm.weights(net, s.method)

    def scale(self, net: Network, s: UnderState) -> Floats | None:
        """Return the method's estimates of the Perron weights."""
        return self._algorithm.scale(net, s.method)
