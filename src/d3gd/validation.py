"""Checks of what users pass: each refuses in one line that names the value and what is allowed."""

from math import isfinite
from typing import Any

import numpy as np

from d3gd.errors import SettingsError


def positive(name: str, value: Any) -> None:
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


def count(name: str, value: Any, *, least: int) -> None:
    """Refuse anything but a whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise SettingsError(f"{name} = {value!r}: it must be a whole number of at least {least}")


def one_line(text: str) -> str:
    r"""Return a user's words as one line in which nothing can steer a terminal: control characters are written out.

    Example:
        >>> one_line("mine\n(\x1b[31mred)")
        'mine (\\x1b[31mred)'
    """
    words = " ".join(text.split())
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in words)
