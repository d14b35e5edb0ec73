"""Reuse of large buffers: page faults on new memory cost as much as the copy into it."""

import math

import numpy as np
from numpy.typing import DTypeLike

from d3gd.arrays import Array

LARGE = 1 << 18  # bytes from which the allocator may request new pages every time


class Buffers:
    """A pool of buffers. Each is lent to one array and returns when that array and all its views are gone.

    Args:
        least: Arrays of fewer bytes are allocated as usual.

    Example:
        >>> buffers = Buffers()
        >>> kept, address = buffers.empty((2, 3), float), buffers.empty((2, 3), float).ctypes.data
        >>> buffers.empty((3, 2), float).ctypes.data == address != kept.ctypes.data
        True
    """

    def __init__(self, least: int = 1) -> None:
        self._least = least
        self._free: dict[int, list[Array]] = {}

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
        """Return an uninitialized array."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if size < self._least:
            return np.empty(shape, dtype)
        free = self._free.setdefault(size, [])
        lease = _Lease(free.pop() if free else np.empty(size, dtype=np.uint8), free)
        return np.asarray(lease).view(dtype).reshape(shape)


class _Lease:
    """The base of an array and, through it, of every view: its end returns the buffer."""

    def __init__(self, buffer: Array, free: list[Array]) -> None:
        self._buffer, self._free = buffer, free
        self.__array_interface__ = buffer.__array_interface__

    def __del__(self) -> None:
        self._free.append(self._buffer)
