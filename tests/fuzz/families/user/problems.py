"""Problems of one's own: gradients, losses, sizes and starts of other types and shapes."""

import math
from typing import Any

import numpy as np

import d3gd
from d3gd.problems import Problem, from_functions
from tests.fuzz.case import EITHER, EQUAL, REFUSED, WRONG, Case
from tests.fuzz.families.user.running import (
    CHANGES,
    SPECIAL,
    TARGETS,
    Change,
    D,
    N,
    Signs,
    plain,
    run,
    settle,
)


def gradients_changed(case: Case) -> str:
    """A problem of one's own."""
    rng = case.rng
    name = rng.choice(list(CHANGES))
    expected, change = CHANGES[name]
    since = rng.choice([0, 0, 1, 3])
    way = rng.choice(["returns", "returns", "returns", "mutates its input", "returns its input", "reuses a buffer"])
    method = _method(rng)
    case.tell(f"gradients from iteration {since} on: {name if way == 'returns' else way}; {type(method).__name__}")
    if way == "mutates its input":
        verdict, found = case.attempt(run, Signs(mutate=True), method=method)
        return REFUSED if verdict == REFUSED else settle(EQUAL, found, lambda: plain(method))
    if way == "reuses a buffer":
        buffer = np.empty((N, D))

        def change(g: Any) -> Any:
            buffer[:] = g
            return buffer

        expected = EQUAL
    if way == "returns its input":
        verdict, found = case.attempt(run, _Identity(), method=method)
        return REFUSED if verdict == REFUSED else settle(EQUAL, found, lambda: run(_Copied(), method=method))
    verdict, found = case.attempt(run, Signs(change, since), method=method)
    if verdict == REFUSED:
        return REFUSED
    return settle(expected, found, lambda: plain(method))


def _method(rng: Any) -> Any:
    """Any method for directed graphs."""
    return rng.choice([
        d3gd.DiDGD(step_size=0.125), d3gd.D3GD(step_size=0.125), d3gd.D3GD(step_size=0.125, rule="global"),
        d3gd.PerronD3GD(step_size=0.125), d3gd.PushPull(step_size=0.125), d3gd.FROST(step_size=0.125),
        d3gd.SGP(step_size=0.125), d3gd.PushDIGing(step_size=0.125), d3gd.Centralized(step_size=0.125, momentum=0.5),
    ])  # fmt: skip


class _Identity(Problem):
    """Half the squared norm: the gradient is the model itself."""

    def __init__(self) -> None:
        self.agents, self.dim = N, D

    def start(self) -> Any:
        return np.ones(D)

    def gradients(self, x: Any, k: int | None = None) -> Any:
        return x


class _Copied(_Identity):
    def gradients(self, x: Any, k: int | None = None) -> Any:
        return x.copy()


def functions(case: Case) -> str:
    """Gradients agent by agent."""
    rng = case.rng
    name = rng.choice(list(CHANGES))
    expected, change = CHANGES[name]
    if name == "transposed":  # of one row, that is the row
        expected = EQUAL
    if name == "one row less" and rng.random() < 0.5:
        expected, change = WRONG, lambda g: g[:0]
    case.tell(f"from_functions: gradient returns {name}")
    agent = rng.randrange(N)

    def gradient(i: int, x: Any) -> Any:
        g = np.sign(x - TARGETS[i])
        return change(g) if i == agent else g

    def good(i: int, x: Any) -> Any:
        return np.sign(x - TARGETS[i])

    verdict, found = case.attempt(lambda: run(from_functions(agents=N, dim=D, gradient=gradient)))
    if verdict == REFUSED:
        return REFUSED
    return settle(expected, found, lambda: run(from_functions(agents=N, dim=D, gradient=good)))


class _Told(Signs):
    """The same with a loss, which is changed instead."""

    def __init__(self, change: Change) -> None:
        super().__init__()
        self.change_loss = change

    def losses(self, x: Any) -> Any:
        return self.change_loss(np.round(np.abs(x - TARGETS).sum(axis=1)))


def losses_changed(case: Case) -> str:
    """A loss that is no number per agent."""
    rng = case.rng
    name = rng.choice([name for name in CHANGES if name not in (*SPECIAL, "one column")])
    expected, change = CHANGES[name]
    case.tell(f"losses return {name}")
    verdict, found = case.attempt(run, _Told(change), out=rng.choice([None, "run"]))
    if verdict == REFUSED:
        return REFUSED
    return settle(expected, found, lambda: run(_Told(lambda losses: losses)))


def attributes(case: Case) -> str:
    """Sizes, starts and accuracies of a problem of one's own that are not what they should be."""
    rng = case.rng
    name = rng.choice(["agents", "dim", "start", "accuracies"])
    problem = Signs()
    if name in ("agents", "dim"):
        old = getattr(problem, name)
        value = rng.choice(
            [np.int64(old), np.uint8(old), float(old), str(old), None, -old, 0, old + 1, math.nan, [old], 2**62, 10**30]
        )
        expected = EQUAL if value == old and not isinstance(value, float) else EITHER if value == old else WRONG
        setattr(problem, name, value)
        case.asks_for_much = isinstance(value, int) and value > 10_000
        case.tell(f"{name} = {value!r}")
    else:
        good = np.zeros(D) if name == "start" else np.full(N, 0.5)
        form = rng.choice([form for form in CHANGES if form not in SPECIAL])
        expected, change = CHANGES[form]
        if form in ("one column", "one row", "nothing") or name == "accuracies":  # of a vector; none at all
            expected = EITHER
        setattr(problem, name, lambda *args: change(good))
        case.tell(f"{name}() returns {form}")
    verdict, found = case.attempt(run, problem)
    if verdict == REFUSED:
        return REFUSED
    return settle(expected if name != "accuracies" else EITHER, found, lambda: run(Signs()))
