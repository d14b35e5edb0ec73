"""Reading TOML: settings files, and values on a command line."""

import re
import tomllib
from pathlib import Path
from typing import Any

from d3gd import reading
from d3gd.errors import SettingsError
from d3gd.validation import WHOLE, shown

_LONGEST = 2 * 2**20  # limit on the bytes of a settings file; parsed, it may take some hundred times its size
_DEEPEST = 8  # limit on nested tables and lists: an experiment needs three
# A key of so many parts is not parsed: memory grows with their square. Nothing before it may be a part, too.
_DOTTED = re.compile(r"""(?<![\w-])(?:(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){100}""")
_TOO_DEEP = f"tables and lists are nested more than {_DEEPEST} deep"


def read_toml(path: Path) -> dict[str, Any]:
    """Return the content of a settings file."""
    text = reading.text(path, f"a TOML file, or write one with: d3gd init {path}", limit=_LONGEST, error=SettingsError)
    try:
        return _parsed(text)
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{path.name} is not valid TOML: {error}") from error


def value_of(text: str) -> Any:
    """Return a value typed on a command line, parsed as TOML, or as text if it is not TOML.

    Example:
        >>> value_of("0.5"), value_of("true"), value_of("fixed")
        (0.5, True, 'fixed')
    """
    try:
        return _parsed(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text


def _parsed(text: str) -> dict[str, Any]:
    """Return the content of a TOML file, or raise an error if numbers or nesting exceed the limits."""
    if _DOTTED.search(text):
        raise ValueError(_TOO_DEEP)
    content = tomllib.loads(text)
    ahead: list[Any] = [content]
    for _ in range(_DEEPEST):
        for value in ahead:
            if isinstance(value, int) and abs(value) > WHOLE:
                raise ValueError(f"{shown(value)} does not fit in 64 bits")
        tables = [value.values() for value in ahead if isinstance(value, dict)]
        lists = [value for value in ahead if isinstance(value, list)]
        ahead = [value for values in (*tables, *lists) for value in values]
    if ahead:
        raise ValueError(_TOO_DEEP)
    return content
