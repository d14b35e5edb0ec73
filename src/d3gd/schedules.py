"""Step sizes that change with the iteration."""

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import TypeAlias

from d3gd.errors import SettingsError

Schedule: TypeAlias = Callable[[int], float]


@dataclass(frozen=True)
class Decay:
    r"""The schedule :math:`\gamma_k = \text{start} \, (1 + k / \text{over})^{-\text{power}}`.

    Theorem 2.5 balances its two terms with a power of 1/3 when the horizon is unknown.

    Args:
        start: The step size at iteration 0.
        power: How fast it falls.
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
            positive(f"Decay {name}", getattr(self, name))

    def __call__(self, k: int) -> float:
        """Return the step size of iteration ``k``."""
        return float(self.start * (1 + k / self.over) ** -self.power)


def at(size: "float | Schedule", k: int) -> float:
    """Return the value of a constant or a schedule at iteration ``k``."""
    return size(k) if callable(size) else size


def positive(name: str, value: "float | Schedule") -> None:
    """Refuse anything but a positive finite number or a schedule."""
    if callable(value):
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not isfinite(value) or value <= 0:
        raise SettingsError(
            f"{name} = {value!r}: it must be a positive finite number or a function of the iteration; try 0.1"
        )


def within(name: str, value: float, low: float, high: float, *, closed: str = "[)") -> None:
    """Refuse a number outside the interval from ``low`` to ``high``; ``closed`` holds its two brackets."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    above = number and (value >= low if closed[0] == "[" else value > low)
    below = number and (value <= high if closed[1] == "]" else value < high)
    if not (above and below):
        raise SettingsError(
            f"{name} = {value!r}: it must be a number in {closed[0]}{low:g}, {high:g}{closed[1]}; choose one inside"
        )


def one_of(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse anything but one of a few words."""
    if value not in choices:
        raise SettingsError(f"{name} = {value!r}: choose {' or '.join(map(repr, choices))}")
