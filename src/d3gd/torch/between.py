"""Local steps between exchanges, on this process's model."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from d3gd.algorithms.around import resized
from d3gd.algorithms.base import Algorithm, Draw
from d3gd.algorithms.local import Trail
from d3gd.arrays import Array, Floats
from d3gd.errors import SettingsError
from d3gd.network import Network
from d3gd.schedules import at

_PREFIX = "between."  # of its arrays in a saved state


class SoFar(NamedTuple):
    """Local steps since the last exchange: see :class:`d3gd.algorithms.local.Trail`."""

    x: Floats
    total: Floats
    size: float
    steps: int

    def arrays(self) -> dict[str, Array]:
        """Return them as named arrays."""
        return {_PREFIX + name: np.array(value) for name, value in self._asdict().items()}


def begun(x: Floats) -> SoFar:
    """Return no steps yet, from a model."""
    return SoFar(x, np.zeros_like(x), 0.0, 0)


def continued(arrays: dict[str, Array]) -> SoFar:
    """Return the steps of a saved state."""
    x, total, size, steps = (arrays[_PREFIX + name] for name in SoFar._fields)
    return SoFar(x, total, float(size), int(steps))


def followed(
    algorithm: Algorithm[Any], net: Network, memory: Any, k: int, so_far: SoFar, d: Floats, every: int
) -> SoFar:
    """Return the steps with one more along a direction.

    Args:
        algorithm: The method, with the step size of this local step.
        net: This process's agent.
        memory: The state since the last exchange.
        k: The number of exchanges so far.
        so_far: The steps so far.
        d: The direction.
        every: The number of local steps per exchange.
    """
    gamma = at(getattr(algorithm, "step_size"), k)  # noqa: B009 - it has one, see require_steerable
    trail = Trail(net, resized(algorithm, every * gamma).heading(net, memory, k), so_far.x)
    trail.total, trail.size = so_far.total, so_far.size
    trail.follow(d, gamma)
    return SoFar(trail.x, trail.total, trail.size, so_far.steps + 1)


@dataclass(frozen=True)
class Mean:
    """The mean direction of local steps, in place of a gradient."""

    so_far: SoFar

    def __call__(self, x: Floats | None = None, *, draw: Draw = "new") -> Floats:
        """Return it, at the model."""
        if x is not None:
            raise SettingsError(
                "this method evaluates gradients at other points, and takes no local steps; drop every, or choose "
                "another one"
            )
        mean: Floats = self.so_far.total / self.so_far.size
        return mean
