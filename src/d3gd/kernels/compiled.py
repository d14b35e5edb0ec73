"""Compiled kernels, bitwise equal to the plain ones; see :mod:`d3gd.kernels.compiling`."""

import math
from functools import lru_cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from d3gd.arrays import Floats, Ints
from d3gd.kernels.buffers import LARGE, Buffers
from d3gd.kernels.compiling import WHOLE, Kernel, Signature, compiled, given, made
from d3gd.kernels.threads import in_parts

_AHEAD = 16  # edges ahead at which a row is prefetched; rows of random neighbours are not in the cache
_LINE = 64  # bytes of a cache line
_WIDE = 1 << 12  # numbers from which a row is mixed in pieces
_NEAR = 1 << 20  # bytes of rows that the cache holds, so that nothing needs to be prefetched


@intrinsic
def _fetch(context, rows, row, column):  # type: ignore[no-untyped-def]
    """Prefetch the cache line of ``rows[row, column]``."""

    def code(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = cgutils.get_item_pointer(context, builder, signature.args[0], array, arguments[1:], wraparound=False)
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        prefetch = cgutils.get_or_insert_function(builder.module, shape, "llvm.prefetch.p0i8")
        builder.call(prefetch, [builder.bitcast(place, byte), word(0), word(3), word(1)])  # to read, to keep, data
        return context.get_dummy_value()

    return types.void(rows, row, column), code


def _mix(first, last, indptr, columns, a, x, others, mixed):  # type: ignore[no-untyped-def]
    edges, line, own, far = len(columns), _LINE // x.itemsize, len(x), (x.size + others.size) * x.itemsize > _NEAR
    for i in range(first, last):
        row, begin, end = mixed[i], indptr[i], indptr[i + 1]
        if len(row) > _WIDE:  # in pieces that stay in the cache, in the same order
            for start in range(0, len(row), _WIDE):
                piece = row[start : start + _WIDE]
                piece[:] = 0
                for e in range(begin, end):
                    weight, heard = a[e], x[columns[e]] if columns[e] < own else others[columns[e] - own]
                    some = heard[start : start + _WIDE]
                    for c in range(len(piece)):
                        piece[c] += weight * some[c]
            continue
        fours = begin + (end - begin) // 4 * 4
        row[:] = 0
        for e in range(begin, fours, 4):  # four edges in one pass over the row, added in their order
            if far:
                for f in range(e + _AHEAD, min(e + _AHEAD + 4, edges)):
                    ahead = columns[f]
                    for c in range(0, x.shape[1], line):
                        if ahead < own:
                            _fetch(x, ahead, c)
                        else:
                            _fetch(others, ahead - own, c)
            i0, i1, i2, i3 = columns[e], columns[e + 1], columns[e + 2], columns[e + 3]
            a0, a1, a2, a3 = a[e], a[e + 1], a[e + 2], a[e + 3]
            x0, x1 = x[i0] if i0 < own else others[i0 - own], x[i1] if i1 < own else others[i1 - own]
            x2, x3 = x[i2] if i2 < own else others[i2 - own], x[i3] if i3 < own else others[i3 - own]
            for c in range(len(row)):
                row[c] = (((row[c] + a0 * x0[c]) + a1 * x1[c]) + a2 * x2[c]) + a3 * x3[c]
        for e in range(fours, end):
            if far:
                ahead = columns[min(e + _AHEAD, edges - 1)]
                for c in range(0, x.shape[1], line):
                    if ahead < own:
                        _fetch(x, ahead, c)
                    else:
                        _fetch(others, ahead - own, c)
            weight, heard = a[e], x[columns[e]] if columns[e] < own else others[columns[e] - own]
            for c in range(len(row)):
                row[c] += weight * heard[c]


def _dot(first, last, indptr, columns, counts, merges, v, x, origin, values):  # type: ignore[no-untyped-def]
    end, line = len(columns) - 1, _LINE // x.itemsize
    sums = np.empty(64, dtype=x.dtype)
    for i in range(first, last):
        mine, from_here = v[i], origin[i % len(origin)]
        for e in range(indptr[i], indptr[i + 1]):
            ahead = columns[min(e + _AHEAD, end)]
            for c in range(0, x.shape[1], line):
                _fetch(x, ahead, c)
            heard = x[columns[e]]
            begin, top = 0, 0
            for block in range(len(counts)):
                count = counts[block]
                p, q, o = mine[begin : begin + count], heard[begin : begin + count], from_here[begin : begin + count]
                begin += count
                whole = count - count % 8
                total = p[0] * (q[0] - o[0])
                if whole:
                    l0, l1, l2, l3 = total, p[1] * (q[1] - o[1]), p[2] * (q[2] - o[2]), p[3] * (q[3] - o[3])
                    l4, l5 = p[4] * (q[4] - o[4]), p[5] * (q[5] - o[5])
                    l6, l7 = p[6] * (q[6] - o[6]), p[7] * (q[7] - o[7])
                    for c in range(8, whole, 8):
                        l0 += p[c] * (q[c] - o[c])
                        l1 += p[c + 1] * (q[c + 1] - o[c + 1])
                        l2 += p[c + 2] * (q[c + 2] - o[c + 2])
                        l3 += p[c + 3] * (q[c + 3] - o[c + 3])
                        l4 += p[c + 4] * (q[c + 4] - o[c + 4])
                        l5 += p[c + 5] * (q[c + 5] - o[c + 5])
                        l6 += p[c + 6] * (q[c + 6] - o[c + 6])
                        l7 += p[c + 7] * (q[c + 7] - o[c + 7])
                    total = ((l0 + l1) + (l2 + l3)) + ((l4 + l5) + (l6 + l7))
                for c in range(max(whole, 1), count):
                    total += p[c] * (q[c] - o[c])
                sums[top] = total
                for _ in range(merges[block]):
                    top -= 1
                    sums[top] += sums[top + 1]
                top += 1
            values[e] = sums[0]


@lru_cache(maxsize=64)
def _blocks(count: int) -> tuple[Ints, Ints]:
    """Return NumPy's order of summation: blocks, and the number of partial sums to merge after each."""

    def split(count: int) -> list[list[int]]:
        if count <= 128:
            return [[count, 0]]
        half = count // 2 - count // 2 % 8
        blocks = split(half) + split(count - half)
        blocks[-1][1] += 1
        return blocks

    counts, merges = np.array(split(count)).T
    return np.ascontiguousarray(counts), np.ascontiguousarray(merges)


def _project(first, last, indptr, edges, projected):  # type: ignore[no-untyped-def]
    longest = 0
    for i in range(first, last):
        longest = max(longest, indptr[i + 1] - indptr[i])
    scratch, one = np.empty(longest, dtype=edges.dtype), np.ones(1, dtype=edges.dtype)[0]
    for i in range(first, last):
        begin, width = indptr[i], indptr[i + 1] - indptr[i]
        row, result, falling = edges[begin : begin + width], projected[begin : begin + width], scratch[:width]
        top = row[0]
        for j in range(1, width):
            if top == top and not row[j] <= top:  # NaN propagates
                top = row[j]
        for j in range(width):
            falling[j] = row[j] - top  # or a row of huge numbers would not sum to one
        gap = 1
        while gap < width // 3:
            gap = 3 * gap + 1
        while gap > 0:  # Shell's sort: little overhead for short rows, never quadratic for long ones
            for j in range(gap, width):
                value, k = falling[j], j
                while k >= gap and falling[k - gap] < value:
                    falling[k] = falling[k - gap]
                    k -= gap
                falling[k] = value
            gap //= 3
        # Everything in the dtype of the edges, as in NumPy: an integer would promote float32 to float64.
        total, count, support = falling[0] - falling[0], one - one, 0
        for j in range(width):
            total, count = total + falling[j], count + one
            support += falling[j] * count > total - one
        total, count = falling[0] - falling[0], one - one
        for j in range(support):
            total, count = total + falling[j], count + one
        theta = (total - one) / count
        for j in range(width):
            less = (row[j] - top) - theta
            result[j] = less if not less <= 0 else 0.0


def _mixing(sent: Any, mixed: Any) -> tuple[Any, ...]:
    return (given(WHOLE, 1), given(WHOLE, 1), given(mixed, 1), given(sent, 2), given(sent, 2), made(mixed, 2))


def _alike(sent: Any) -> tuple[Any, ...]:
    return _mixing(sent, sent)


def _in_double(sent: Any) -> tuple[Any, ...]:
    return _mixing(sent, types.float64)


_SIGNATURES: dict[Kernel, Signature] = {
    _dot: lambda f: (*[given(WHOLE, 1)] * 4, given(f, 2), given(f, 2), given(f, 2), made(f, 1)),
    _project: lambda f: (given(WHOLE, 1), given(f, 1), made(f, 1)),
}


def _compiled(kernel: Kernel, dtype: np.dtype[Any]) -> Kernel:
    return compiled(kernel, _SIGNATURES[kernel], dtype)


class Compiled:
    """The same operations as :class:`d3gd.kernels.plain.Plain`, on every core."""

    def __init__(self, indptr: Ints, columns: Ints) -> None:
        self._indptr, self._columns = np.ascontiguousarray(indptr), np.ascontiguousarray(columns)
        self._buffers = Buffers(LARGE)

    def mix(self, a: Floats, own: Floats, received: Floats, dtype: Any) -> Floats:
        r"""Return :math:`\sum_j a_{ij} x_j`, summed in the order of the edges, in a given precision.

        Args:
            a: The weights.
            own: The first of the rows x.
            received: The others.
            dtype: The precision: that of the rows, or double.
        """
        if own.ndim != 2:
            width = math.prod(own.shape[1:])
            x, others = own.reshape(len(own), width), received.reshape(len(received), width)
            return self.mix(a, x, others, dtype).reshape(-1, *own.shape[1:])
        x, others, width = np.ascontiguousarray(own), np.ascontiguousarray(received), own.shape[1]
        a = np.ascontiguousarray(a, dtype=dtype)
        mixed = self._buffers.empty((len(self._indptr) - 1, width), dtype)
        kernel = compiled(_mix, _alike if x.dtype == dtype else _in_double, x.dtype)
        in_parts(kernel, self._indptr, width, self._indptr, self._columns, a, x, others, mixed)
        return mixed

    def dot(self, v: Floats, received: Floats, origin: Floats | None) -> Floats:
        r"""Return :math:`\langle v_i, x_j - o_i \rangle` on every edge."""
        x, v = np.ascontiguousarray(received), np.ascontiguousarray(v)
        o = np.zeros((1, x.shape[1]), dtype=x.dtype) if origin is None else np.ascontiguousarray(origin)
        values = np.empty(len(self._columns), dtype=x.dtype)
        kernel, blocks = _compiled(_dot, x.dtype), _blocks(x.shape[1])
        in_parts(kernel, self._indptr, x.shape[1], self._indptr, self._columns, *blocks, v, x, o, values)
        return values

    def project(self, edges: Floats) -> Floats:
        """Project each agent's edge values onto its probability simplex."""
        edges = np.ascontiguousarray(edges)
        projected = np.empty_like(edges)
        in_parts(_compiled(_project, edges.dtype), self._indptr, 16, self._indptr, edges, projected)
        return projected
