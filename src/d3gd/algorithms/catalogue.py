"""The methods of the library, found in the modules of this package."""

import pkgutil
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from itertools import product
from types import MappingProxyType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from d3gd import algorithms
from d3gd.algorithms.base import NAMES
from d3gd.errors import D3GDError, SettingsError


@cache
def methods() -> Mapping[str, type[Any]]:
    """Return the methods of the package by name: the public dataclasses with a step size.

    Example:
        >>> [name for name, method in methods().items() if name.startswith("Push")]
        ['PushDIGing', 'PushPull']
    """
    found: dict[str, type[Any]] = {}
    for module in pkgutil.iter_modules(algorithms.__path__, f"{algorithms.__name__}."):
        for name, value in vars(import_module(module.name)).items():
            if not isinstance(value, type) or value.__module__ != module.name or name.startswith("_"):
                continue
            if is_dataclass(value) and "step_size" in (field.name for field in fields(value)):
                found[name] = _complete(value)
    return MappingProxyType(dict(sorted(found.items(), key=lambda item: item[0].lower())))


def variants(method: type[Any]) -> list[dict[str, str]]:
    """Return every combination of a method's categorical settings that it accepts, the defaults first.

    Args:
        method: A class of :func:`methods`.

    Returns:
        Keyword arguments; a single empty dictionary if no setting is categorical.

    Example:
        >>> variants(methods()["DGD"])
        [{'combine': 'before'}, {'combine': 'after'}]
    """
    hints = get_type_hints(method)
    choices: dict[str, list[str]] = {}
    for field in fields(method):
        if get_origin(hints[field.name]) is Literal:
            words = get_args(hints[field.name])
            choices[field.name] = [word for word in words if word == field.default]
            choices[field.name] += [word for word in words if word != field.default]
    combinations = [dict(zip(choices, words, strict=True)) for words in product(*choices.values())]
    return [choice for choice in combinations if _accepts(method, choice)]


def _accepts(method: type[Any], choice: dict[str, str]) -> bool:
    try:
        method(step_size=1.0, **choice)
    except SettingsError:
        return False
    return True


def _complete(method: type[Any]) -> type[Any]:
    """Return the class, or raise an error if it lacks an attribute that the engine uses."""
    missing = sorted(NAMES - set(dir(method)))
    if missing:
        raise D3GDError(
            f"{method.__module__}.{method.__name__} has a step size but no {missing[0]!r}; a method needs all names of "
            "d3gd.algorithms.base.Algorithm: add it, or begin the class's name with an underscore"
        )
    return method
