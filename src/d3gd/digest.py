"""One fingerprint for data and settings, to tell whether two experiments are the same."""

import hashlib
import json
from typing import Any

import numpy as np


def digest(*parts: Any) -> str:
    """SHA-256 of arrays (dtype, shape and bytes) and of JSON-able values, in order."""
    sha = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            sha.update(f"{part.dtype.str}{part.shape}".encode())
            sha.update(np.ascontiguousarray(part).tobytes())
        else:
            sha.update(json.dumps(part, sort_keys=True, default=_plain).encode())
    return sha.hexdigest()


def _plain(value: Any) -> Any:
    """NumPy's numbers as Python's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} has no place in a digest")
