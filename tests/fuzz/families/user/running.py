"""A small run with a problem of one's own, and what may become of an array on its way."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

import d3gd
from d3gd.problems import Problem
from tests.fuzz import controls
from tests.fuzz.case import EITHER, EQUAL, RIGHT, WRONG, silent

N, D = 4, 3
GRAPH = d3gd.graphs.erdos_renyi(N, 0.7, seed=2)
TARGETS = np.random.default_rng(1).standard_normal((N, D))
Change = Callable[[Any], Any]
# What may become of an array of right shape. Gradients here are -1, 0 and 1, which every type holds exactly.
CHANGES: dict[str, tuple[str, Change]] = {
    "a list": (EQUAL, lambda g: g.tolist()),
    "float32": (EQUAL, lambda g: g.astype(np.float32)),
    "float16": (EQUAL, lambda g: g.astype(np.float16)),
    "whole numbers": (EQUAL, lambda g: g.astype(np.int8)),
    "Fortran order": (EQUAL, np.asfortranarray),
    "big-endian": (EQUAL, lambda g: g.astype(">f8")),
    "every other row": (EQUAL, lambda g: np.repeat(g, 2, axis=0)[::2]),
    "read-only": (EQUAL, lambda g: _locked(g)),
    "long doubles": (EQUAL, lambda g: g.astype(np.longdouble)),
    "one row": (WRONG, lambda g: g[:1]),
    "one column": (WRONG, lambda g: g[..., :1]),
    "the first row only": (WRONG, lambda g: g[0]),
    "a number": (WRONG, lambda g: float(g.flat[0])),
    "nothing": (WRONG, lambda g: None),
    "a text": (WRONG, lambda g: "gradient"),
    "texts": (WRONG, lambda g: g.astype(str)),
    "complex": (WRONG, lambda g: g + 1j),
    "one more row": (WRONG, lambda g: np.concatenate([g, g[:1]])),
    "one row less": (WRONG, lambda g: g[:-1]),
    "one more axis": (WRONG, lambda g: g[..., None]),
    "transposed": (WRONG, lambda g: g.T),
    "flat": (WRONG, lambda g: g.ravel() if g.ndim > 1 else g[:0]),
    "sparse": (WRONG, lambda g: sparse.csr_array(np.atleast_2d(g))),
    "a dictionary": (WRONG, lambda g: {0: g}),
    "objects": (EITHER, lambda g: g.astype(object)),
    "masked": (EITHER, lambda g: np.ma.masked_array(g, g > 0)),
    "truths": (EITHER, lambda g: g > 0),
    "dates": (WRONG, lambda g: g.astype("M8[s]")),
    "NaN": (WRONG, lambda g: _with(g, math.nan)),
    "infinite": (WRONG, lambda g: _with(g, math.inf)),
    "huge": (EITHER, lambda g: g * 1e300),
}
SPECIAL = ("masked", "transposed", "infinite", "huge", "NaN")  # of interest in gradients only


class Signs(Problem):
    """Gradients of the distance in the 1-norm, changed from some evaluation on."""

    def __init__(self, change: Change = lambda g: g, since: int = 0, *, mutate: bool = False) -> None:
        self.agents, self.dim = N, D
        self.change, self.since, self.mutate = change, since, mutate

    def gradients(self, x: Any, k: int | None = None) -> Any:
        g = np.sign(x - TARGETS)  # user code
        if self.mutate:
            x += 1.0  # user code
        return g if k is None or k < self.since else self.change(g)


def run(problem: Any, **settings: Any) -> Any:
    method = settings.pop("method", None) or d3gd.DiDGD(step_size=settings.pop("step_size", 0.125))
    return d3gd.run(method, GRAPH, problem, **{"iterations": 6, "every": 2, **settings})


def plain(method: Any) -> Any:
    return run(Signs(), method=method)


def settle(expected: str, found: Any, control: Callable[[], Any]) -> str:
    """Judge a run that was accepted."""
    if found.status == "diverged":
        return RIGHT
    if not np.isfinite(found.x).all():
        silent(f"{found.status}, but its models are not finite")
    if expected == WRONG:
        silent(f"accepted: {found!r}")
    if expected == EQUAL and not controls.same(found, control()):
        silent("the same numbers in another form give another result")
    return RIGHT


def _locked(array: Any) -> Any:
    array.setflags(write=False)
    return array


def _with(array: Any, value: float) -> Any:
    array = np.array(array, dtype=float)
    array.flat[-1] = value
    return array
