"""Rows divided among the cores of the machine; no result depends on how many there are."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise

import numpy as np

from d3gd.arrays import Array, Ints

_DIRECT = 1 << 17  # numbers below which dividing the work costs more than it brings
_PIECE = 1 << 14  # numbers of each array in a piece: few enough that intermediate results stay in the cache
_PARTS = 4  # per core, so that a core that is disturbed does not keep the others waiting

_limit: int | None = None


@contextmanager
def threads(limit: int | None) -> Iterator[None]:
    """Let the kernels use at most so many threads; None lets them use every core that this process may use."""
    global _limit
    before, _limit = _limit, limit
    try:
        yield
    finally:
        _limit = before


def cores() -> int:
    """Return how many threads the kernels use."""
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
    """Return this process's pool; a forked child has none of its parent's threads and needs its own."""
    return ThreadPoolExecutor(_cores(), thread_name_prefix="d3gd")


def in_parts(work: Callable[[int, int], None], starts: Ints, width: int) -> None:
    """Call ``work(first, last)`` on ranges of rows that together cover all, with about equally many entries each.

    Args:
        work: What to do with rows ``first`` to ``last - 1``; it must release the interpreter's lock to be of use.
        starts: Where each row's entries begin, and where the last one's end.
        width: Numbers that an entry stands for.
    """
    rows, count = len(starts) - 1, cores()
    if count == 1 or (starts[-1] - starts[0]) * width < _DIRECT:
        work(0, rows)
        return
    wanted = np.linspace(starts[0], starts[-1], count * _PARTS + 1)[1:-1]
    cuts = np.unique([0, *np.searchsorted(starts, wanted), rows])
    for done in [_pool(os.getpid()).submit(work, int(a), int(b)) for a, b in pairwise(cuts)]:
        done.result()


def rowwise(expression: Callable[..., Array], *arrays: Array, out: Array | None = None) -> Array:
    """Evaluate an expression whose rows depend on the same rows of the arrays only.

    Large arrays are handled a piece at a time: the same bits, without intermediate results as large as the arrays.

    Args:
        expression: A function of arrays.
        arrays: Its arguments, with equally many rows each. The first one has the shape of the result.
        out: Where the result may be put; one of the arrays, if nobody needs it any more.

    Returns:
        The result.

    Example:
        >>> rowwise(lambda x, y: x / y, np.ones((2, 3)), np.array([[1.0], [2.0]]))
        array([[1. , 1. , 1. ],
               [0.5, 0.5, 0.5]])
    """
    first = arrays[0]
    if first.size < _DIRECT:
        return expression(*arrays)
    result = np.empty_like(first) if out is None else out
    step = max(1, _PIECE // (first.size // len(first)))
    states = np.geterr()

    def work(begin: int, end: int) -> None:
        with np.errstate(**states):  # what is silenced in this thread is not in the others
            for a in range(begin, end, step):
                piece = slice(a, min(a + step, end))
                result[piece] = expression(*(array[piece] for array in arrays))

    in_parts(work, np.arange(len(first) + 1), first.size // len(first))
    return result
