"""Arguments from Python: one of a good call is replaced by something else."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import d3gd
from d3gd.problems import Problem
from d3gd.result import Result
from tests.fuzz import controls
from tests.fuzz.case import EITHER, EQUAL, REFUSED, RIGHT, WRONG, Case, silent
from tests.fuzz.families.calls import calls
from tests.fuzz.families.values import is_huge, other, shown

SECONDS = 20.0

_ALLOWED = {  # what is no mistake although it looks like one: argument, and why
    ("topologies.ac_gt", "sharpness", "inf"),  # its default
    ("ACGT", "sharpness", "inf"),  # equal distances stay together
    ("transports.connect", "timeout", "inf"),  # a process alone waits for nobody
    ("run(target=)", "level", "inf"),  # reached at once
    ("run(target=)", "level", "-inf"),  # never reached
    ("compare", "target", "inf"),
    ("compare", "target", "-inf"),
}
# Samples of any type are handed on as they are; numbers of any size are arranged as they are.
_ANYTHING = {("data.hold_out", "X"), ("data.split_by_label", "X"), ("Digraph.matrix", "values")}
_OPTIONAL = {"labels", "block", "batch", "test", "classes", "agent_ids", "weights", "x0", "metrics", "checkpoint_every"}
_OPTIONAL |= {"notes", "conditions", "start", "graphs", "target", "metric", "iterations", "seeds", "steps"}
_SIZES = {"n", "rows", "columns", "agents", "dim", "classes", "features", "samples", "test_samples", "batch", "delay"}
_SIZES |= {"iterations", "seeds", "budget"}


def prepare(home: Path) -> None:
    calls()


def case(case: Case) -> str:
    rng = case.rng
    chosen = calls()
    name = rng.choices(list(chosen), [call.weight for call in chosen.values()])[0]
    call = chosen[name]
    arguments, plain = dict(call.arguments), dict(call.arguments)
    expected, told = "", []
    for key in rng.sample(list(arguments), min(len(arguments), rng.choice([1, 1, 1, 1, 2]))):
        kind, value = other(rng, key, arguments[key])
        if (isinstance(value, float) and (name, key, str(value)) in _ALLOWED) or (value is None and key in _OPTIONAL):
            kind = EITHER
        if (name, key) in _ANYTHING:
            kind = EITHER
        case.asks_for_much |= key in _SIZES and is_huge(value)
        if key == "iterations" and is_huge(value) and name.startswith("run"):
            continue  # it would merely take long
        expected = kind if not expected else WRONG if WRONG in (kind, expected) else EITHER
        arguments[key] = value
        if kind == EQUAL and not callable(value):
            plain[key] = _plainly(value, plain[key])
        told.append(f"{key} = {shown(value)}")
    case.tell(f"{name}({', '.join(told)})")
    verdict, found = case.attempt(call.function, **arguments)
    if verdict == REFUSED:
        return REFUSED
    if isinstance(found, Result) and found.status == "diverged":
        return RIGHT  # nobody can overlook that
    if expected == WRONG:
        silent(f"accepted: {shown(found)}")
    if isinstance(found, Result):
        _require_sense(found)
    if expected == EQUAL and name != "compare" and not case.attempt(alike, found, call.function(**plain))[1]:
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
        return all(
            alike(getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(a) if "second" not in f.name
        )
    if isinstance(a, (int, float, np.generic)):
        return bool(a == b or (a != a and b != b))
    return type(a) is type(b)
