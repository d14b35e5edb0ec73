"""Mixing of large models together with the update that follows: one pass over memory instead of three.

A row is handled in pieces that stay in the cache. Bitwise equal to mixing first, see :mod:`d3gd.kernels.compiling`.
"""

from typing import Any

import numpy as np
from numba.core import types
from numba.extending import register_jitable

from d3gd.arrays import Array, Floats, Ints
from d3gd.kernels.compiling import WHOLE, compiled, given, made

_PIECE = 1 << 10  # numbers, of which the fastest cache holds some arrays


@register_jitable
def _heard(x, others, column, start, count):  # type: ignore[no-untyped-def]
    row = x[column] if column < len(x) else others[column - len(x)]
    return row[start : start + count]


@register_jitable
def _mix_piece(piece, start, first, last, columns, a, x, others):  # type: ignore[no-untyped-def]
    zero, count = a.dtype.type(0), len(piece)  # a plain 0 would be added in double precision
    one, v = _heard(x, others, columns[first], start, count), a[first]
    if first + 1 == last:
        for c in range(count):
            piece[c] = zero + v * one[c]
        return
    two, w = _heard(x, others, columns[first + 1], start, count), a[first + 1]
    for c in range(count):
        piece[c] = (zero + v * one[c]) + w * two[c]
    for e in range(first + 2, last):
        some, weight = _heard(x, others, columns[e], start, count), a[e]
        for c in range(count):
            piece[c] += weight * some[c]


def _correct(first, last, indptr, columns, a, x, others, rate, mixed, v):  # type: ignore[no-untyped-def]
    scratch, width = np.empty(_PIECE, dtype=a.dtype), v.shape[1]
    for i in range(first, last):
        for start in range(0, width, _PIECE):
            stop = min(start + _PIECE, width)
            piece, sent = scratch[: stop - start], x[i, start:stop]
            into, new = mixed[i, start:stop], v[i, start:stop]
            _mix_piece(piece, start, indptr[i], indptr[i + 1], columns, a, x, others)
            for c in range(len(piece)):
                new[c] = new[c] + rate * (sent[c] - piece[c])
            for c in range(len(piece)):
                into[c] = piece[c]


def _descend(first, last, indptr, columns, a, x, others, g, factor, new):  # type: ignore[no-untyped-def]
    scratch, width = np.empty(_PIECE, dtype=a.dtype), g.shape[1]
    for i in range(first, last):
        by = factor[i, 0]
        for start in range(0, width, _PIECE):
            stop = min(start + _PIECE, width)
            piece, slope, into = scratch[: stop - start], g[i, start:stop], new[i, start:stop]
            _mix_piece(piece, start, indptr[i], indptr[i + 1], columns, a, x, others)
            for c in range(len(piece)):
                into[c] = piece[c] - by * slope[c]


def _rows(sent: Any, mixed: Any) -> tuple[Any, ...]:
    return given(WHOLE, 1), given(WHOLE, 1), given(mixed, 1), given(sent, 2), given(sent, 2)


def _correct_types(sent: Any) -> tuple[Any, ...]:
    double = types.float64
    return *_rows(sent, double), double, made(sent, 2), made(double, 2)


def _descend_types(sent: Any) -> tuple[Any, ...]:
    return *_rows(sent, sent), given(sent, 2), given(sent, 2), made(sent, 2)


class Wide:
    """Updates of a block's agents, whose own rows are the first ones received.

    Args:
        indptr: The start of each agent's in-edges.
        columns: The received row of each edge.
    """

    def __init__(self, indptr: Ints, columns: Ints) -> None:
        self._edges = np.ascontiguousarray(indptr), np.ascontiguousarray(columns)

    def correct(self, a: Floats, own: Array, received: Array, rate: float, into: Floats, v: Floats) -> None:
        r"""Compute :math:`\sum_j a_{ij} m_j` and add :math:`\rho (m_i - \sum_j a_{ij} m_j)` to v, in double."""
        kernel = compiled(_correct, _correct_types, own.dtype)
        kernel(0, len(v), *self._edges, a, own, received, float(rate), into, v)

    def descend(self, a: Floats, own: Array, received: Array, g: Floats, factor: Floats, into: Floats) -> None:
        r"""Compute :math:`\sum_j a_{ij} x_j - f_i g_i`."""
        kernel = compiled(_descend, _descend_types, own.dtype)
        kernel(0, len(g), *self._edges, a.astype(own.dtype, copy=False), own, received, g, factor, into)
