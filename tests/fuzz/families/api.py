"""Arguments from Python: one of a good call is replaced by something else."""

import dataclasses
import enum
import functools
import math
import random
import re
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import d3gd
from d3gd.problems import Problem
from d3gd.result import Result
from tests.fuzz import controls
from tests.fuzz.case import REFUSED, RIGHT, Case, silent
from tests.fuzz.families.calls import calls

SECONDS = 20.0

_EQUAL, _WRONG, _EITHER = "equal", "wrong", "either"  # means the same; must be refused; may be refused

_SCHEDULES = {"step_size", "refine_step"}
_ALLOWED = {  # what is no mistake although it looks like one: argument, and why
    ("topologies.ac_gt", "sharpness", "inf"),  # its default
    ("ACGT", "sharpness", "inf"),  # equal distances stay together
    ("transports.connect", "timeout", "inf"),  # a process alone waits for nobody
    ("run(target=)", "level", "inf"),  # reached at once
    ("run(target=)", "level", "-inf"),  # never reached
    ("compare", "target", "inf"),
    ("compare", "target", "-inf"),
}
_OPTIONAL = {"labels", "block", "batch", "test", "classes", "agent_ids", "weights", "x0", "metrics", "checkpoint_every"}
_OPTIONAL |= {"notes", "conditions", "start", "graphs", "target", "metric", "iterations", "seeds", "steps"}
_SIZES = {"n", "rows", "columns", "agents", "dim", "classes", "features", "samples", "test_samples", "batch", "delay"}
_SIZES |= {"iterations", "seeds", "budget"}


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


def prepare(home: Path) -> None:
    for call in calls().values():
        if call.weight >= 1:
            call.function(**call.arguments)


def case(case: Case) -> str:
    rng = case.rng
    chosen = calls()
    name = rng.choices(list(chosen), [call.weight for call in chosen.values()])[0]
    call = chosen[name]
    arguments, plain = dict(call.arguments), dict(call.arguments)
    expected, told = "", []
    for key in rng.sample(list(arguments), min(len(arguments), rng.choice([1, 1, 1, 1, 2]))):
        kind, value = _other(case, key, arguments[key])
        if (isinstance(value, float) and (name, key, str(value)) in _ALLOWED) or (value is None and key in _OPTIONAL):
            kind = _EITHER
        case.asks_for_much |= key in _SIZES and _is_huge(value)
        if key == "iterations" and _is_huge(value) and name.startswith("run"):
            continue  # it would merely take long
        expected = kind if not expected else _WRONG if _WRONG in (kind, expected) else _EITHER
        arguments[key] = value
        if kind == _EQUAL and not callable(value):
            plain[key] = _plainly(value, plain[key])
        told.append(f"{key} = {_shown(value)}")
    case.tell(f"{name}({', '.join(told)})")
    verdict, found = case.attempt(call.function, **arguments)
    if verdict == REFUSED:
        return REFUSED
    if isinstance(found, Result) and found.status == "diverged":
        return RIGHT  # nobody can overlook that
    if expected == _WRONG:
        silent(f"accepted: {_shown(found)}")
    if isinstance(found, Result):
        _require_sense(found)
    if expected == _EQUAL and not case.attempt(alike, found, call.function(**plain))[1]:
        silent("the same value of another type gives another result")
    return RIGHT


def _require_sense(result: Result) -> None:
    if result.status != "diverged" and not np.isfinite(result.x).all():
        silent(f"{result.status}, but its models are not finite")


def _plainly(value: Any, old: Any) -> Any:
    """An equal value in the type that one would write."""
    if isinstance(old, bool) or old is None or isinstance(old, str):
        return old
    if isinstance(old, int):
        return int(value)
    return float(value) if isinstance(old, float) else old


def _is_huge(value: Any) -> bool:
    number = isinstance(value, (int, float, np.integer, np.floating, Decimal, Fraction)) and math.isfinite(value)
    return bool(number and abs(value) > 10_000)


# Values


def _other(case: Case, key: str, old: Any) -> tuple[str, Any]:
    """Another value for an argument, and what is to become of it."""
    rng = case.rng
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
        return rng.choice([(_WRONG, 3), (_WRONG, "x"), (_WRONG, [1]), (_EITHER, {"a": np.int64(1)}), (_EITHER, {"a": object()})])
    if isinstance(old, (list, tuple)):
        return _sequence(rng, old)
    return _object(rng, old)


def _flag(rng: random.Random, old: bool) -> tuple[str, Any]:
    equal = [np.bool_(old), int(old)]
    wrong = ["no", math.nan, 2, np.array([True, False]), object(), 0.5]
    return _drawn(rng, {_EQUAL: equal, _WRONG: wrong, _EITHER: ["", None, []]})


def _count(rng: random.Random, old: int) -> tuple[str, Any]:
    equal = [np.int64(old), np.int32(old), np.uint8(old), np.uint64(old), np.array(old), _Indexed(old), enum.IntEnum("E", {"a": old}).a]
    wrong = [old + 0.5, math.nan, math.inf, str(old), [old], b"1", complex(old), -1, -(2**70), np.array([old, old]), object(), {}]
    wrong += [np.float64("nan"), np.int64(-1), np.datetime64("2020"), lambda k: old, np.array("x"), Decimal("NaN")]
    either = [float(old), True, 0, None, np.float64(old), Decimal(old), Fraction(old), 1, 2, 3]
    huge = [2**k + d for k in (31, 32, 40, 53, 62, 63, 64, 200) for d in (-1, 0, 1)] + [np.uint64(2**64 - 1), np.int64(2**62)]
    return _drawn(rng, {_EQUAL: equal, _WRONG: wrong, _EITHER: either + huge})


def _number(rng: random.Random, old: float, *, schedule: bool) -> tuple[str, Any]:
    equal = [np.float64(old), np.float32(old), np.array(old), np.longdouble(old), Fraction(old), Decimal(old)]
    wrong = [math.nan, -math.inf, math.inf, str(old), [old], b"1", complex(old, 1), np.array([old, old]), object(), {}]
    wrong += [np.float32("nan"), np.float64("inf"), None, np.datetime64("2020"), Decimal("NaN"), np.array(math.nan)]
    if schedule:
        equal += [functools.partial(_size, old), _Falling(old), lambda k: old, _Falling(old).__call__, lambda k: np.float64(old)]
        wrong += [lambda k: math.nan, lambda k: -1.0, lambda k: "x", lambda k: None, lambda k: np.array([old, old])]
    either = [0, 1, 2, -1, 0.0, -0.0, 5e-324, 1e-320, 1e-30, 1e154, 1e308, -1e308, 10**400, 2**62, True, np.int64(1), 0.5, 1.5]
    either += [-(10**400), np.float16(old), lambda k: 0.0, lambda k: 5e-324] if schedule else []
    return _drawn(rng, {_EQUAL: equal, _WRONG: wrong, _EITHER: either})


def _word(rng: random.Random, old: str) -> tuple[str, Any]:
    wrong = [3, math.nan, "", "nonsense", ["after"], "\x1b[31m", object(), {}, "x" * 3000, ("a",), np.array(["a", "b"])]
    return _drawn(rng, {_EQUAL: [np.str_(old)], _WRONG: wrong, _EITHER: [None, old.encode(), old.upper(), Path(old or "x")]})


def _array(rng: random.Random, old: Any) -> tuple[str, Any]:
    whole = old.dtype.kind in "iu"
    spoilt = old.astype(float)
    spoilt.flat[rng.randrange(old.size)] = rng.choice([math.nan, math.inf, -math.inf])
    equal = [old.tolist(), np.asfortranarray(old), old.astype(">i8" if whole else ">f8"), np.repeat(old, 2, axis=0)[::2]]
    wrong = [spoilt, old.astype(complex) * 1j, old.astype(str), None, "text", 3.5, {}, object(), [[1], [1, 2]], old[None, None]]
    wrong += [np.empty(0), old.astype("M8[s]"), np.array(None), b"bytes", [None] * len(old), lambda: old]
    either = [old[:-1], old[None], old.ravel(), old.T, np.ma.masked_array(old, old == old.flat[0]), old.astype(np.float16)]
    either += [old.astype(object), -old, old * 0, old * 1e300, old + 2**62, np.asmatrix(old) if old.ndim < 3 else old]
    return _drawn(rng, {_EQUAL: equal, _WRONG: wrong, _EITHER: either})


def _matrix(rng: random.Random, old: Any) -> tuple[str, Any]:
    dense = old.toarray()
    equal = [dense, dense.tolist(), old.tocoo(), old.tocsc(), sparse.csr_matrix(old), old.tolil(), old.todok(), old.todia()]
    broken, name = old.copy(), rng.choice(["indices", "indptr"])
    array = getattr(broken, name).copy()
    array[rng.randrange(array.size)] = rng.choice([-1, 4, 99, 10**6, -(2**31), 2**31 - 1])
    setattr(broken, name, array)
    short = old.copy()
    short.data = short.data[: rng.randrange(short.data.size)]
    expected, value = _array(rng, dense)
    value = value if expected == _WRONG else broken
    return _drawn(rng, {_EQUAL: equal, _WRONG: [broken, broken, short, value, value], _EITHER: [old * 2, old.T, old[:2], old.astype("f4")]})


def _sequence(rng: random.Random, old: Any) -> tuple[str, Any]:
    wrong = [3, "text" * 9, object(), [object()], [None], [[[]]], {"a": 1}, [math.nan], lambda: old, np.array(3)]
    other = type(old)(reversed(old))
    return _drawn(rng, {_EQUAL: [old], _WRONG: wrong, _EITHER: [[], None, other, [*old, *old], iter(old), np.array(old, dtype=object)]})


def _object(rng: random.Random, old: Any) -> tuple[str, Any]:
    import networkx as nx

    wrong = [3, "ring", object(), type(old), [], {}, math.nan, np.eye(4), lambda: old]
    wrong += [other for other in (d3gd.graphs.ring(4), d3gd.problems.quadratic(agents=4, dim=3)) if not isinstance(old, type(other))]
    return _drawn(rng, {_EQUAL: [old], _WRONG: wrong, _EITHER: [None, nx.cycle_graph(4)]})


def _drawn(rng: random.Random, pools: dict[str, list[Any]]) -> tuple[str, Any]:
    kind = rng.choice(list(pools))
    return kind, rng.choice(pools[kind])


def _shown(value: Any) -> str:
    """A value in a few words, the same in every process; one with broken arrays cannot even be printed safely."""
    if sparse.issparse(value):
        return f"{type(value).__name__} of {value.dtype}, indices {getattr(value, 'indices', ())}"[:100]
    if isinstance(value, functools.partial) or callable(value):
        return f"{type(value).__name__} {getattr(value, '__qualname__', '')}"
    text = re.sub(r" at 0x[0-9a-f]+", "", f"{type(value).__name__} {value!r}")
    return " ".join(text.split())[:100]


# Comparing


def alike(a: Any, b: Any) -> bool:
    """Whether two values of the library are the same, bit for bit."""
    if isinstance(a, Result):
        return controls.same(a, b)
    if sparse.issparse(a):
        return controls.same_array(a.toarray(), b.toarray())
    if isinstance(a, np.ndarray):
        return controls.same_array(a, b)
    if isinstance(a, d3gd.Digraph):
        return alike((a.n, a.indptr, a.sources, a.labels), (b.n, b.indptr, b.sources, b.labels))
    if isinstance(a, Problem):
        return (a.agents, a.dim, a.fingerprint()) == (b.agents, b.dim, b.fingerprint())
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(alike(*pair) for pair in zip(a, b, strict=True))
    if dataclasses.is_dataclass(a):
        return all(alike(getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(a) if "second" not in f.name)
    if isinstance(a, (int, float, np.generic)):
        return bool(a == b or (a != a and b != b))
    return type(a) is type(b)
