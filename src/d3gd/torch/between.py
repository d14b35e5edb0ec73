"""Local steps between exchanges, on this process's model."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from d3gd.algorithms.around import makes_directions
from d3gd.algorithms.base import Algorithm, Gradient, Heading
from d3gd.arrays import Array, Floats
from d3gd.network import Network

_PREFIX = "between."  # of its arrays in a saved state


class SoFar(NamedTuple):
    """Local steps since the last exchange: see :class:`d3gd.algorithms.local.Trail`."""

    x: Floats  # where they have led
    size: float = 0.0  # the sum of the step sizes
    steps: int = 0

    def arrays(self) -> dict[str, Array]:
        """Return them as named arrays."""
        return {_PREFIX + name: np.array(value) for name, value in self._asdict().items()}


def continued(arrays: dict[str, Array]) -> SoFar:
    """Return the steps of a saved state."""
    x, size, steps = (arrays[_PREFIX + name] for name in SoFar._fields)
    return SoFar(x, float(size), int(steps))


@dataclass(frozen=True)
class Between:
    """The local steps of one iteration of a method, on a model or a slice of it.

    Attributes:
        algorithm: The method, with the step size of all of them together.
        net: This process's agent.
        k: The number of exchanges so far.
        t: The number of steps since the method began.
        size: The step size of one of them, or for :meth:`led` of all.
        steered: Whether the method's offset steers them.
    """

    algorithm: Algorithm[Any]
    net: Network
    k: int
    t: int
    size: float
    steered: bool

    def heading(self, memory: Any) -> Heading:
        """Return where the steps go, given directions; it stays the same until the exchange."""
        heading = self.algorithm.heading(self.net, memory, self.k)
        return heading.precise(self.net) if self.steered else heading._replace(offset=0.0)

    def follow(self, heading: Heading, memory: Any, x: Floats, g: Floats) -> tuple[Any, Floats]:
        """Return the state since the last exchange, and the model, after a step along the direction of a gradient."""
        if makes_directions(self.algorithm):
            memory, g = self.algorithm.direction(self.net, memory, g, self.t)
        return memory, heading.follow(self.net, x, g, self.size)

    def led(self, memory: Any, x: Floats) -> Floats:
        r"""Return where the steps have led from the model of a state, with an offset that has not steered them.

        Since :math:`x^H = x^0 - \sum_h \gamma_h (f d^h + o)`, no sum of directions is kept. A model in single precision
        is rounded at every step; methods see what has become of it.
        """
        if self.steered:
            return x
        return self.algorithm.heading(self.net, memory, self.k).shift(self.net, x, self.size)


class Arriving:
    """A method that is given where local steps have led, in place of gradients.

    Args:
        algorithm: The method.
    """

    def __init__(self, algorithm: Algorithm[Any]) -> None:
        self._algorithm = algorithm

    def __getattr__(self, name: str) -> Any:
        return getattr(self._algorithm, name)

    def step(self, net: Network, gradient: Gradient, s: Any, k: int) -> Any:
        """Arrive there."""
        arrive = getattr(type(self._algorithm), "arrive", Algorithm.arrive)  # who is not derived from it may have none
        return arrive(self._algorithm, net, s, gradient(), k)
