"""What an algorithm remembers between two iterations: a named tuple of arrays, whose fields say what they follow.

From the kinds below everything else follows: a checkpoint stores any state as plain named arrays, and
another number of ranks can take the same file apart again.
"""

from typing import Annotated, Any, TypeAlias, TypeVar, get_type_hints

import numpy as np

from d3gd.arrays import Array, Bools, Floats
from d3gd.errors import D3GDError

PerAgent: TypeAlias = Annotated[Floats, "agent"]  # first axis: the block's agents
Flags: TypeAlias = Annotated[Bools, "agent"]  # the same, for yes and no
PerEdge: TypeAlias = Annotated[Floats, "edge"]  # first axis: the block's edges in CSR order
Common: TypeAlias = Annotated[Floats, "common"]  # every agent has worked it out, all to the same bits
Scalar: TypeAlias = Annotated[float, "scalar"]  # one number, the same for all agents
Count: TypeAlias = Annotated[int, "scalar"]

S = TypeVar("S")


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
        else:
            arrays[prefix + name] = np.asarray(value)
    return arrays


def kinds(state: Any, prefix: str = "") -> dict[str, str]:
    """Return what every array of a state follows: ``"agent"``, ``"edge"``, ``"common"`` or ``"scalar"``.

    Example:
        >>> from typing import NamedTuple
        >>> class Point(NamedTuple):
        ...     x: PerAgent
        >>> kinds(Point(np.zeros((2, 3))))
        {'x': 'agent'}
    """
    found: dict[str, str] = {}
    hints = get_type_hints(type(state), include_extras=True)
    for name, value in zip(state._fields, state, strict=True):
        if _is_namedtuple(value):
            found |= kinds(value, f"{prefix}{name}.")
            continue
        kind = getattr(hints[name], "__metadata__", (None,))[0]
        if kind is None:
            raise D3GDError(
                f"field {name!r} of {type(state).__name__} does not say what it follows; declare it as one of "
                "d3gd.state.PerAgent, Flags, PerEdge, Common, Scalar or Count to run it on several ranks"
            )
        found[prefix + name] = kind
    return found


def restore(template: S, arrays: dict[str, Array], prefix: str = "") -> S:
    """Fill the shape of ``template`` with what :func:`flatten` once named."""
    fields: dict[str, Any] = {}
    for name, value in zip(template._fields, template, strict=True):  # type: ignore[attr-defined,call-overload]
        if _is_namedtuple(value):
            fields[name] = restore(value, arrays, f"{prefix}{name}.")
        elif isinstance(value, np.ndarray):
            fields[name] = arrays[prefix + name]
        else:
            fields[name] = type(value)(arrays[prefix + name])
    return type(template)(**fields)
