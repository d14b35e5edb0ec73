"""Memory that is used again: fresh pages cost as much as the copy into them."""

import math
import weakref

import numpy as np
from numpy.typing import DTypeLike

from d3gd.arrays import Array

LARGE = 1 << 22  # bytes from which the system is asked for fresh pages every time


class Memory:
    """Arrays whose memory is used again once nobody looks into it any more.

    Whoever holds an array, or any view of it, keeps its memory: it is not handed out again while anyone could see.

    Args:
        least: Arrays of fewer bytes are made anew.

    Example:
        >>> memory = Memory()
        >>> kept, address = memory.empty((2, 3), float), memory.empty((2, 3), float).ctypes.data
        >>> memory.empty((3, 2), float).ctypes.data == address != kept.ctypes.data
        True
    """

    def __init__(self, least: int = 1) -> None:
        self._least = least
        self._free: dict[int, list[Array]] = {}

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
        """Return an array that holds anything."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if size < self._least:
            return np.empty(shape, dtype)
        free = self._free.setdefault(size, [])
        raw = free.pop() if free else np.empty(size, dtype=np.uint8)
        # Over a memoryview, which NumPy does not look beneath: all views refer to this array, and its end is theirs.
        array = np.frombuffer(raw.data, dtype=dtype)
        weakref.finalize(array, free.append, raw).atexit = False
        return array.reshape(shape)
