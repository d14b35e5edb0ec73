"""Signatures as the schema of tables: their keys and types, and the errors about them."""

import difflib
import inspect
import json
import typing
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeAlias, Union

import msgspec

from d3gd.errors import D3GDError, SettingsError
from d3gd.schedules import Decay
from d3gd.validation import shortened, shown

Table: TypeAlias = Mapping[str, Any]
Keys: TypeAlias = dict[str, tuple[Any, bool]]  # per key: its type, and whether it must be given

_NOT_IN_A_FILE = {"graph", "block"}  # arguments that are not in a file
_Seed = Annotated[int, msgspec.Meta(ge=0)]  # NumPy accepts no negative seed
_WORDS = {
    _Seed: "a whole number, 0 or more",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a text in quotes",
}


def keys_of(maker: Callable[..., Any]) -> Keys:
    """Return the keys of a function or dataclass, each with its type and whether it is required."""
    hints = typing.get_type_hints(maker)
    return {
        name: (_Seed if name == "seed" else hints[name], parameter.default is parameter.empty)
        for name, parameter in inspect.signature(maker).parameters.items()
        if name not in _NOT_IN_A_FILE
    }


def unknown(what: str, found: str, allowed: Sequence[str]) -> SettingsError:
    """Return the error for an unknown name, with the closest of those allowed."""
    close = difflib.get_close_matches(str(found), allowed, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return SettingsError(f"{what} {shown(found)} is not known; {hint}choose from {', '.join(allowed) or 'none'}")


@contextmanager
def prefixed(where: str, *, but: tuple[type[D3GDError], ...] = ()) -> Iterator[None]:
    """Add the location of a value to the errors that it causes."""
    try:
        yield
    except but:
        raise
    except D3GDError as error:
        if str(error).startswith(where):
            raise
        raise type(error)(f"{where} {error}") from error


def checked(
    table: Table, keys: Keys, where: str, *, optional: Collection[str] = (), also: Sequence[str] = ()
) -> dict[str, Any]:
    """Return a table's values in their declared types, or raise an error that names the invalid key.

    Args:
        table: The table.
        keys: Its allowed keys.
        where: The name of the table in messages.
        optional: Required keys that may be missing here.
        also: Further names to mention if a key is not known.
    """
    for key in table:
        if key not in keys:
            raise unknown(f"{where} key", key, [*keys, *also])
    for key, (hint, required) in keys.items():
        if required and key not in table and key not in optional:
            given = f"--{key}" if where.startswith("d3gd ") else f"{key} ="  # a command, not a file
            raise SettingsError(f"{where} {key} is missing; add {given} {words(hint)}")
    return {key: _convert(value, keys[key][0], f"{where} {key}") for key, value in table.items()}


def _convert(value: Any, hint: Any, where: str) -> Any:
    options = _options(hint)
    schedule = any(typing.get_origin(option) is Callable for option in options)
    if schedule and isinstance(value, Mapping):
        arguments = checked(value, keys_of(Decay), f"{where}:")
        with prefixed(f"{where}:"):
            return Decay(**arguments)
    plain = [option for option in options if typing.get_origin(option) is not Callable]
    try:
        return msgspec.convert(value, Union[tuple(plain)])  # noqa: UP007 - the members are known only at run time
    except msgspec.ValidationError:
        close = difflib.get_close_matches(value, _choices(hint), n=1) if isinstance(value, str) else []
        hint_text = f"; did you mean {close[0]!r}?" if close else ""
        raise SettingsError(f"{where} = {shortened(to_toml(value))}: it must be {words(hint)}{hint_text}") from None


def words(hint: Any) -> str:
    """Return a type in words.

    Example:
        >>> words(float | list[float] | None)
        'a number or a list of numbers'
    """
    return " or ".join(_word(option) for option in _options(hint) if option is not NoneType)


def _word(option: Any) -> str:
    if option in _WORDS:
        return _WORDS[option]
    origin, inner = typing.get_origin(option), typing.get_args(option)
    if origin is Literal:
        return "one of " + ", ".join(map(to_toml, inner))
    if origin is Callable:
        return "a table such as {start = 0.1, power = 0.5, over = 100}"
    if issubclass(origin, Mapping):
        return f"a table of {_many(inner[1])}"
    return f"a list of {_many(inner[0])}"


def _many(option: Any) -> str:
    if typing.get_origin(option) is tuple:
        return "[agent, first, until] triples"
    if typing.get_origin(option) is not None:
        return "[source, target] pairs"
    return {int: "whole numbers", float: "numbers", str: "texts in quotes"}[option]


def _options(hint: Any) -> tuple[Any, ...]:
    """Return the members of a union, or the type itself."""
    return typing.get_args(hint) if typing.get_origin(hint) in (Union, UnionType) else (hint,)


def _choices(hint: Any) -> list[str]:
    return [
        str(c) for option in _options(hint) if typing.get_origin(option) is Literal for c in typing.get_args(option)
    ]


def to_toml(value: Any) -> str:
    """Return a value as TOML."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{to_toml(key)} = {to_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(map(to_toml, value)) + "]"
    return repr(value) if isinstance(value, (int, float)) else str(value)
