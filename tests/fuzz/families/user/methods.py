"""Schedules and methods of one's own."""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import d3gd
from tests.fuzz.case import EITHER, EQUAL, REFUSED, WRONG, Case
from tests.fuzz.families.user.running import CHANGES, SPECIAL, D, N, Signs, run, settle


def steps(case: Case) -> str:
    """A step size that is a function, into a folder or not."""
    rng = case.rng
    size = 0.125
    returns: dict[str, tuple[str, Callable[[int], Any]]] = {
        "a float": (EQUAL, lambda k: size),
        "np.float64": (EQUAL, lambda k: np.float64(size)),
        "np.float32": (EQUAL, lambda k: np.float32(size)),
        "an array of one": (EITHER, lambda k: np.array([size])),
        "an array": (EQUAL, lambda k: np.array(size)),
        "one per coordinate": (WRONG, lambda k: np.full(D, size)),
        "one per agent": (WRONG, lambda k: np.full((N, 1), size)),
        "NaN": (WRONG, lambda k: math.nan),
        "infinity": (WRONG, lambda k: math.inf),
        "zero": (EITHER, lambda k: 0.0),
        "zero in time": (EITHER, lambda k: 1e-300**k * size),
        "less than zero": (WRONG, lambda k: -size),
        "a text": (WRONG, lambda k: "0.1"),
        "nothing": (WRONG, lambda k: None),
        "complex": (WRONG, lambda k: size + 1j),
        "true": (EITHER, lambda k: True),
        "huge": (EITHER, lambda k: 1e308),
        "a huge int": (EITHER, lambda k: 10**400),
    }
    name = rng.choice(list(returns))
    expected, function = returns[name]

    class Schedule:
        def __call__(self, k: int) -> Any:
            return function(k)

        def method(self, k: int) -> Any:
            return function(k)

    makes: dict[str, Callable[[], Any]] = {
        "a lambda": lambda: function,
        "a partial": lambda: functools.partial(lambda factor, k: function(k), 1.0),
        "an object": Schedule,
        "a method": lambda: Schedule().method,
    }
    make = rng.choice(list(makes))
    kind = rng.choice([d3gd.DiDGD, d3gd.D3GD, d3gd.PerronD3GD, d3gd.PushPull, d3gd.SGP, d3gd.FROST, d3gd.Centralized])
    key = "refine_step" if kind is d3gd.D3GD and rng.random() < 0.5 else "step_size"
    settings = {"step_size": size, key: makes[make]()}
    out = rng.choice([None, "run"])
    case.tell(f"{kind.__name__}({key} = {make} that returns {name}), out={out}")
    problem = Signs()
    metrics = ["design", "stationarity"] if kind is d3gd.DiDGD and rng.random() < 0.5 else None
    verdict, found = case.attempt(lambda: run(problem, method=kind(**settings), out=out, metrics=metrics))
    if verdict == REFUSED:
        return REFUSED
    return settle(expected, found, lambda: run(problem, method=kind(**{**settings, key: size}), metrics=metrics))


@dataclass(frozen=True, kw_only=True)
class _Odd(d3gd.DiDGD):
    """Di-DGD with one of its answers changed."""

    which: str = ""
    change: Any = None

    def point(self, s: Any) -> Any:
        return self._answer("point", super().point(s))

    def weights(self, net: Any, s: Any) -> Any:
        return self._answer("weights", super().weights(net, s))

    def scale(self, net: Any, s: Any) -> Any:
        return self._answer("scale", super().scale(net, s))

    def _answer(self, name: str, value: Any) -> Any:
        return self.change(value) if name == self.which else value


def methods(case: Case) -> str:
    """A method of one's own, one of whose answers is no good."""
    rng = case.rng
    which = rng.choice(["point", "weights", "scale"])
    form = rng.choice([name for name in CHANGES if name not in (*SPECIAL, "truths", "whole numbers")])
    expected, change = CHANGES[form]
    if form in ("float16", "float32", "long doubles", "big-endian") or (which == "scale" and form == "nothing"):
        expected = EITHER
    if which != "point" and form in ("one column", "flat"):  # of a vector, that is the vector or nothing
        expected = EITHER
    case.tell(f"a method whose {which} returns {form}")
    metrics = ["stationarity", "perron_error", "n_min_pi"]
    out = rng.choice([None, "run"])
    method = _Odd(step_size=0.125, which=which, change=change)
    verdict, found = case.attempt(run, Signs(), method=method, metrics=metrics, out=out)
    if verdict == REFUSED:
        return REFUSED
    control = _Odd(step_size=0.125)
    return settle(expected, found, lambda: run(Signs(), method=control, metrics=metrics))
