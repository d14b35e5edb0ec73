"""A digest of data and settings, to decide whether two experiments are the same."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import numpy as np

from d3gd.errors import SettingsError

_DEEPEST = 100  # levels of lists and tables, below Python's recursion limit
_WIDEST = 1024  # bits of a whole number: the range of a float


def digest(*parts: Any) -> str:
    """SHA-256 of arrays (dtype, shape and bytes) and of values that :func:`jsonable` accepts, in order.

    Example:
        >>> digest([1, 0.5]) == digest((np.int64(1), np.float64(0.5)))
        True
    """
    sha = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray) and part.dtype.kind != "O":
            sha.update(f"{part.dtype.str}{part.shape}".encode())
            sha.update(np.ascontiguousarray(part).tobytes())
        else:
            sha.update(json.dumps(jsonable(part), sort_keys=True).encode())
    return sha.hexdigest()


def jsonable(value: Any, where: str = "a setting", depth: int = 0) -> Any:
    """Convert a value, which may hold NumPy's numbers and arrays, to JSON's types, or raise an error.

    Args:
        value: Numbers, texts, None, paths, and lists, arrays and mappings of them.
        where: The name of the value in messages.
        depth: Its depth of nesting.

    Example:
        >>> jsonable({"step": np.float64(0.1), "agents": (np.int64(3), True)})
        {'step': 0.1, 'agents': [3, True]}
    """
    if value is None or isinstance(value, (bool, np.bool_)):
        return None if value is None else bool(value)
    if isinstance(value, (int, np.integer)) and int(value).bit_length() <= _WIDEST:
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value)
    if isinstance(value, (str, PurePath)):
        return str(value)
    if depth < _DEEPEST:
        if isinstance(value, np.ndarray):
            return value.tolist() if value.dtype.kind in "biuf" else jsonable(value.tolist(), where, depth + 1)
        if isinstance(value, (list, tuple)):
            return [jsonable(part, where, depth + 1) for part in value]
        if isinstance(value, Mapping) and all(isinstance(key, (str, int)) for key in value):
            return {str(key): jsonable(part, f"{where}[{key!r}]", depth + 1) for key, part in value.items()}
    raise SettingsError(
        f"{where[:200]} holds a {type(value).__name__} that JSON has no form for; give numbers, texts, and lists and "
        "tables of them"
    )
