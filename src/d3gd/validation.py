"""Checks of users' arguments: each error names the value and the allowed ones in one line.

Wherever a number is allowed, so are NumPy's numbers and arrays without axes.
"""

import inspect
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import wraps
from html import escape
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np

from d3gd.arrays import Array, Floats
from d3gd.errors import D3GDError, PatienceWarning, ProblemError, RecordError, SettingsError, printable

AGENTS = 10**7  # limit: indices of pairs fit in 64 bits, and arrays in memory
LINKS = 2**28  # limit
CLASSES = 2**16  # limit, unless there are more samples
WHOLE = 2**63 - 1  # the largest signed 64-bit integer
_LONGEST = 80  # characters of a value in a message
PATIENCE = 20.0  # seconds without a warning
_SPEED = 2e10  # floating-point operations per second in products and factorizations, on one core

_Given = ParamSpec("_Given")
_Returned = TypeVar("_Returned")


def plain(value: Any) -> Any:
    """Return a NumPy number, or an array without axes, as a Python number; other values unchanged.

    Example:
        >>> plain(np.float32(0.5)), plain(np.array(3)), plain("three")
        (0.5, 3, 'three')
    """
    scalar = isinstance(value, np.generic | np.ndarray) and value.ndim == 0 and value.dtype.kind not in "mM"
    return value.item() if scalar else value


def normalize(settings: Any) -> None:
    """Replace NumPy numbers in a dataclass's fields by Python's, and check the fields that are declared as ``bool``.

    JSON needs Python's numbers, and a float32 among them would lower the precision of whatever it meets.
    """
    for field in fields(settings):
        value = getattr(settings, field.name)
        if field.type in (bool, "bool"):
            flag(field.name, value)
        if plain(value) is not value:
            object.__setattr__(settings, field.name, plain(value))


def shown(value: Any) -> str:
    """Return a value as text for a message, in one line, shortened if it is long.

    Example:
        >>> shown(np.int64(3)), shown(10**5000)
        ('3', 'an integer of 16610 bits')
    """
    value = plain(value)
    if isinstance(value, int) and value.bit_length() > 200:
        return f"an integer of {value.bit_length()} bits"
    try:
        text = repr(value)
    except Exception:  # a user's repr, or a list of integers too long to print
        return f"a {type(value).__name__}"
    return shortened(one_line(text))


def shortened(text: str, most: int = _LONGEST) -> str:
    """Return a text, or its beginning if it is too long for a message."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def is_number(value: Any) -> bool:
    """Whether a value is a real number, infinite or not, that a float can hold; Booleans are not."""
    value = plain(value)
    if isinstance(value, int):
        return not isinstance(value, bool) and abs(value) <= sys.float_info.max
    return isinstance(value, float)


def is_positive(value: Any) -> bool:
    """Whether a value is a positive number that a float can hold."""
    return is_number(value) and 0 < plain(value) <= sys.float_info.max


def positive(name: str, value: Any) -> None:
    """Raise an error unless a value is a positive finite number or a schedule."""
    if callable(value):
        function(name, value, "the iteration")
    elif not is_positive(value):
        raise SettingsError(
            f"{name} = {shown(value)}: it must be a positive finite number or a function of the iteration; try 0.1"
        )


def constant(name: str, value: Any) -> float:
    """Return a positive finite number, or raise an error."""
    if not is_positive(value):
        raise SettingsError(f"{name} = {shown(value)}: it must be a positive finite number")
    return float(plain(value))


def within(name: str, value: Any, low: float, high: float, *, closed: str = "[)") -> None:
    """Raise an error unless a number is in the interval from ``low`` to ``high``; ``closed`` holds its brackets."""
    number, value = is_number(value), plain(value)
    above = number and (value >= low if closed[0] == "[" else value > low)
    below = number and (value <= high if closed[1] == "]" else value < high)
    if not (above and below):
        raise SettingsError(
            f"{name} = {shown(value)}: it must be a number in {closed[0]}{low:g}, {high:g}{closed[1]}; choose one there"
        )


def flag(name: str, value: Any, *, error: type[D3GDError] = SettingsError) -> bool:
    """Return a Boolean, or raise an error."""
    found = plain(value)
    if not isinstance(found, bool):
        raise error(f"{name} = {shown(value)}: choose True or False")
    return found


def one_of(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Raise an error unless a value is one of the given words."""
    if not isinstance(value, str) or value not in choices:
        raise SettingsError(f"{name} = {shown(value)}: choose {' or '.join(map(repr, choices))}")


def function(name: str, value: Any, *of: str, error: type[D3GDError] = SettingsError) -> None:
    """Raise an error unless a value can be called with as many arguments as ``of`` describes.

    Example:
        >>> function("gradient", lambda i, x: x, "an agent", "its model")
    """
    needed = f"give a function of {' and '.join(of)}"
    if not callable(value):
        raise error(f"{name} = {shown(value)}: {needed}")
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):  # of compiled code, which may have none
        return
    try:
        signature.bind(*of)
    except TypeError as misfit:
        raise error(f"{name} cannot be called with {' and '.join(of)} ({misfit}): {needed}") from None


def listed(name: str, values: Any, needed: str, *, error: type[D3GDError] = SettingsError) -> list[Any]:
    """Return a collection as a list, or raise an error; one text is none, and neither is a mapping.

    Example:
        >>> listed("names", ("a", "b"), "names")
        ['a', 'b']
    """
    values = plain(values)
    if not isinstance(values, Iterable) or isinstance(values, str | bytes | Mapping):
        raise error(f"{name} = {shown(values)}: give a list of {needed}")
    return list(values)


def mapping(name: str, value: Any, needed: str) -> Mapping[Any, Any]:
    """Return a mapping, empty for None, or raise an error."""
    if not isinstance(value, Mapping | None):
        raise SettingsError(f"{name} = {shown(value)}: give a mapping of {needed}")
    return {} if value is None else value


def as_path(name: str, value: Any, *, error: type[D3GDError] = RecordError) -> Path:
    """Return a path, or raise an error unless one is given; the empty text, which Python takes for ".", is none."""
    if not isinstance(value, str | Path) or value == "":
        raise error(f"{name} = {shown(value)}: give a path, as text or a pathlib.Path")
    return Path(value)


def count(name: str, value: Any, *, least: int, most: int = WHOLE, error: type[D3GDError] = SettingsError) -> int:
    """Return a whole number from ``least`` to ``most``, or raise an error.

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
    """Return a finite number of 0 or more, or raise an error."""
    number = plain(value)
    if not (is_number(number) and 0 <= number <= sys.float_info.max):
        raise error(f"{name} = {shown(value)}: it must be a finite number of 0 or more")
    return float(number)


def as_array(name: str, values: Any, *, error: type[D3GDError] = SettingsError) -> Array:
    """Return an array, or raise an error if it has rows of unequal length."""
    try:
        return np.asarray(values)
    except (TypeError, ValueError):
        raise error(f"{name} has rows of unequal length; give an array of numbers") from None


def reals(name: str, values: Any, *, error: type[D3GDError] = SettingsError) -> Floats:
    """Return an array in double precision, or raise an error: no dates, texts, complex numbers or uneven rows.

    Example:
        >>> reals("x0", [[1, 2]])
        array([[1., 2.]])
    """
    found = as_array(name, values, error=error)
    if found.dtype.kind not in "biuf":
        what = f"holds {found.dtype} values" if isinstance(values, np.ndarray) else f"= {shown(values)}"
        raise error(f"{name} {what}; give real numbers")
    return found.astype(np.float64, copy=False)


def rows_per_agent(what: str, values: Any, agents: int | None = None) -> Floats:
    """Return one finite row of numbers per agent, or raise a :class:`ProblemError`; ``what`` is plural."""
    rows = reals(f"an array of {what}", values, error=ProblemError)
    if rows.ndim != 2 or rows.size == 0 or (agents is not None and len(rows) != agents):
        needed = "one row of numbers for each agent" if agents is None else f"one row for each of the {agents} agents"
        raise ProblemError(f"the {what} have shape {rows.shape}; give {needed}")
    if not np.isfinite(rows).all():
        agent = int(np.argwhere(~np.isfinite(rows))[0, 0])
        raise ProblemError(f"the {what} of agent {agent} hold NaN or infinite numbers; give finite ones")
    return np.ascontiguousarray(rows)  # products of arrays in another order round differently


def without_overflow(function: Callable[_Given, _Returned]) -> Callable[_Given, _Returned]:
    """Let a function of finite numbers raise an error, not warn, if a result exceeds the range of double precision."""

    @wraps(function)
    def checked(*args: _Given.args, **kwargs: _Given.kwargs) -> _Returned:
        try:
            with np.errstate(over="raise"):
                result = function(*args, **kwargs)
            if isinstance(result, float | np.ndarray) and not np.isfinite(result).all():
                raise OverflowError  # not every function of NumPy notices
        except (FloatingPointError, OverflowError) as error:
            raise ProblemError(
                f"{function.__name__}: the result exceeds the range of double precision; scale the arguments down"
            ) from error
        return result

    return checked


def patience(what: str, operations: float, instead: str) -> None:
    """Warn of a long computation before it begins.

    Args:
        what: The computation: "a plan for 2,000 agents".
        operations: An upper bound of its floating-point operations.
        instead: An alternative, that is not being done: "choose metropolis weights".
    """
    seconds = operations / _SPEED
    if seconds > PATIENCE:
        told = f"{seconds / 60:.0f} minutes" if seconds > 100 else f"{seconds:.0f} seconds"
        warnings.warn(f"{what} may take up to about {told}; to save that, {instead}", PatienceWarning, stacklevel=3)


def one_line(text: str) -> str:
    r"""Return a user's text as one line with control characters escaped, so that it cannot control a terminal.

    Example:
        >>> one_line("mine\n(\x1b[31mred)")
        'mine (\\x1b[31mred)'
    """
    return printable(" ".join(text.split()))


def html_table(title: str, rows: Iterable[Sequence[object]], header: Sequence[str] = ()) -> str:
    """Return a table for a notebook, with all text escaped.

    Example:
        >>> html_table("a < b", [("n", 3)])
        '<table><caption>a &lt; b</caption><tr><td>n</td><td>3</td></tr></table>'
    """

    def line(tag: str, cells: Sequence[object]) -> str:
        return f"<tr>{''.join(f'<{tag}>{escape(one_line(str(cell)))}</{tag}>' for cell in cells)}</tr>"

    body = "".join([*([line("th", header)] if header else []), *(line("td", row) for row in rows)])
    return f"<table><caption>{escape(one_line(title))}</caption>{body}</table>"
