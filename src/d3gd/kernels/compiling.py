"""Compilation of kernels; importing this module loads numba.

A kernel is a function ``kernel(first, last, *arrays)`` that handles the rows ``first`` to ``last - 1``. The compiled
one is bitwise equal to the plain one: it sums in the same order, without fused multiply-adds or other relaxed
arithmetic. It releases the interpreter's lock, so that :mod:`d3gd.kernels.threads` can divide rows among cores.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import numba
import numpy as np
from numba.core import types

Kernel: TypeAlias = Callable[..., None]
Signature: TypeAlias = Callable[[Any], tuple[Any, ...]]  # from the dtype of real numbers to the types of all arrays

WHOLE = types.int64


def given(numbers: Any, axes: int) -> Any:
    """The type of an array that a kernel reads; writable arrays are also accepted."""
    return types.Array(numbers, axes, "C", readonly=True)


def made(numbers: Any, axes: int) -> Any:
    """The type of an array that a kernel writes."""
    return types.Array(numbers, axes, "C")


@cache
def compiled(kernel: Kernel, signature: Signature, dtype: np.dtype[Any]) -> Kernel:
    """Compile a kernel for one dtype, and cache the machine code on disk if possible."""
    arguments = types.void(WHOLE, WHOLE, *signature(numba.from_dtype(dtype)))
    try:
        machine_code: Kernel = numba.njit(arguments, nogil=True, cache=True, error_model="numpy")(kernel)
    except RuntimeError:  # neither the package's folder nor the user's cache can be written to
        machine_code = numba.njit(arguments, nogil=True, error_model="numpy")(kernel)
    return machine_code
