"""Methods of the literature that are another method with something around it."""

from typing import Any

from d3gd.algorithms.base import Algorithm, Gradient, Heading, Needs
from d3gd.arrays import Floats
from d3gd.conditions import Hardship
from d3gd.network import Network


class Composed(Algorithm[Any]):
    """A method under a name of its own; its state is that of what it is composed of."""

    @property
    def composed(self) -> Algorithm[Any]:
        """What it is composed of."""
        raise NotImplementedError

    @property
    def needs(self) -> Needs:
        """What agents must know for it."""
        return self.composed.needs

    @property
    def survives(self) -> frozenset[Hardship]:
        """What it survives."""
        return self.composed.survives

    @property
    def relies_on(self) -> str:
        """Its assumption."""
        return self.composed.relies_on

    @property
    def exact(self) -> bool:
        """Whether it is exact."""
        return self.composed.exact

    def init(self, net: Network, x0: Floats) -> Any:
        """Start."""
        return self.composed.init(net, x0)

    def point(self, s: Any) -> Floats:
        """Return the models."""
        return self.composed.point(s)

    def step(self, net: Network, gradient: Gradient, s: Any, k: int) -> Any:
        """Step."""
        return self.composed.step(net, gradient, s, k)

    def heading(self, net: Network, s: Any, k: int) -> Heading:
        """Return how a step moves models before mixing."""
        return self.composed.heading(net, s, k)

    def weights(self, net: Network, s: Any) -> Floats:
        """Return the weights in use."""
        return self.composed.weights(net, s)

    def scale(self, net: Network, s: Any) -> Floats | None:
        """Return the estimates of Perron weights."""
        return self.composed.scale(net, s)
