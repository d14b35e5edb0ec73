"""Memory that is used again: fresh pages cost as much as the copy into them."""

import math
from sys import getrefcount

import numpy as np
from numpy.typing import DTypeLike

from d3gd.arrays import Array

LARGE = 1 << 22  # bytes from which the system is asked for fresh pages every time
_UNUSED = 3  # references to an array that only its pool holds: the pool's, a variable's, and that of who counts


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
        self._pools: dict[int, list[Array]] = {}

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
        """Return an array that holds anything."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if size < self._least:
            return np.empty(shape, dtype)
        pool = self._pools.setdefault(size, [])
        for raw in pool:
            if getrefcount(raw) == _UNUSED:
                break
        else:
            raw = np.empty(size, dtype=np.uint8)
            pool.append(raw)
        return raw.view(dtype).reshape(shape)
