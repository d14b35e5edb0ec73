"""The identity of a method: its settings in words, and a digest of its code.

:func:`describe` names a method and its settings, as files and tables show them. :func:`identify` decides whether two
objects compute the same: it follows code and values in memory to everything that they refer to. So it also covers
classes of a notebook, which have no file.
"""

import hashlib
import re
import types
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import cached_property, partial, partialmethod
from inspect import getattr_static
from itertools import count
from pathlib import PurePath
from typing import Any, NamedTuple, NewType, TypeVar, get_origin
from uuid import UUID

import numpy as np
from scipy.sparse import csr_array, issparse

from d3gd.algorithms.code import OURS, closure, contents, installed_name, is_installed, module_of, package, references

_PLAIN = (type(None), type(...), type(NotImplemented), bool, int, float, complex, str, bytes)
_BY_REPR = (range, slice, Decimal, Fraction, date, time, timedelta, PurePath, UUID, re.Pattern, np.dtype)
_TYPES = (TypeVar, NewType, types.GenericAlias, types.UnionType)
_MEMBERS = (
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
)
_BY_VALUE = (tuple, frozenset, types.CodeType, types.MethodType, np.ndarray)  # compared by value, not by identity


def describe(settings: Any) -> dict[str, Any]:
    """Return an algorithm's name and settings, ready for JSON and the same in every process.

    Functions are described by their names, objects by their classes and, if they are dataclasses, their fields.

    Example:
        >>> from d3gd.algorithms.dgd import DGD
        >>> from d3gd.schedules import Decay
        >>> describe(DGD(step_size=Decay(0.1, power=1.0)))["step_size"]
        {'kind': 'Decay', 'start': 0.1, 'power': 1.0, 'over': 1.0}
        >>> def falling(k, start):
        ...     return start / (1 + k)
        >>> describe(DGD(step_size=partial(falling, start=0.1)))["step_size"]
        'partial(falling, start=0.1)'
    """
    own = fields(settings) if is_dataclass(settings) else ()
    return {"kind": type(settings).__name__, **{field.name: _described(getattr(settings, field.name)) for field in own}}


def _described(value: Any) -> Any:
    """Return a setting as JSON; never the default repr, whose address differs between processes."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): _described(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_described(item) for item in value]
    if isinstance(value, partial):
        words = [_described(value.func), *map(_described, value.args)]
        words += [f"{name}={_described(item)}" for name, item in value.keywords.items()]
        return f"partial({', '.join(map(str, words))})"
    if is_dataclass(value) and not isinstance(value, type):
        return describe(value)
    return str(getattr(value, "__qualname__", type(value).__qualname__))


class Identity(NamedTuple):
    """A digest of what an object computes.

    Attributes:
        digest: Equal for objects that compute the same, in all processes of one version of Python.
        unknown: Parts that cannot be identified, such as the state of a random generator; empty if the digest covers
            everything.
    """

    digest: str
    unknown: tuple[str, ...]


def identify(value: Any, known: "Mapping[type, Identity] | None" = None) -> Identity:
    """Return a digest that differs between objects that compute different things.

    Code counts along the whole class hierarchy, with everything it refers to: closures, defaults, attributes, and the
    functions, classes and constants of modules, recursively. Its location does not: files, lines, addresses. Installed
    packages are identified by name and version, and an object with a method ``fingerprint`` by its class and the result
    of that method.

    Args:
        value: A function, a class or an object.
        known: Classes that are already identified.

    Example:
        >>> rate = 0.1
        >>> def step(x):
        ...     return x - rate * x
        >>> before = identify(step)
        >>> identify(step) == before
        True
        >>> rate = 0.2
        >>> identify(step) == before
        False
    """
    home = module_of(value if isinstance(value, type | types.FunctionType) else type(value))
    return _Walk({OURS, package(home)}, known or {}).of(value)


class _Walk:
    """A traversal of everything that a value refers to, in an order that depends on the code alone."""

    def __init__(self, homes: set[str], known: Mapping[type, Identity]) -> None:
        self._homes = homes  # packages whose code is read even if they are installed
        self._known = known
        self._sha = hashlib.sha256()
        self._unknown: dict[str, None] = {}
        self._numbers: dict[int, int] = {}
        self._count = count()
        self._ahead: deque[tuple[Any, str, str]] = deque()
        self._kept: list[Any] = []  # so that their addresses are not reused

    def of(self, value: Any) -> Identity:
        """Traverse breadth first, which handles cycles and long chains."""
        self._refer(value, "", _title(value))
        while self._ahead:
            each, name, owner = self._ahead.popleft()
            parts = self._parts(each)
            if parts is None:
                self._unknown[f"{name or 'an object'} ({type(each).__name__})" + (f" of {owner}" if owner else "")] = (
                    None
                )
                continue
            title = _title(each)
            self._add(f"{type(each).__name__} {len(parts)}")
            for part, content in parts.items():
                self._add(part)
                self._refer(content, part if title else name, title or owner)
        return Identity(self._sha.hexdigest(), tuple(self._unknown))

    def _add(self, text: str) -> None:
        content = text.encode("utf-8", "surrogatepass")
        self._sha.update(b"%d " % len(content) + content)

    def _refer(self, value: Any, name: str, owner: str) -> None:
        """Add a plain value, or the number of any other object, whose parts follow later."""
        if type(value) in _PLAIN:
            self._add(f"{type(value).__name__} {value!r}")
            return
        number = self._numbers.get(id(value))
        if number is None:
            number = next(self._count)
            if not isinstance(value, _BY_VALUE):
                self._numbers[id(value)] = number
            self._kept.append(value)
            self._ahead.append((value, name, owner))
        self._add(f"#{number}")

    def _parts(self, value: Any) -> Mapping[str, Any] | None:
        """Return the parts of a value, by name; None if they cannot be known."""
        installed = self._is_installed(module_of(value)) and installed_name(value)
        match value:
            case types.FunctionType() if installed:
                return {"name": installed, **closure(value)}  # for example a decorator around a user's function
            case types.FunctionType():
                return _function(value)
            case type() if value in self._known:
                self._unknown |= dict.fromkeys(self._known[value].unknown)
                return {"known": self._known[value].digest}
            case set() | frozenset():
                items = [_Walk(self._homes, self._known).of(item) for item in value]
                self._unknown |= {text: None for item in items for text in item.unknown}
                return {"kind": type(value), "items": tuple(sorted(item.digest for item in items))}
        if installed:
            return {"name": installed}
        parts = _class(value) if isinstance(value, type) else _value(value)
        return self._instance(value) if parts is None else parts

    def _instance(self, value: Any) -> dict[str, Any] | None:
        """Return an object's class and state, unless an installed package may hide part of it."""
        kind = type(value)
        fingerprint = getattr(kind, "fingerprint", None)
        if callable(fingerprint):
            return {"kind": kind, "fingerprint": fingerprint(value)}
        opaque = [base for base in kind.__mro__ if self._is_installed(base.__module__) and not _is_bare(base)]
        return None if opaque else {"kind": kind, **_state(value)}

    def _is_installed(self, module: str) -> bool:
        return is_installed(module) and package(module) not in self._homes


def _function(function: types.FunctionType) -> dict[str, Any]:
    """Return a function's code and everything it refers to."""
    used = dict(references(function.__code__, function.__globals__))
    if package(module_of(function)) == OURS:  # other values of our modules are caches
        used = {name: value for name, value in used.items() if callable(value) or isinstance(value, (*_PLAIN, tuple))}
    defaults = {"defaults": function.__defaults__, "keyword defaults": function.__kwdefaults__}
    return {"code": function.__code__, **defaults, **closure(function), **_state(function), **used}


def _class(kind: type) -> dict[str, Any]:
    """Return a class's bases and members; of those that Python adds, only code."""
    members = {
        name: member
        for name, member in sorted(vars(kind).items())
        if name != "_abc_impl" and (not name.startswith("__") or _is_code(name, member))
    }
    parts = {"class": kind.__name__, "meta": type(kind), "bases": kind.__mro__[1:], **members}
    if is_dataclass(kind):  # default factories are stored nowhere else
        parts["fields"] = tuple((field.name, field.default, field.default_factory) for field in fields(kind))
    return parts


def _is_code(name: str, member: Any) -> bool:
    code = callable(member) or isinstance(member, classmethod | staticmethod | property)
    return code and not name.startswith("__annot")


def _value(value: Any) -> Mapping[str, Any] | None:
    """Return the parts of a value of a known type, or None."""
    match value:
        case types.CodeType():
            return contents(value)
        case dict() | types.MappingProxyType():
            return _numbered(type(value), *(part for item in value.items() for part in item)) | _state(value)
        case list() | tuple() | deque():
            return _numbered(type(value), *value) | _state(value)
        case np.ndarray() if value.dtype.hasobject:
            return _numbered(value.shape, *value.ravel().tolist())
        case np.ndarray() | np.generic():
            array = np.asarray(value)
            return {"dtype": array.dtype.str, "shape": array.shape, "bytes": array.tobytes()} | _state(value)
        case types.MethodType():
            return {"function": value.__func__, "self": value.__self__}
        case types.BuiltinFunctionType() if not isinstance(value.__self__, types.ModuleType | None):
            return {"name": value.__qualname__, "self": value.__self__}
        case partial() | partialmethod():
            return {"function": value.func, "arguments": value.args, "keywords": value.keywords}
        case property():
            return {"get": value.fget, "set": value.fset, "delete": value.fdel}
        case classmethod() | staticmethod():
            return {"function": value.__func__}
        case cached_property():
            return {"function": value.func}
        case types.ModuleType() if package(value.__name__) == OURS:
            return {"name": value.__name__}
        case types.ModuleType():
            return {name: item for name, item in sorted(vars(value).items()) if not name.startswith("__")}
        case Enum():
            return {"kind": type(value), "name": value.name, "value": value.value}
        case np.ufunc() if "vectorized" not in value.__name__:
            return {"name": value.__name__}
    if isinstance(value, _MEMBERS):
        return {"name": value.__name__, "of": value.__objclass__}
    if isinstance(value, type(vars(Identity)["digest"])):  # the descriptor of a named tuple's field
        return {"field": value.__doc__}
    if isinstance(value, _BY_REPR + _TYPES) or get_origin(value) is not None:
        return {"repr": repr(value)}
    if issparse(value):
        rows = csr_array(value)
        return {"kind": type(value), "shape": rows.shape, "": (rows.indptr, rows.indices, rows.data)}
    wrapped = getattr(value, "__wrapped__", None)  # of a cache or a compiled function
    return {"kind": type(value), "function": wrapped} if isinstance(wrapped, types.FunctionType) else None


def _numbered(*items: Any) -> dict[str, Any]:
    return {str(i): item for i, item in enumerate(items)}


def _state(value: Any) -> dict[str, Any]:
    """Return an object's attributes, without cached properties."""
    kind = type(value)
    state = dict(getattr(value, "__dict__", {}))
    for base in kind.__mro__:
        slots = vars(base).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            with suppress(AttributeError):
                state[name] = getattr(value, name)
    computed = {name for name in state if isinstance(getattr_static(kind, name, None), cached_property)}
    return {f".{name}": state[name] for name in sorted(state.keys() - computed - {"__dict__", "__weakref__"})}


def _is_bare(kind: type) -> bool:
    """Whether an installed class gives its objects no state, as ABC, Generic and Protocol do."""
    return kind is object or kind.__module__ in ("abc", "typing", "collections.abc")


def _title(value: Any) -> str:
    """Return the name that a user knows for a function, a class or an instance; empty for their parts."""
    if isinstance(value, types.FunctionType | type):
        return value.__qualname__
    if isinstance(value, types.ModuleType):
        return value.__name__
    return "" if is_installed(type(value).__module__) else type(value).__qualname__
