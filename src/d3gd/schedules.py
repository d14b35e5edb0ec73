"""Step sizes that change with the iteration."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from d3gd.errors import SettingsError
from d3gd.validation import constant, is_positive, normalize, shown

Schedule: TypeAlias = Callable[[int], float]


@dataclass(frozen=True)
class Decay:
    r"""The schedule :math:`\gamma_k = \text{start} \, (1 + k / \text{over})^{-\text{power}}`.

    Theorem 2.5 balances its two terms with a power of 1/3 when the horizon is unknown.

    Args:
        start: The step size at iteration 0.
        power: The exponent of the decay.
        over: The number of iterations after which it has fallen to ``2 ** -power`` of its start.

    Example:
        >>> Decay(0.1, power=0.5, over=100)(300)
        0.05
    """

    start: float
    power: float = 1 / 3
    over: float = 1.0

    def __post_init__(self) -> None:
        for name in ("start", "power", "over"):
            constant(f"Decay {name}", getattr(self, name))
        normalize(self)

    def __call__(self, k: int) -> float:
        """Return the step size of iteration ``k``."""
        return float(self.start * (1 + k / self.over) ** -self.power)


def at(size: "float | Schedule", k: int) -> float:
    """Return the value of a constant or a schedule at iteration ``k``; raise an error unless it is positive."""
    if not callable(size):
        return float(size)
    value = size(k)
    if not is_positive(value):
        raise SettingsError(
            f"the schedule gives {shown(value)} at iteration {k}; it must be positive and finite at every iteration"
        )
    return float(value)
