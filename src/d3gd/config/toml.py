"""TOML from outside: settings files, and values typed on a command line."""

import tomllib
from pathlib import Path
from typing import Any

from d3gd import reading
from d3gd.errors import SettingsError
from d3gd.validation import WHOLE, shown

_LONGEST = 8 * 2**20  # bytes of a settings file
_DEEPEST = 8  # tables and lists in each other: an experiment needs three


def read_toml(path: Path) -> dict[str, Any]:
    """Return what a settings file holds."""
    text = reading.text(path, f"a TOML file, or write one with: d3gd init {path}", limit=_LONGEST, error=SettingsError)
    try:
        return _sound(tomllib.loads(text))
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{path.name} is not valid TOML: {error}") from error


def value_of(text: str) -> Any:
    """Return a value that was typed outside a file: as TOML reads it, or else as the text it is.

    Example:
        >>> value_of("0.5"), value_of("true"), value_of("local")
        (0.5, True, 'local')
    """
    try:
        return _sound(tomllib.loads(f"value = {text}"))["value"]
    except (ValueError, RecursionError):
        return text


def _sound(content: dict[str, Any]) -> dict[str, Any]:
    """Return what a TOML file holds, unless numbers or tables in it go beyond what TOML promises or anyone needs."""
    ahead: list[Any] = [content]
    for _ in range(_DEEPEST):
        for value in ahead:
            if isinstance(value, int) and abs(value) > WHOLE:
                raise ValueError(f"{shown(value)} does not fit in 64 bits")
        tables = [value.values() for value in ahead if isinstance(value, dict)]
        lists = [value for value in ahead if isinstance(value, list)]
        ahead = [value for values in (*tables, *lists) for value in values]
    if ahead:
        raise ValueError(f"tables and lists are nested more than {_DEEPEST} deep")
    return content
