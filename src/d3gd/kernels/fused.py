"""Equations of rows, compiled: one pass over memory on every core, without intermediate results.

Bitwise equal to the same equation in NumPy: see :mod:`d3gd.kernels.compiling`. NumPy and numba promote mixed precisions
by different rules, so an equation of these is compared on some random rows first, and left to NumPy if it differs.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

import numba
import numpy as np
from numba.extending import register_jitable

from d3gd.arrays import Array
from d3gd.kernels.compiling import Kernel
from d3gd.kernels.threads import in_parts

Equation: TypeAlias = Callable[..., Any]

_PRECISIONS = (np.float64, np.float32)
_PIECE = 1 << 10  # numbers, of which the fastest cache holds some arrays
_SAMPLE = 256  # numbers; each has an even chance to show that roundings differ


# One loop per pattern of arguments: "x" is an array of rows, "y" a column of one number per row, read once per row.
# Where a result may overwrite its first argument, long rows go through a piece of other memory: a loop is vectorized
# only if it writes to none of what it reads.


def _xx(f):  # type: ignore[no-untyped-def]
    def kernel(first, last, numbers, result, p, q):  # type: ignore[no-untyped-def]
        width, scratch = result.shape[1], np.empty(_PIECE, dtype=result.dtype)
        for i in range(first, last):
            if width <= _PIECE:
                for c in range(width):
                    result[i, c] = f(p[i, c], q[i, c], *numbers)
                continue
            for start in range(0, width, _PIECE):
                end = min(start + _PIECE, width)
                piece, into, ps, qs = scratch[: end - start], result[i, start:end], p[i, start:end], q[i, start:end]
                for c in range(len(piece)):
                    piece[c] = f(ps[c], qs[c], *numbers)
                for c in range(len(piece)):
                    into[c] = piece[c]

    return kernel


def _xy(f):  # type: ignore[no-untyped-def]
    def kernel(first, last, numbers, result, p, y):  # type: ignore[no-untyped-def]
        for i in range(first, last):
            w = y[i, 0]
            for c in range(result.shape[1]):
                result[i, c] = f(p[i, c], w, *numbers)

    return kernel


def _xxy(f):  # type: ignore[no-untyped-def]
    def kernel(first, last, numbers, result, p, q, y):  # type: ignore[no-untyped-def]
        width, scratch = result.shape[1], np.empty(_PIECE, dtype=result.dtype)
        for i in range(first, last):
            w = y[i, 0]
            if width <= _PIECE:
                for c in range(width):
                    result[i, c] = f(p[i, c], q[i, c], w, *numbers)
                continue
            for start in range(0, width, _PIECE):
                end = min(start + _PIECE, width)
                piece, into, ps, qs = scratch[: end - start], result[i, start:end], p[i, start:end], q[i, start:end]
                for c in range(len(piece)):
                    piece[c] = f(ps[c], qs[c], w, *numbers)
                for c in range(len(piece)):
                    into[c] = piece[c]

    return kernel


def _xxx(f):  # type: ignore[no-untyped-def]
    def kernel(first, last, numbers, result, p, q, r):  # type: ignore[no-untyped-def]
        width, scratch = result.shape[1], np.empty(_PIECE, dtype=result.dtype)
        for i in range(first, last):
            if width <= _PIECE:
                for c in range(width):
                    result[i, c] = f(p[i, c], q[i, c], r[i, c], *numbers)
                continue
            for start in range(0, width, _PIECE):
                end = min(start + _PIECE, width)
                piece, into = scratch[: end - start], result[i, start:end]
                ps, qs, rs = p[i, start:end], q[i, start:end], r[i, start:end]
                for c in range(len(piece)):
                    piece[c] = f(ps[c], qs[c], rs[c], *numbers)
                for c in range(len(piece)):
                    into[c] = piece[c]

    return kernel


def _xxxy(f):  # type: ignore[no-untyped-def]
    def kernel(first, last, numbers, result, p, q, r, y):  # type: ignore[no-untyped-def]
        width, scratch = result.shape[1], np.empty(_PIECE, dtype=result.dtype)
        for i in range(first, last):
            w = y[i, 0]
            if width <= _PIECE:
                for c in range(width):
                    result[i, c] = f(p[i, c], q[i, c], r[i, c], w, *numbers)
                continue
            for start in range(0, width, _PIECE):
                end = min(start + _PIECE, width)
                piece, into = scratch[: end - start], result[i, start:end]
                ps, qs, rs = p[i, start:end], q[i, start:end], r[i, start:end]
                for c in range(len(piece)):
                    piece[c] = f(ps[c], qs[c], rs[c], w, *numbers)
                for c in range(len(piece)):
                    into[c] = piece[c]

    return kernel


def _xxyy(f):  # type: ignore[no-untyped-def]
    def kernel(first, last, numbers, result, p, q, y, z):  # type: ignore[no-untyped-def]
        width, scratch = result.shape[1], np.empty(_PIECE, dtype=result.dtype)
        for i in range(first, last):
            v, w = y[i, 0], z[i, 0]
            for start in range(0, width, _PIECE):
                end = min(start + _PIECE, width)
                piece, into, ps, qs = scratch[: end - start], result[i, start:end], p[i, start:end], q[i, start:end]
                for c in range(len(piece)):
                    piece[c] = f(ps[c], qs[c], v, w, *numbers)
                for c in range(len(piece)):
                    into[c] = piece[c]

    return kernel


def _xyxx(f):  # type: ignore[no-untyped-def]
    def kernel(first, last, numbers, result, p, y, q, r):  # type: ignore[no-untyped-def]
        for i in range(first, last):
            w = y[i, 0]
            for c in range(result.shape[1]):
                result[i, c] = f(p[i, c], w, q[i, c], r[i, c], *numbers)

    return kernel


def _xxxxy(f):  # type: ignore[no-untyped-def]
    def kernel(first, last, numbers, result, p, q, r, s, y):  # type: ignore[no-untyped-def]
        for i in range(first, last):
            w = y[i, 0]
            for c in range(result.shape[1]):
                result[i, c] = f(p[i, c], q[i, c], r[i, c], s[i, c], w, *numbers)

    return kernel


_LOOPS: dict[str, Callable[[Equation], Kernel]] = {
    "xx": _xx,
    "xy": _xy,
    "xxy": _xxy,
    "xxx": _xxx,
    "xxxy": _xxxy,
    "xxyy": _xxyy,
    "xyxx": _xyxx,
    "xxxxy": _xxxxy,
}


def evaluate(equation: Equation, rows: Sequence[Array], numbers: Mapping[str, float], result: Array) -> bool:
    """Evaluate an equation into ``result``, if it can be compiled; return whether it was.

    Args:
        equation: A function of numbers, those of rows first.
        rows: Arrays of rows, or of one number per row, in double or single precision.
        numbers: Its other arguments.
        result: An array for the result, which may be one of the rows.
    """
    names = equation.__code__.co_varnames[len(rows) : equation.__code__.co_argcount]
    if set(names) != set(numbers) or not all(_is_plain(array) for array in (*rows, result)):
        return False
    pattern = "".join("x" if row.shape == result.shape else "y" for row in rows)
    if pattern not in _LOOPS or not all(row.shape in (result.shape, (len(result), 1)) for row in rows):
        return False
    dtypes = tuple([array.dtype for array in (*rows, result)])
    if not _agrees(equation, pattern, dtypes, names):
        return False
    values = _values([numbers[name] for name in names], dtypes)
    in_parts(_kernel(equation, pattern), range(len(result) + 1), result.shape[1], values, result, *rows)
    return True


def _is_plain(array: Array) -> bool:
    return array.ndim == 2 and array.dtype in _PRECISIONS and array.flags.c_contiguous


def _values(numbers: Sequence[float], dtypes: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return numbers in the precision that NumPy gives them: single if all rows are."""
    kind = np.float32 if np.float64 not in dtypes[:-1] else float
    return tuple([kind(number) for number in numbers])


@cache
def _agrees(equation: Equation, pattern: str, dtypes: tuple[Any, ...], names: tuple[str, ...]) -> bool:
    """Whether the kernel has the bits of NumPy; in double precision it has, so that nothing needs to be compared."""
    if set(dtypes) == {np.dtype(np.float64)}:
        return True
    random = np.random.default_rng(0)
    rows = [
        random.uniform(0.5, 2, (1, _SAMPLE if kind == "x" else 1)).astype(dtype)
        for kind, dtype in zip(pattern, dtypes, strict=False)
    ]
    numbers = random.uniform(0.5, 2, len(names)).tolist()
    result = np.empty((1, _SAMPLE), dtypes[-1])
    _kernel(equation, pattern)(0, 1, _values(numbers, dtypes), result, *rows)
    wanted = equation(*rows, **dict(zip(names, numbers, strict=True))).astype(dtypes[-1])
    return bool(np.array_equal(result, wanted))


@cache
def _kernel(equation: Equation, pattern: str) -> Kernel:
    """Return the kernel of an equation for a pattern of its arguments."""
    loop = _LOOPS[pattern](register_jitable(equation))
    try:
        kernel: Kernel = numba.njit(nogil=True, cache=True, error_model="numpy")(loop)
    except RuntimeError:  # no folder for the machine code: see d3gd.kernels.compiling.compiled
        kernel = numba.njit(nogil=True, error_model="numpy")(loop)
    return kernel
