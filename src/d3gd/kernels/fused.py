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
_SAMPLE = 256  # numbers; each has an even chance to show that roundings differ


# One loop per pattern of arguments: "x" is an array of rows, "y" a column of one number per row, read once per row, and
# "o" the result itself, which the first argument then is: loops are vectorized only where the compiler can tell so.


def _xx(f):  # type: ignore[no-untyped-def]
    def kernel(first, last, numbers, result, p, q):  # type: ignore[no-untyped-def]
        for i in range(first, last):
            for c in range(result.shape[1]):
                result[i, c] = f(p[i, c], q[i, c], *numbers)

    return kernel


def _ox(f):  # type: ignore[no-untyped-def]
    def kernel(first, last, numbers, result, q):  # type: ignore[no-untyped-def]
        for i in range(first, last):
            for c in range(result.shape[1]):
                result[i, c] = f(result[i, c], q[i, c], *numbers)

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
        for i in range(first, last):
            w = y[i, 0]
            for c in range(result.shape[1]):
                result[i, c] = f(p[i, c], q[i, c], w, *numbers)

    return kernel


def _oxy(f):  # type: ignore[no-untyped-def]
    def kernel(first, last, numbers, result, q, y):  # type: ignore[no-untyped-def]
        for i in range(first, last):
            w = y[i, 0]
            for c in range(result.shape[1]):
                result[i, c] = f(result[i, c], q[i, c], w, *numbers)

    return kernel


def _xxx(f):  # type: ignore[no-untyped-def]
    def kernel(first, last, numbers, result, p, q, r):  # type: ignore[no-untyped-def]
        for i in range(first, last):
            for c in range(result.shape[1]):
                result[i, c] = f(p[i, c], q[i, c], r[i, c], *numbers)

    return kernel


def _oxx(f):  # type: ignore[no-untyped-def]
    def kernel(first, last, numbers, result, q, r):  # type: ignore[no-untyped-def]
        for i in range(first, last):
            for c in range(result.shape[1]):
                result[i, c] = f(result[i, c], q[i, c], r[i, c], *numbers)

    return kernel


def _xxxy(f):  # type: ignore[no-untyped-def]
    def kernel(first, last, numbers, result, p, q, r, y):  # type: ignore[no-untyped-def]
        for i in range(first, last):
            w = y[i, 0]
            for c in range(result.shape[1]):
                result[i, c] = f(p[i, c], q[i, c], r[i, c], w, *numbers)

    return kernel


def _oxxy(f):  # type: ignore[no-untyped-def]
    def kernel(first, last, numbers, result, q, r, y):  # type: ignore[no-untyped-def]
        for i in range(first, last):
            w = y[i, 0]
            for c in range(result.shape[1]):
                result[i, c] = f(result[i, c], q[i, c], r[i, c], w, *numbers)

    return kernel


def _xxyy(f):  # type: ignore[no-untyped-def]
    def kernel(first, last, numbers, result, p, q, y, z):  # type: ignore[no-untyped-def]
        for i in range(first, last):
            v, w = y[i, 0], z[i, 0]
            for c in range(result.shape[1]):
                result[i, c] = f(p[i, c], q[i, c], v, w, *numbers)

    return kernel


def _oxyy(f):  # type: ignore[no-untyped-def]
    def kernel(first, last, numbers, result, q, y, z):  # type: ignore[no-untyped-def]
        for i in range(first, last):
            v, w = y[i, 0], z[i, 0]
            for c in range(result.shape[1]):
                result[i, c] = f(result[i, c], q[i, c], v, w, *numbers)

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
    "ox": _ox,
    "xy": _xy,
    "xxy": _xxy,
    "oxy": _oxy,
    "xxx": _xxx,
    "oxx": _oxx,
    "xxxy": _xxxy,
    "oxxy": _oxxy,
    "xxyy": _xxyy,
    "oxyy": _oxyy,
    "xyxx": _xyxx,
    "xxxxy": _xxxxy,
}


def evaluate(equation: Equation, rows: Sequence[Array], numbers: Mapping[str, float], result: Array) -> bool:
    """Evaluate an equation into ``result``, if it can be compiled; return whether it was.

    Args:
        equation: A function of numbers, those of rows first.
        rows: Arrays of rows, or of one number per row, in double or single precision.
        numbers: Its other arguments.
        result: An array for the result, which may be the first of the rows.
    """
    names = equation.__code__.co_varnames[len(rows) : equation.__code__.co_argcount]
    if set(names) != set(numbers) or not all(_is_plain(array) for array in (*rows, result)):
        return False
    kinds = "".join("x" if row.shape == result.shape else "y" for row in rows)
    pattern = "o" + kinds[1:] if rows[0] is result and "o" + kinds[1:] in _LOOPS else kinds
    if pattern not in _LOOPS or not all(row.shape in (result.shape, (len(result), 1)) for row in rows):
        return False
    dtypes = tuple([array.dtype for array in (*rows, result)])
    if not _agrees(equation, pattern, dtypes, names):
        return False
    values = _values([numbers[name] for name in names], dtypes)
    others = rows[1:] if pattern.startswith("o") else rows
    in_parts(_kernel(equation, pattern), range(len(result) + 1), result.shape[1], values, result, *others)
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
        random.uniform(0.5, 2, (1, 1 if kind == "y" else _SAMPLE)).astype(dtype)
        for kind, dtype in zip(pattern, dtypes, strict=False)
    ]
    numbers = random.uniform(0.5, 2, len(names)).tolist()
    wanted = equation(*rows, **dict(zip(names, numbers, strict=True))).astype(dtypes[-1])
    result, others = (rows[0], rows[1:]) if pattern.startswith("o") else (np.empty((1, _SAMPLE), dtypes[-1]), rows)
    _kernel(equation, pattern)(0, 1, _values(numbers, dtypes), result, *others)
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
