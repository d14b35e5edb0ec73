"""Division of rows among the cores of the machine; results do not depend on their number."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from d3gd.arrays import Array, Ints

_DIRECT = 1 << 17  # numbers below which dividing the work costs more than it gains
_WORTH = 1 << 14  # numbers from which a compiled equation is faster than NumPy, in spite of its call
_PIECE = 1 << 18  # bytes of each array in a chunk: it stays in the cache, and NumPy reuses temporary arrays this large
_PARTS = 4  # parts per core, so that others do not wait for a core that is interrupted

_limit: int | None = None


@contextmanager
def threads(limit: int | None) -> Iterator[None]:
    """Limit the number of threads of the kernels; None allows every core available to this process."""
    global _limit
    before, _limit = _limit, limit
    try:
        yield
    finally:
        _limit = before


def cores() -> int:
    """Return the number of threads that the kernels use."""
    return _cores() if _limit is None else min(_limit, _cores())


@lru_cache(maxsize=1)
def _cores() -> int:
    asked = os.environ.get("OMP_NUM_THREADS", "")
    if asked.isdecimal() and int(asked) > 0:
        return int(asked)
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


@lru_cache(maxsize=1)
def _pool(process: int) -> ThreadPoolExecutor:
    """Return this process's pool; a forked child does not inherit its parent's threads."""
    return ThreadPoolExecutor(_cores(), thread_name_prefix="d3gd")


def in_parts(work: Callable[..., None], starts: Ints | range, width: int, *arrays: Any) -> None:
    """Call ``work(first, last, *arrays)`` on ranges of rows that cover all rows, with about equally many entries each.

    Args:
        work: Processes rows ``first`` to ``last - 1``; it should release the interpreter's lock.
        starts: The start of each row's entries, from 0 on, and the end of the last one's; a range if each has one.
        width: Numbers per entry.
        arrays: Further arguments of ``work``.
    """
    rows = len(starts) - 1
    if starts[-1] * width < _DIRECT or (count := cores()) == 1:
        work(0, rows, *arrays)
        return
    wanted = np.linspace(0, starts[-1], count * _PARTS + 1)[1:-1]
    inside = wanted.astype(np.int64) if isinstance(starts, range) else np.searchsorted(starts, wanted)
    cuts = np.unique([0, *inside, rows])
    for done in [_pool(os.getpid()).submit(work, int(a), int(b), *arrays) for a, b in pairwise(cuts)]:
        done.result()


def is_small(rows: Array, compiled: bool = False) -> bool:
    """Whether NumPy evaluates an expression of these rows fastest at once; ``compiled``, if there is another way."""
    return rows.size < (min(_WORTH, _DIRECT) if compiled else _DIRECT)


def rowwise(expression: Callable[..., Array], *arrays: Array, out: Array | None = None) -> Array:
    """Evaluate an expression whose rows depend only on the same rows of the arrays.

    Large arrays are processed in chunks, without intermediate results as large as the arrays; bitwise equal.

    Args:
        expression: A function of arrays.
        arrays: Its arguments, with equally many rows. The first one has the shape of the result.
        out: A buffer for the result, which may be an input that is no longer needed.

    Returns:
        The result.

    Example:
        >>> rowwise(lambda x, y: x / y, np.ones((2, 3)), np.array([[1.0], [2.0]]))
        array([[1. , 1. , 1. ],
               [0.5, 0.5, 0.5]])
    """
    first = arrays[0]
    if is_small(first):
        return expression(*arrays)
    result = np.empty_like(first) if out is None else out
    step = -(-_PIECE * len(first) // first.nbytes)  # rounded up
    states = np.geterr()

    def work(begin: int, end: int) -> None:
        with np.errstate(**states):  # error states are per thread
            for a in range(begin, end, step):
                piece = slice(a, min(a + step, end))
                result[piece] = expression(*(array[piece] for array in arrays))

    in_parts(work, range(len(first) + 1), first.size // len(first))
    return result
