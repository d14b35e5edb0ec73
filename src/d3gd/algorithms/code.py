"""Code objects in memory: what they do, what they refer to, and which package they belong to."""

import dis
import sys
import types
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec, resolve_name
from itertools import takewhile
from pathlib import PurePath
from typing import Any

OURS = "d3gd"
_LOADS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_LIBRARIES = frozenset({"site-packages", "dist-packages"})
_STORES = ("STORE_FAST", "STORE_DEREF", "STORE_NAME", "STORE_GLOBAL")


def contents(code: types.CodeType) -> dict[str, Any]:
    """Return what a code object does, without its file and line numbers."""
    return {
        "code": code.co_code,
        "exceptions": code.co_exceptiontable,
        "constants": code.co_consts,
        "names": (code.co_name, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars),
        "arguments": (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags),
    }


def closure(function: types.FunctionType) -> dict[str, Any]:
    """Return the closure variables of a function, by name."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # an empty cell
            found[name] = cell.cell_contents
    return found


def references(code: types.CodeType, scope: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the names and values that code uses of its own module and of those that it imports.

    Args:
        code: The code.
        scope: The names of its module.
    """
    steps = [step for step in dis.get_instructions(code) if step.opname != "EXTENDED_ARG"]
    for i, step in enumerate(steps):
        if step.opname in _LOADS and step.argval in scope:
            taken = (later.argval for later in takewhile(lambda later: later.opname in _ATTRIBUTES, steps[i + 1 :]))
            yield _followed(step.argval, scope[step.argval], taken)
        elif step.opname == "IMPORT_NAME":
            module = _imported(step.argval, steps[i - 2].argval, scope)
            after = takewhile(lambda later: later.opname in ("IMPORT_FROM", *_STORES), steps[i + 1 :])
            names = [later.argval for later in after if later.opname == "IMPORT_FROM"]
            yield from (_followed(step.argval, module, [name]) for name in names or [""])
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from references(constant, scope)


def _followed(name: str, value: Any, attributes: Iterator[str] | list[str]) -> tuple[str, Any]:
    """Follow attributes as long as the value is a module."""
    for attribute in attributes:
        if not isinstance(value, types.ModuleType):
            break
        with suppress(AttributeError):
            name, value = f"{name}.{attribute}", getattr(value, attribute)
            continue
        break
    return name, value


def _imported(name: str, level: int, scope: Mapping[str, Any]) -> types.ModuleType | None:
    """Return a module that code imports when it runs; None for ours and installed ones, which may be slow to import."""
    with suppress(Exception):  # errors of the import will show when the code runs
        full = resolve_name("." * level + name, scope.get("__package__"))
        return None if package(full) == OURS or is_installed(full) else import_module(full)
    return None


def module_of(value: Any) -> str:
    """Return the name of the module that a value comes from; empty if unknown."""
    if isinstance(value, types.FunctionType):
        return str(value.__globals__.get("__name__", ""))  # `__module__` may be that of a function it wraps
    found = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
    return found if isinstance(found, str) else ""


def package(module: str) -> str:
    """Return the package that a module is part of."""
    return module.partition(".")[0]


@cache
def is_installed(module: str) -> bool:
    """Whether a module is in the standard library or installed, so that its version identifies its code."""
    top = package(module)
    if top in sys.stdlib_module_names or top in ("", "__main__"):  # a user's, however it was started
        return top in sys.stdlib_module_names
    with suppress(ImportError, ValueError):  # a module created at run time
        spec = find_spec(top)
        places = [] if spec is None else [spec.origin, *(spec.submodule_search_locations or ())]
        return any(not _LIBRARIES.isdisjoint(PurePath(place).parts) for place in places if place)
    return False


def installed_name(value: Any) -> str:
    """Return the name and version under which a module holds a value; empty if it does not."""
    module = module_of(value)
    version = getattr(sys.modules.get(package(module)), "__version__", "")
    if isinstance(value, types.ModuleType):
        return f"{module} {version}"
    if isinstance(value, types.FunctionType):
        return f"{module}.{value.__code__.co_qualname} {version}"
    if module not in sys.modules:
        return ""
    home = vars(sys.modules[module])
    name = str(getattr(value, "__qualname__", None) or getattr(value, "__name__", ""))
    first, *rest = name.split(".")
    found = home.get(first)
    for part in rest:
        found = getattr(found, part, None)
    if found is not value:
        name = next((key for key, item in home.items() if item is value), "")
    return f"{module}.{name} {version}" if name else ""
