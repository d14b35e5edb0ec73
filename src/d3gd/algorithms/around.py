"""Methods around another method."""

from dataclasses import replace
from typing import Any, TypeVar

from d3gd.algorithms.base import Algorithm, Heading, Needs
from d3gd.arrays import Floats
from d3gd.conditions import Hardship
from d3gd.errors import SettingsError
from d3gd.network import Network

S = TypeVar("S")


class Around(Algorithm[S]):
    """A method that changes how another one steps, and leaves to it what it does not change.

    Its state has a field ``method``, the state of the other one.

    Attributes:
        method: The other method.
    """

    method: Algorithm[Any]

    @property
    def step_size(self) -> Any:
        """That of the method."""
        return getattr(self.method, "step_size", None)

    @property
    def needs(self) -> Needs:
        """Those of the method."""
        return self.method.needs

    @property
    def survives(self) -> frozenset[Hardship]:
        """What the method survives."""
        return self.method.survives

    @property
    def relies_on(self) -> str:
        """The assumption of the method."""
        return self.method.relies_on

    @property
    def exact(self) -> bool:
        """Whether the method is."""
        return self.method.exact

    def point(self, s: Any) -> Floats:
        """Return the models of the method."""
        return self.method.point(s.method)

    def heading(self, net: Network, s: Any, k: int) -> Heading:
        """Return that of the method."""
        return self.method.heading(net, s.method, k)

    def weights(self, net: Network, s: Any) -> Floats:
        """Return those of the method."""
        return self.method.weights(net, s.method)

    def scale(self, net: Network, s: Any) -> Floats | None:
        """Return that of the method."""
        return self.method.scale(net, s.method)


def resized(algorithm: Algorithm[Any], step_size: Any) -> Algorithm[Any]:
    """Return a method with another step size, whatever is around it."""
    if isinstance(algorithm, Around):
        around: Algorithm[Any] = replace(algorithm, method=resized(algorithm.method, step_size))  # type: ignore[type-var]
        return around
    changed: Algorithm[Any] = replace(algorithm, step_size=step_size)  # type: ignore[type-var]
    return changed


def makes_directions(algorithm: Algorithm[Any]) -> bool:
    """Whether a method makes directions of gradients itself, whatever is around it."""
    if isinstance(algorithm, Around):
        return makes_directions(algorithm.method)
    own = getattr(type(algorithm), "direction", Algorithm.direction)  # who is not derived from Algorithm may have none
    return own is not Algorithm.direction


def require_along_gradients(algorithm: Algorithm[Any], other: str) -> None:
    """Raise an error for a method that makes directions itself, where something else would make them, too."""
    if makes_directions(algorithm):
        raise SettingsError(
            f"{title(algorithm)} makes directions of gradients itself; leave out {other}, or choose a method that "
            "descends along gradients, such as PerronD3GD"
        )


def title(algorithm: Algorithm[Any]) -> str:
    """Return the name of a method, with what is around it.

    Example:
        >>> import d3gd
        >>> title(d3gd.Local(method=d3gd.DGD(step_size=0.1), every=4))
        'Local(DGD)'
    """
    name = type(algorithm).__name__
    return f"{name}({title(algorithm.method)})" if isinstance(algorithm, Around) else name
