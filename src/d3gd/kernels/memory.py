"""Large arrays that are used again."""

import sys
from typing import Any

import numpy as np

from d3gd.arrays import Array

LARGE = 1 << 22  # bytes from which the system is asked for fresh pages


def _references() -> int:
    """Return how often an array that only a list holds counts as referred to, in a loop over that list."""
    for array in [np.empty(0)]:
        return sys.getrefcount(array)
    raise AssertionError


_UNUSED = _references()


class Memory:
    """Hands out arrays, and hands large ones out again once nobody holds them, nor a view of them, any more.

    Fresh pages come zeroed from the system, one by one, which costs about as much as what is then written to them.
    """

    def __init__(self) -> None:
        self._arrays: list[Array] = []

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """Return an array whose contents may be anything.

        Example:
            >>> memory = Memory()
            >>> first, second = (memory.empty((1000, 1000), np.float64) for _ in range(2))
            >>> place, _ = first.ctypes.data, np.copyto(second, 0)
            >>> del first
            >>> memory.empty((1000, 1000), np.float64).ctypes.data == place
            True
        """
        if np.prod(shape) * np.dtype(dtype).itemsize < LARGE:
            return np.empty(shape, dtype)
        for array in self._arrays:
            if (
                sys.getrefcount(array) == _UNUSED
                and array.shape == shape
                and array.dtype == dtype
                and array.flags.writeable
            ):
                return array
        # Of another shape, or made read-only by somebody: let go of what nobody uses.
        self._arrays = [array for array in self._arrays if sys.getrefcount(array) > _UNUSED]
        self._arrays.append(np.empty(shape, dtype))
        return self._arrays[-1]
