"""Equations of rows, compiled: one pass over memory on every core, without intermediate results.

Bitwise equal to the same equation in NumPy, in double precision: see :mod:`d3gd.kernels.compiling`.
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


# One loop per pattern of arguments: "x" is an array of rows, "y" a column of one number per row.


def _xy(f):  # type: ignore[no-untyped-def]
    def kernel(first, last, numbers, result, p, y):  # type: ignore[no-untyped-def]
        for i in range(first, last):
            for c in range(result.shape[1]):
                result[i, c] = f(p[i, c], y[i, 0], *numbers)

    return kernel


def _xxy(f):  # type: ignore[no-untyped-def]
    def kernel(first, last, numbers, result, p, q, y):  # type: ignore[no-untyped-def]
        for i in range(first, last):
            for c in range(result.shape[1]):
                result[i, c] = f(p[i, c], q[i, c], y[i, 0], *numbers)

    return kernel


def _xxx(f):  # type: ignore[no-untyped-def]
    def kernel(first, last, numbers, result, p, q, r):  # type: ignore[no-untyped-def]
        for i in range(first, last):
            for c in range(result.shape[1]):
                result[i, c] = f(p[i, c], q[i, c], r[i, c], *numbers)

    return kernel


def _xxxy(f):  # type: ignore[no-untyped-def]
    def kernel(first, last, numbers, result, p, q, r, y):  # type: ignore[no-untyped-def]
        for i in range(first, last):
            for c in range(result.shape[1]):
                result[i, c] = f(p[i, c], q[i, c], r[i, c], y[i, 0], *numbers)

    return kernel


def _xyxx(f):  # type: ignore[no-untyped-def]
    def kernel(first, last, numbers, result, p, y, q, r):  # type: ignore[no-untyped-def]
        for i in range(first, last):
            for c in range(result.shape[1]):
                result[i, c] = f(p[i, c], y[i, 0], q[i, c], r[i, c], *numbers)

    return kernel


def _xxxxy(f):  # type: ignore[no-untyped-def]
    def kernel(first, last, numbers, result, p, q, r, s, y):  # type: ignore[no-untyped-def]
        for i in range(first, last):
            for c in range(result.shape[1]):
                result[i, c] = f(p[i, c], q[i, c], r[i, c], s[i, c], y[i, 0], *numbers)

    return kernel


_LOOPS: dict[str, Callable[[Equation], Kernel]] = {
    "xy": _xy,
    "xxy": _xxy,
    "xxx": _xxx,
    "xxxy": _xxxy,
    "xyxx": _xyxx,
    "xxxxy": _xxxxy,
}


def evaluate(equation: Equation, rows: Sequence[Array], numbers: Mapping[str, float], result: Array) -> bool:
    """Evaluate an equation into ``result``, if it can be compiled; return whether it was.

    Args:
        equation: A function of numbers, those of rows first.
        rows: Arrays of rows, or of one number per row; equations of other than double precision are left to NumPy,
            whose rules for mixed precisions differ.
        numbers: Its other arguments.
        result: An array for the result, which may be one of the rows.
    """
    names = equation.__code__.co_varnames[len(rows) : equation.__code__.co_argcount]
    if set(names) != set(numbers) or not all(_is_plain(array) for array in (*rows, result)):
        return False
    kernel = _kernel(equation, "".join("x" if row.shape == result.shape else "y" for row in rows))
    if kernel is None or not all(row.shape in (result.shape, (len(result), 1)) for row in rows):
        return False
    values = tuple([float(numbers[name]) for name in names])
    in_parts(kernel, range(len(result) + 1), result.shape[1], values, result, *rows)
    return True


def _is_plain(array: Array) -> bool:
    return array.ndim == 2 and array.dtype == np.float64 and array.flags.c_contiguous


@cache
def _kernel(equation: Equation, pattern: str) -> Kernel | None:
    """Return the kernel of an equation, or None if there is no loop for this pattern of its arguments."""
    if pattern not in _LOOPS:
        return None
    loop = _LOOPS[pattern](register_jitable(equation))
    try:
        kernel: Kernel = numba.njit(nogil=True, cache=True, error_model="numpy")(loop)
    except RuntimeError:  # no folder for the machine code: see d3gd.kernels.compiling.compiled
        kernel = numba.njit(nogil=True, error_model="numpy")(loop)
    return kernel
