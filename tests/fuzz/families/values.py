"""Other values for an argument, and whether it means the same, must be refused, or may be."""

import enum
import functools
import math
import random
import re
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
from scipy import sparse

import d3gd
from tests.fuzz.case import EITHER, EQUAL, WRONG

_SCHEDULES = {"step_size", "refine_step"}


def other(rng: random.Random, key: str, old: Any) -> tuple[str, Any]:
    """Another value for an argument, and what is to become of it."""
    if isinstance(old, bool):
        return _flag(rng, old)
    if isinstance(old, (int, np.integer)):
        return _count(rng, int(old))
    if isinstance(old, float):
        return _number(rng, old, schedule=key in _SCHEDULES)
    if isinstance(old, str):
        return _word(rng, old)
    if sparse.issparse(old):
        return _matrix(rng, old)
    if isinstance(old, np.ndarray):
        return _array(rng, old)
    if isinstance(old, Mapping):
        wrong = [3, "x", [1], "", 0, [], np.array(3), lambda: old]
        either = [{}, {"a": np.int64(1)}, {"a": object()}, dict.fromkeys(old, object()), {3: 3}]
        either += [dict.fromkeys(old, lambda: 3), dict.fromkeys(old, np.nan)]
        return _drawn(rng, {WRONG: wrong, EITHER: either})
    if isinstance(old, (list, tuple)):
        return _sequence(rng, old)
    return _object(rng, old)


def _flag(rng: random.Random, old: bool) -> tuple[str, Any]:
    equal = [np.bool_(old), int(old)]
    wrong = ["no", math.nan, 2, np.array([True, False]), object(), 0.5]
    return _drawn(rng, {EQUAL: equal, WRONG: wrong, EITHER: ["", None, []]})


def _count(rng: random.Random, old: int) -> tuple[str, Any]:
    equal = [
        np.int64(old),
        np.int32(old),
        np.uint16(old),
        np.uint64(old),
        np.array(old),
        _Indexed(old),
        enum.IntEnum("E", {"a": old}).a,
    ]
    wrong = [
        old + 0.5,
        math.nan,
        math.inf,
        str(old),
        [old],
        b"1",
        complex(old),
        -1,
        -(2**70),
        np.array([old, old]),
        object(),
        {},
    ]
    wrong += [np.float64("nan"), np.int64(-1), np.datetime64("2020"), lambda k: old, np.array("x"), Decimal("NaN")]
    either = [float(old), True, 0, None, np.float64(old), Decimal(old), Fraction(old), 1, 2, 3]
    huge = [2**k + d for k in (31, 32, 40, 53, 62, 63, 64, 200) for d in (-1, 0, 1)] + [
        np.uint64(2**64 - 1),
        np.int64(2**62),
    ]
    return _drawn(rng, {EQUAL: equal, WRONG: wrong, EITHER: either + huge})


def _number(rng: random.Random, old: float, *, schedule: bool) -> tuple[str, Any]:
    equal = [np.float64(old), np.float32(old), np.array(old), np.longdouble(old), Fraction(old), Decimal(old)]
    wrong = [math.nan, -math.inf, math.inf, str(old), [old], b"1", complex(old, 1), np.array([old, old]), object(), {}]
    wrong += [np.float32("nan"), np.float64("inf"), None, np.datetime64("2020"), Decimal("NaN"), np.array(math.nan)]
    if schedule:
        equal += [
            functools.partial(_size, old),
            _Falling(old),
            lambda k: old,
            _Falling(old).__call__,
            lambda k: np.float64(old),
        ]
        wrong += [lambda k: math.nan, lambda k: -1.0, lambda k: "x", lambda k: None, lambda k: np.array([old, old])]
    either = [
        0,
        1,
        2,
        -1,
        0.0,
        -0.0,
        5e-324,
        1e-320,
        1e-30,
        1e154,
        1e308,
        -1e308,
        10**400,
        2**62,
        True,
        np.int64(1),
        0.5,
        1.5,
    ]
    either += [-(10**400), np.float16(old), lambda k: 0.0, lambda k: 5e-324] if schedule else []
    return _drawn(rng, {EQUAL: equal, WRONG: wrong, EITHER: either})


def _word(rng: random.Random, old: str) -> tuple[str, Any]:
    wrong = [3, math.nan, "", "nonsense", ["after"], "\x1b[31m", object(), {}, "x" * 3000, ("a",), np.array(["a", "b"])]
    return _drawn(
        rng, {EQUAL: [np.str_(old)], WRONG: wrong, EITHER: [None, old.encode(), old.upper(), Path(old or "x")]}
    )


def _array(rng: random.Random, old: Any) -> tuple[str, Any]:
    whole = old.dtype.kind in "iu"
    spoilt = old.astype(float)
    spoilt.flat[rng.randrange(old.size)] = rng.choice([math.nan, math.inf, -math.inf])
    equal = [
        old.tolist(),
        np.asfortranarray(old),
        old.astype(">i8" if whole else ">f8"),
        np.repeat(old, 2, axis=0)[::2],
    ]
    equal += [old.astype(str)]  # with all digits
    wrong = [spoilt, old.astype(complex) * 1j, None, "text", 3.5, {}, object(), [[1], [1, 2]], old[None, None]]
    wrong += [np.empty(0), old.astype("M8[s]"), np.array(None), b"bytes", [None] * len(old), lambda: old]
    either = [
        old[:-1],
        old[None],
        old.ravel(),
        old.T,
        np.ma.masked_array(old, old == old.flat[0]),
        old.astype(np.float16),
    ]
    either += [old.astype(object), -old, old * 0, old * 1e300, old + 2**62, np.asmatrix(old) if old.ndim < 3 else old]
    return _drawn(rng, {EQUAL: equal, WRONG: wrong, EITHER: either})


def _matrix(rng: random.Random, old: Any) -> tuple[str, Any]:
    dense = old.toarray()
    equal = [
        dense,
        dense.tolist(),
        old.tocoo(),
        old.tocsc(),
        sparse.csr_matrix(old),
        old.tolil(),
        old.todok(),
        old.todia(),
    ]
    broken, name = old.copy(), rng.choice(["indices", "indptr"])
    array = getattr(broken, name).copy()
    array[rng.randrange(array.size)] = rng.choice([-1, 4, 99, 10**6, -(2**31), 2**31 - 1])
    setattr(broken, name, array)
    short = old.copy()
    short.data = short.data[: rng.randrange(short.data.size)]
    expected, value = _array(rng, dense)
    value = value if expected == WRONG else broken
    return _drawn(
        rng,
        {
            EQUAL: equal,
            WRONG: [broken, broken, short, value, value],
            EITHER: [old * 2, old.T, old[:2], old.astype("f4")],
        },
    )


def _sequence(rng: random.Random, old: Any) -> tuple[str, Any]:
    wrong = [3, "text" * 9, object(), [object()], [None], [[[]]], {"a": 1}, [math.nan], lambda *args: old, np.array(3)]
    other = type(old)(reversed(old))
    return _drawn(rng, {EQUAL: [old], WRONG: wrong, EITHER: [[], None, other, [*old, *old], iter(old)]})


def _object(rng: random.Random, old: Any) -> tuple[str, Any]:
    import networkx as nx

    wrong = [3, "ring", object(), [], {}, math.nan, np.eye(4), lambda: old]
    wrong += [] if isinstance(old, FunctionType) else [type(old)]
    wrong += [
        other
        for other in (d3gd.graphs.ring(4), d3gd.problems.quadratic(agents=4, dim=3))
        if not isinstance(old, type(other))
    ]
    return _drawn(rng, {EQUAL: [old], WRONG: wrong, EITHER: [None, nx.cycle_graph(4)]})


def _drawn(rng: random.Random, pools: dict[str, list[Any]]) -> tuple[str, Any]:
    kind = rng.choice(list(pools))
    return kind, rng.choice(pools[kind])


class _Indexed:
    """Whole numbers of another make."""

    def __init__(self, value: int) -> None:
        self._value = value

    def __index__(self) -> int:
        return self._value


class _Falling:
    """A schedule that is an object."""

    def __init__(self, size: float) -> None:
        self._size = size

    def __call__(self, k: int) -> float:
        return self._size


def _size(size: float, k: int) -> float:
    return size


def is_huge(value: Any) -> bool:
    number = isinstance(value, (int, float, np.integer, np.floating, Decimal, Fraction)) and math.isfinite(value)
    return bool(number and abs(value) > 10_000)


def shown(value: Any) -> str:
    """A value in a few words, the same in every process; one with broken arrays cannot even be printed safely."""
    if sparse.issparse(value):
        return f"{type(value).__name__} of {value.dtype}, indices {getattr(value, 'indices', ())}"[:100]
    if isinstance(value, functools.partial) or callable(value):
        return f"{type(value).__name__} {getattr(value, '__qualname__', '')}"
    text = re.sub(r" at 0x[0-9a-f]+", "", f"{type(value).__name__} {value!r}")
    return " ".join(text.split())[:100]
