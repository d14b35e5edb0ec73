"""The state of an algorithm: a named tuple of arrays, whose annotations declare their first axes.

From these kinds follows everything else: a checkpoint stores any state as plain named arrays, which can be divided
among any number of ranks.
"""

from typing import Annotated, Any, TypeAlias, TypeVar, get_type_hints

import numpy as np

from d3gd.arrays import Array, Bools, Floats
from d3gd.errors import D3GDError

PerAgent: TypeAlias = Annotated[Floats, "agent"]  # first axis: the block's agents
Flags: TypeAlias = Annotated[Bools, "agent"]  # the same, Boolean
PerEdge: TypeAlias = Annotated[Floats, "edge"]  # first axis: the block's edges in CSR order
Common: TypeAlias = Annotated[Floats, "common"]  # computed by every agent, bitwise equal
Scalar: TypeAlias = Annotated[float, "scalar"]  # one number, the same for all agents
Count: TypeAlias = Annotated[int, "scalar"]
Copies: TypeAlias = Annotated[dict[str, Floats], "agent"]  # per agent, with names known only at run time
Mail: TypeAlias = Annotated[dict[str, Floats], "edge"]  # per edge, with names known only at run time

S = TypeVar("S")
T = TypeVar("T")


def _is_namedtuple(value: object) -> bool:
    return isinstance(value, tuple) and type(value) is not tuple


def flatten(state: Any, prefix: str = "") -> dict[str, Array]:
    """Name every array of a (nested) state.

    Example:
        >>> from typing import NamedTuple
        >>> class Point(NamedTuple):
        ...     x: float
        >>> flatten(Point(2.0))
        {'x': array(2.)}
    """
    arrays: dict[str, Array] = {}
    for name, value in zip(state._fields, state, strict=True):
        if _is_namedtuple(value):
            arrays |= flatten(value, f"{prefix}{name}.")
        elif isinstance(value, dict):
            arrays |= {f"{prefix}{name}.{key}": array for key, array in value.items()}
        else:
            arrays[prefix + name] = np.asarray(value)
    return arrays


def declared(state: Any, prefix: str = "") -> dict[str, str | None]:
    """Return the declared kind of every array of a state, as in :func:`kinds`; None if undeclared."""
    found: dict[str, str | None] = {}
    try:
        hints = get_type_hints(type(state), include_extras=True)
    except NameError:  # names known only to the function that defines the class
        hints = {}
    for name, value in zip(state._fields, state, strict=True):
        if _is_namedtuple(value):
            found |= declared(value, f"{prefix}{name}.")
            continue
        kind = getattr(hints.get(name), "__metadata__", (None,))[0]
        names = [f"{name}.{key}" for key in value] if isinstance(value, dict) else [name]
        found |= {prefix + each: kind for each in names}
    return found


def kinds(state: Any) -> dict[str, str]:
    """Return the kind of every array of a state: ``"agent"``, ``"edge"``, ``"common"`` or ``"scalar"``.

    Example:
        >>> from typing import NamedTuple
        >>> class Point(NamedTuple):
        ...     x: PerAgent
        >>> kinds(Point(np.zeros((2, 3))))
        {'x': 'agent'}
    """
    found: dict[str, str] = {}
    for name, kind in declared(state).items():
        if kind is None:
            raise D3GDError(
                f"field {name!r} of {type(state).__name__} has no declared kind; annotate it as one of "
                "d3gd.state.PerAgent, Flags, PerEdge, Common, Scalar or Count to run it on several ranks"
            )
        found[name] = kind
    return found


def named_later(state: Any, prefix: str = "") -> list[str]:
    """Return the prefixes of a state's arrays that are named at run time."""
    found = []
    for name, value in zip(state._fields, state, strict=True):
        if _is_namedtuple(value):
            found += named_later(value, f"{prefix}{name}.")
        elif isinstance(value, dict):
            found.append(f"{prefix}{name}.")
    return found


def restore(template: S, arrays: dict[str, Array], prefix: str = "") -> S:
    """Rebuild a state like ``template`` from the arrays of :func:`flatten`."""
    fields: dict[str, Any] = {}
    for name, value in zip(template._fields, template, strict=True):  # type: ignore[attr-defined,call-overload]
        if _is_namedtuple(value):
            fields[name] = restore(value, arrays, f"{prefix}{name}.")
        elif isinstance(value, dict):
            fields[name] = _named(arrays, f"{prefix}{name}.")
        elif isinstance(value, np.ndarray):
            fields[name] = arrays[prefix + name]
        else:
            fields[name] = type(value)(arrays[prefix + name])
    return type(template)(**fields)


def expecting(template: S, shapes: dict[str, list[int]], lengths: dict[str, int], prefix: str = "") -> S:
    """Return a template with buffers for arrays that are named at run time, by their shapes without the first axis."""
    fields: dict[str, Any] = {}
    for name, value in zip(template._fields, template, strict=True):  # type: ignore[attr-defined,call-overload]
        if _is_namedtuple(value):
            fields[name] = expecting(value, shapes, lengths, f"{prefix}{name}.")
        elif isinstance(value, dict):
            found = _named(shapes, f"{prefix}{name}.")
            rows = lengths[get_type_hints(type(template), include_extras=True)[name].__metadata__[0]]
            fields[name] = {key: np.zeros((rows, *shape)) for key, shape in found.items()}
        else:
            fields[name] = value
    return type(template)(**fields)


def keep(old: S, new: S, rows: dict[str, Bools]) -> S:
    """Return a state like ``new``, but with the rows of some agents and edges from ``old``.

    Args:
        old: The state before.
        new: The state after.
        rows: For the kinds ``"agent"`` and ``"edge"``, a mask of the rows to keep.

    Example:
        >>> from typing import NamedTuple
        >>> class Point(NamedTuple):
        ...     x: PerAgent
        >>> keep(Point(np.zeros(3)), Point(np.ones(3)), {"agent": np.array([True, False, False])})
        Point(x=array([0., 1., 1.]))
    """
    before, kind = flatten(old), kinds(new)
    arrays: dict[str, Array] = {}
    for name, after in flatten(new).items():
        if kind[name] in rows:
            kept = rows[kind[name]].reshape(-1, *[1] * (after.ndim - 1))
            arrays[name] = np.where(kept, before[name], after)
        else:
            arrays[name] = after
    return restore(new, arrays)


def _named(values: dict[str, T], prefix: str) -> dict[str, T]:
    return {name.removeprefix(prefix): value for name, value in values.items() if name.startswith(prefix)}
