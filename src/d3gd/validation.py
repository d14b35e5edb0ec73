"""Checks of what users pass: each refuses in one line that names the value and what is allowed.

Wherever a number may be given, NumPy's numbers and arrays without axes count as such.
"""

import sys
import warnings
from dataclasses import fields
from typing import Any

import numpy as np

from d3gd.errors import D3GDError, PatienceWarning, SettingsError, printable

AGENTS = 10**7  # in a network at most: pairs of them still have numbers of 64 bits, and their arrays fit in a memory
LINKS = 2**28  # at most
CLASSES = 2**16  # at most, unless there are more samples than that
WHOLE = 2**63 - 1  # what 64 bits hold
_LONGEST = 80  # characters of a value in a message
PATIENCE = 20.0  # seconds that need no warning
_SPEED = 2e10  # floating-point operations per second in products and factorisations, on one core


def plain(value: Any) -> Any:
    """Return a NumPy number, or an array without axes, as Python's own number; anything else as it is.

    Example:
        >>> plain(np.float32(0.5)), plain(np.array(3)), plain("three")
        (0.5, 3, 'three')
    """
    return value.item() if isinstance(value, np.generic | np.ndarray) and value.ndim == 0 else value


def normalise(settings: Any) -> None:
    """Replace the NumPy numbers among a dataclass's fields by Python's, which JSON knows and which keep float32 so."""
    for field in fields(settings):
        value = getattr(settings, field.name)
        if plain(value) is not value:
            object.__setattr__(settings, field.name, plain(value))


def shown(value: Any) -> str:
    """Return a value as a message can hold it, however long it is.

    Example:
        >>> shown(np.int64(3)), shown(10**5000)
        ('3', 'an integer of 16610 bits')
    """
    value = plain(value)
    if isinstance(value, int) and value.bit_length() > 200:
        return f"an integer of {value.bit_length()} bits"
    try:
        text = repr(value)
    except Exception:  # a user's own, or a list of integers too long to print
        return f"a {type(value).__name__}"
    return shortened(text)


def shortened(text: str) -> str:
    """Return a text, or its beginning if it is too long for a message."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def is_number(value: Any) -> bool:
    """Whether a value is a real number; truth values are not."""
    value = plain(value)
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_positive(value: Any) -> bool:
    """Whether a value is a positive number that a float can hold."""
    return is_number(value) and 0 < plain(value) <= sys.float_info.max


def positive(name: str, value: Any) -> None:
    """Refuse anything but a positive finite number or a schedule."""
    if not callable(value) and not is_positive(value):
        raise SettingsError(
            f"{name} = {shown(value)}: it must be a positive finite number or a function of the iteration; try 0.1"
        )


def within(name: str, value: Any, low: float, high: float, *, closed: str = "[)") -> None:
    """Refuse a number outside the interval from ``low`` to ``high``; ``closed`` holds its two brackets."""
    number, value = is_number(value), plain(value)
    above = number and (value >= low if closed[0] == "[" else value > low)
    below = number and (value <= high if closed[1] == "]" else value < high)
    if not (above and below):
        raise SettingsError(
            f"{name} = {shown(value)}: it must be a number in {closed[0]}{low:g}, {high:g}{closed[1]}; choose one there"
        )


def one_of(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse anything but one of a few words."""
    if not isinstance(value, str) or value not in choices:
        raise SettingsError(f"{name} = {shown(value)}: choose {' or '.join(map(repr, choices))}")


def count(name: str, value: Any, *, least: int, most: int = WHOLE, error: type[D3GDError] = SettingsError) -> int:
    """Return a whole number from ``least`` to ``most``, or refuse.

    Example:
        >>> count("n", np.int32(3), least=1)
        3
    """
    number = plain(value)
    if isinstance(number, bool) or not isinstance(number, int) or number < least:
        raise error(f"{name} = {shown(value)}: it must be a whole number, {least} or more")
    if number > most:
        raise error(f"{name} = {shown(value)}: it must be a whole number, at most {most:,}")
    return number


def not_negative(name: str, value: Any, *, error: type[D3GDError] = SettingsError) -> float:
    """Return a finite number of 0 or more, or refuse."""
    number = plain(value)
    if not (is_number(number) and 0 <= number <= sys.float_info.max):
        raise error(f"{name} = {shown(value)}: it must be a finite number of 0 or more")
    return float(number)


def patience(what: str, operations: float, instead: str) -> None:
    """Warn, before it begins, of work that will take long.

    Args:
        what: What is about to be done: "a plan for 2,000 agents".
        operations: How many floating-point operations it may take.
        instead: What a user may do instead: "choose rule = 'local'".
    """
    seconds = operations / _SPEED
    if seconds > PATIENCE:
        told = f"{seconds / 60:.0f} minutes" if seconds > 100 else f"{seconds:.0f} seconds"
        warnings.warn(f"{what} may take up to about {told}; to save that, {instead}", PatienceWarning, stacklevel=3)


def one_line(text: str) -> str:
    r"""Return a user's words as one line in which nothing can steer a terminal: control characters are written out.

    Example:
        >>> one_line("mine\n(\x1b[31mred)")
        'mine (\\x1b[31mred)'
    """
    return printable(" ".join(text.split()))
