"""Sketches of long vectors, compiled: one pass over memory."""

from typing import Any

import numpy as np
from numba.core import types

from d3gd.arrays import Array, Floats, Ints
from d3gd.kernels.compiling import WHOLE, compiled, given, made
from d3gd.kernels.threads import in_parts

_WORD = 64  # bits


def _sketch(first, last, bits, turns, rows, sketches):  # type: ignore[no-untyped-def]
    size, width = sketches.shape[1], rows.shape[1]
    for i in range(first, last):
        sums = np.zeros(2 * size)  # entries, and those that a turn carries past the end
        for block in range(len(turns)):
            for word in range(bits.shape[1]):
                start = block * size + word * _WORD
                count = min(_WORD, size - word * _WORD, width - start)
                signs, place = bits[block, word], turns[block] + word * _WORD
                some, into = rows[i, start : start + count], sums[place : place + count]
                if count == _WORD:  # a constant length is vectorized best
                    for c in range(_WORD):
                        into[c] += some[c] * (1.0 - 2.0 * ((signs >> np.uint64(c)) & np.uint64(1)))
                else:
                    for c in range(count):
                        into[c] += some[c] * (1.0 - 2.0 * ((signs >> np.uint64(c)) & np.uint64(1)))
        for c in range(size):
            sketches[i, c] = sums[c] + sums[size + c]


def _types(numbers: Any) -> tuple[Any, ...]:
    return given(types.uint64, 2), given(WHOLE, 1), given(numbers, 2), made(types.float64, 2)


def sketched(bits: Array, turns: Ints, size: int, rows: Floats) -> Floats:
    """Return the sketch of every row; see :class:`d3gd.rules.sketch.Sketch`.

    Args:
        bits: (blocks, words); the signs of each block's coordinates.
        turns: (blocks,); the number of places by which it is turned.
        size: The length of a sketch.
        rows: (agents, d).
    """
    sketches: Floats = np.empty((len(rows), size))
    kernel = compiled(_sketch, _types, rows.dtype)
    in_parts(kernel, range(len(rows) + 1), rows.shape[1], bits, turns, np.ascontiguousarray(rows), sketches)
    return sketches
