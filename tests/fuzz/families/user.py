"""A user's own code: problems, methods, schedules, metrics and callbacks that return what they should not."""

import functools
import math
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import d3gd
from d3gd.problems import Problem, from_functions
from d3gd.result import Result
from tests.fuzz import controls
from tests.fuzz.case import REFUSED, RIGHT, BrokenError, Case, silent

SECONDS = 20.0

_N, _D = 4, 3
_GRAPH = d3gd.graphs.erdos_renyi(_N, 0.7, seed=2)
_TARGETS = np.random.default_rng(1).standard_normal((_N, _D))
_EQUAL, _WRONG, _EITHER = "equal", "wrong", "either"

Change = Callable[[Any], Any]

# What may become of an array of right shape. Gradients here are -1, 0 and 1, which every type holds exactly.
_CHANGES: dict[str, tuple[str, Change]] = {
    "a list": (_EQUAL, lambda g: g.tolist()),
    "float32": (_EQUAL, lambda g: g.astype(np.float32)),
    "float16": (_EQUAL, lambda g: g.astype(np.float16)),
    "whole numbers": (_EQUAL, lambda g: g.astype(np.int8)),
    "Fortran order": (_EQUAL, np.asfortranarray),
    "big-endian": (_EQUAL, lambda g: g.astype(">f8")),
    "every other row": (_EQUAL, lambda g: np.repeat(g, 2, axis=0)[::2]),
    "read-only": (_EQUAL, lambda g: _locked(g)),
    "long doubles": (_EQUAL, lambda g: g.astype(np.longdouble)),
    "one row": (_WRONG, lambda g: g[:1]),
    "one column": (_WRONG, lambda g: g[..., :1]),
    "the first row only": (_WRONG, lambda g: g[0]),
    "a number": (_WRONG, lambda g: float(g.flat[0])),
    "nothing": (_WRONG, lambda g: None),
    "a text": (_WRONG, lambda g: "gradient"),
    "texts": (_WRONG, lambda g: g.astype(str)),
    "complex": (_WRONG, lambda g: g + 1j),
    "one more row": (_WRONG, lambda g: np.concatenate([g, g[:1]])),
    "one row less": (_WRONG, lambda g: g[:-1]),
    "one more axis": (_WRONG, lambda g: g[..., None]),
    "transposed": (_WRONG, lambda g: g.T),
    "flat": (_WRONG, lambda g: g.ravel() if g.ndim > 1 else g[:0]),
    "sparse": (_WRONG, lambda g: sparse.csr_array(np.atleast_2d(g))),
    "a dictionary": (_WRONG, lambda g: {0: g}),
    "objects": (_EITHER, lambda g: g.astype(object)),
    "masked": (_EITHER, lambda g: np.ma.masked_array(g, g > 0)),
    "truths": (_EITHER, lambda g: g > 0),
    "dates": (_WRONG, lambda g: g.astype("M8[s]")),
    "NaN": (_WRONG, lambda g: _with(g, math.nan)),
    "infinite": (_WRONG, lambda g: _with(g, math.inf)),
    "huge": (_EITHER, lambda g: g * 1e300),
}


def prepare(home: Path) -> None:
    _run(_Signs(lambda g: g, 0))


def case(case: Case) -> str:
    ways = {_gradients: 10, _functions: 6, _losses: 5, _attributes: 4, _steps: 8, _metrics: 8, _methods: 8, _others: 5}
    try:
        return case.rng.choices(list(ways), list(ways.values()))[0](case)
    except BrokenError as broken:
        if broken.__context__ is not None and _raised_by_user(broken.__context__):
            return REFUSED  # Python itself has told the user where
        raise


def _raised_by_user(error: BaseException) -> bool:
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and frames[-1].filename == __file__ and "user code" in (frames[-1].line or "")


def _locked(array: Any) -> Any:
    array.setflags(write=False)
    return array


def _with(array: Any, value: float) -> Any:
    array = np.array(array, dtype=float)
    array.flat[-1] = value
    return array


class _Signs(Problem):
    """Gradients of the distance in the 1-norm, changed from some evaluation on."""

    def __init__(self, change: Change, since: int, mutate: bool = False) -> None:
        self.agents, self.dim = _N, _D
        self.change, self.since, self.mutate = change, since, mutate
        self.calls = 0

    def gradients(self, x: Any, k: int | None = None) -> Any:
        g = np.sign(x - _TARGETS)
        if self.mutate:
            x += 1.0  # user code
        if k is None:
            return g
        self.calls += 1
        return self.change(g) if k >= self.since else g


class _Told(_Signs):
    """The same with a loss, which is changed instead."""

    def __init__(self, change: Change, since: int) -> None:
        super().__init__(lambda g: g, 0)
        self.change_loss = change
        self.records = 0
        self.first = since

    def losses(self, x: Any) -> Any:
        losses = np.round(np.abs(x - _TARGETS).sum(axis=1))
        return self.change_loss(losses)


def _run(problem: Any, **settings: Any) -> Any:
    method = settings.pop("method", None) or d3gd.DiDGD(step_size=settings.pop("step_size", 0.125))
    return d3gd.run(method, _GRAPH, problem, **{"iterations": 6, "every": 2, **settings})


def _settle(case: Case, expected: str, found: Any, control: Callable[[], Any]) -> str:
    """Judge a run that was accepted."""
    if found.status == "diverged":
        return RIGHT
    if not np.isfinite(found.x).all():
        silent(f"{found.status}, but its models are not finite")
    if expected == _WRONG:
        silent(f"accepted: {found!r}")
    if expected == _EQUAL and not controls.same(found, control()):
        silent("the same numbers in another form give another result")
    return RIGHT


def _gradients(case: Case) -> str:
    """A problem of one's own."""
    rng = case.rng
    name = rng.choice(list(_CHANGES))
    expected, change = _CHANGES[name]
    since = rng.choice([0, 0, 1, 3])
    way = rng.choice(["returns", "returns", "returns", "mutates its input", "returns its input", "reuses a buffer"])
    method = _method(rng)
    case.tell(f"gradients from iteration {since} on: {name if way == 'returns' else way}; {type(method).__name__}")
    if way == "mutates its input":
        verdict, found = case.attempt(_run, _Signs(lambda g: g, 0, mutate=True), method=method)
        return REFUSED if verdict == REFUSED else _settle(case, _EQUAL, found, lambda: _plain(method))
    if way == "reuses a buffer":
        buffer = np.empty((_N, _D))

        def change(g: Any) -> Any:
            buffer[:] = g
            return buffer

        expected = _EQUAL
    if way == "returns its input":
        verdict, found = case.attempt(_run, _Identity(), method=method)
        return REFUSED if verdict == REFUSED else _settle(case, _EQUAL, found, lambda: _run(_Copied(), method=method))
    verdict, found = case.attempt(_run, _Signs(change, since), method=method)
    if verdict == REFUSED:
        return REFUSED
    return _settle(case, expected, found, lambda: _plain(method))


def _plain(method: Any) -> Any:
    return _run(_Signs(lambda g: g, 0), method=method)


def _method(rng: Any) -> Any:
    """Any method for directed graphs."""
    return rng.choice([
        d3gd.DiDGD(step_size=0.125), d3gd.D3GD(step_size=0.125), d3gd.D3GD(step_size=0.125, rule="global"),
        d3gd.PerronD3GD(step_size=0.125, rule="local"), d3gd.PushPull(step_size=0.125), d3gd.FROST(step_size=0.125),
        d3gd.SGP(step_size=0.125), d3gd.PushDIGing(step_size=0.125), d3gd.Centralized(step_size=0.125, momentum=0.5),
    ])  # fmt: skip


class _Identity(Problem):
    """Half the squared norm: the gradient is the model itself."""

    def __init__(self) -> None:
        self.agents, self.dim = _N, _D

    def start(self) -> Any:
        return np.ones(_D)

    def gradients(self, x: Any, k: int | None = None) -> Any:
        return x


class _Copied(_Identity):
    def gradients(self, x: Any, k: int | None = None) -> Any:
        return x.copy()


def _functions(case: Case) -> str:
    """Gradients agent by agent."""
    rng = case.rng
    name = rng.choice(list(_CHANGES))
    expected, change = _CHANGES[name]
    if name == "transposed":  # of one row, that is the row
        expected = _EQUAL
    if name == "one row less" and rng.random() < 0.5:
        expected, change = _WRONG, lambda g: g[:0]
    case.tell(f"from_functions: gradient returns {name}")
    agent = rng.randrange(_N)

    def gradient(i: int, x: Any) -> Any:
        g = np.sign(x - _TARGETS[i])
        return change(g) if i == agent else g

    def good(i: int, x: Any) -> Any:
        return np.sign(x - _TARGETS[i])

    verdict, found = case.attempt(lambda: _run(from_functions(agents=_N, dim=_D, gradient=gradient)))
    if verdict == REFUSED:
        return REFUSED
    return _settle(case, expected, found, lambda: _run(from_functions(agents=_N, dim=_D, gradient=good)))


def _losses(case: Case) -> str:
    """A loss that is no number per agent."""
    rng = case.rng
    name = rng.choice([name for name in _CHANGES if name not in ("one column", "transposed", "infinite", "huge", "NaN")])
    expected, change = _CHANGES[name]
    case.tell(f"losses return {name}")
    verdict, found = case.attempt(_run, _Told(change, 0), out=rng.choice([None, "run"]))
    if verdict == REFUSED:
        return REFUSED
    return _settle(case, expected, found, lambda: _run(_Told(lambda g: g, 0)))


def _attributes(case: Case) -> str:
    """Sizes, starts and accuracies of a problem of one's own that are not what they should be."""
    rng = case.rng
    name = rng.choice(["agents", "dim", "start", "accuracies"])
    problem = _Signs(lambda g: g, 0)
    if name in ("agents", "dim"):
        old = getattr(problem, name)
        value = rng.choice([np.int64(old), np.uint8(old), float(old), str(old), None, -old, 0, old + 1, math.nan, [old], 2**62, 10**30])
        expected = _EQUAL if value == old and not isinstance(value, float) else _EITHER if value == old else _WRONG
        setattr(problem, name, value)
        case.asks_for_much = isinstance(value, int) and value > 10_000
        case.tell(f"{name} = {value!r}")
    else:
        good = np.zeros(_D) if name == "start" else np.full(_N, 0.5)
        form = rng.choice(list(_CHANGES))
        expected, change = _CHANGES[form]
        if form in ("transposed", "one column", "one row", "huge", "NaN", "infinite") or name == "accuracies":
            expected = _EITHER
        setattr(problem, name, lambda *args: change(good))
        case.tell(f"{name}() returns {form}")
    verdict, found = case.attempt(_run, problem)
    if verdict == REFUSED:
        return REFUSED
    return _settle(case, expected if name != "accuracies" else _EITHER, found, lambda: _run(_Signs(lambda g: g, 0)))


def _steps(case: Case) -> str:
    """A step size that is a function, into a folder or not."""
    rng = case.rng
    size = 0.125
    returns: dict[str, tuple[str, Callable[[int], Any]]] = {
        "a float": (_EQUAL, lambda k: size),
        "np.float64": (_EQUAL, lambda k: np.float64(size)),
        "np.float32": (_EQUAL, lambda k: np.float32(size)),
        "an array of one": (_EITHER, lambda k: np.array([size])),
        "an array": (_EQUAL, lambda k: np.array(size)),
        "one per coordinate": (_WRONG, lambda k: np.full(_D, size)),
        "one per agent": (_WRONG, lambda k: np.full((_N, 1), size)),
        "NaN": (_WRONG, lambda k: math.nan),
        "infinity": (_WRONG, lambda k: math.inf),
        "zero": (_EITHER, lambda k: 0.0),
        "zero in time": (_EITHER, lambda k: 1e-300**k * size),
        "less than zero": (_WRONG, lambda k: -size),
        "a text": (_WRONG, lambda k: "0.1"),
        "nothing": (_WRONG, lambda k: None),
        "complex": (_WRONG, lambda k: size + 1j),
        "true": (_EITHER, lambda k: True),
        "huge": (_EITHER, lambda k: 1e308),
        "a huge int": (_EITHER, lambda k: 10**400),
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
    problem = _Signs(lambda g: g, 0)
    metrics = rng.choice([None, ["design", "loss"]]) if kind is d3gd.DiDGD else None
    metrics = ["design", "stationarity"] if metrics else None
    verdict, found = case.attempt(lambda: _run(problem, method=kind(**settings), out=out, metrics=metrics))
    if verdict == REFUSED:
        return REFUSED
    return _settle(case, expected, found, lambda: _run(problem, method=kind(**{**settings, key: size}), metrics=metrics))


def _metrics(case: Case) -> str:
    """Metrics of one's own: odd names, odd values; a folder must give back what the run returned."""
    rng = case.rng
    values: dict[str, Callable[[Any], Any]] = {
        "a float": lambda s: 0.1 * s.k,
        "an int": lambda s: s.k,
        "np.float32": lambda s: np.float32(0.1 * s.k),
        "np.int64": lambda s: np.int64(s.k),
        "a truth": lambda s: s.k > 2,
        "np.bool_": lambda s: np.bool_(s.k > 2),
        "one per agent": lambda s: s.x[:, 0],
        "an array of one": lambda s: s.x[:1, 0],
        "no dimension": lambda s: np.array(0.5),
        "a matrix": lambda s: s.x,
        "an empty array": lambda s: s.x[:0, 0],
        "a growing array": lambda s: np.ones(s.k + 1),
        "a list": lambda s: [1.0, 2.0],
        "nothing": lambda s: None,
        "a text": lambda s: "1.5",
        "complex": lambda s: 1j,
        "NaN": lambda s: math.nan,
        "infinity": lambda s: -math.inf,
        "huge": lambda s: 2**70,
        "an object": lambda s: object(),
        "a dictionary": lambda s: {"a": 1},
        "whole, then not": lambda s: s.k if s.k < 3 else 0.5,
        "nothing, then a number": lambda s: None if s.k < 3 else 0.5,
    }
    names = ["mine", "iteration", "", "a,b", "a\nb", 'a"b', "a[0]", "a[", "[0]", "\x1b[31m", "é", " ", "a\rb", 3, None, ("a",), "nan", "a.b", "#"]
    value = rng.choice(list(values))
    name = "mine" if rng.random() < 0.5 else rng.choice(names)
    shown = ["loss"] if rng.random() < 0.3 else []
    metrics = {name: values[value], **{key: d3gd.metrics.METRICS["disagreement"] for key in shown}}
    target = rng.choice([None, None, {name: 0.5}])
    case.tell(f"metric {name!r} returns {value}, target {target}")
    verdict, found = case.attempt(_run, _Signs(lambda g: g, 0), metrics=metrics, out="run", target=target)
    if verdict == REFUSED:
        return REFUSED
    verdict, loaded = case.attempt(Result.load, "run")
    if verdict == REFUSED:
        silent(f"the run ended well, and its folder cannot be read: {loaded}")
    if not controls.same(found, loaded):
        silent(f"the folder gives back {loaded.metrics}, the run gave {found.metrics}"[:300])
    return RIGHT


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


def _methods(case: Case) -> str:
    """A method of one's own, one of whose answers is no good."""
    rng = case.rng
    which = rng.choice(["point", "weights", "scale"])
    strange = ("transposed", "huge", "truths", "NaN", "infinite", "whole numbers")  # still numbers of the right shape
    form = rng.choice([name for name in _CHANGES if name not in strange])
    expected, change = _CHANGES[form]
    if form in ("float16", "float32", "long doubles", "big-endian") or (which == "scale" and form == "nothing"):
        expected = _EITHER
    if which != "point" and form in ("one column", "flat"):  # of a vector, that is the vector or nothing
        expected = _EITHER
    case.tell(f"a method whose {which} returns {form}")
    metrics = ["stationarity", "perron_error", "n_min_pi"]
    out = rng.choice([None, "run"])
    method = _Odd(step_size=0.125, which=which, change=change)
    verdict, found = case.attempt(_run, _Signs(lambda g: g, 0), method=method, metrics=metrics, out=out)
    if verdict == REFUSED:
        return REFUSED
    control = _Odd(step_size=0.125)
    return _settle(case, expected, found, lambda: _run(_Signs(lambda g: g, 0), method=control, metrics=metrics))


def _others(case: Case) -> str:
    """Callbacks, notes, and graphs that change by a function."""
    rng = case.rng
    way = rng.choice(["callback", "callback", "graphs", "graphs", "notes", "x0"])
    settings: dict[str, Any] = {}
    expected = _EITHER
    if way == "callback":
        value = rng.choice([None, True, False, np.True_, 1, "yes", [], np.ones(3), object(), math.nan])
        callbacks = rng.choice([[lambda s: value], lambda s: value, [3], [None], 3, "x", (lambda s: value, lambda s: None)])
        settings["callbacks"] = callbacks
        expected = _WRONG if callbacks in ([3], [None], 3, "x") else _EITHER
        told = f"{callbacks if expected == _WRONG else type(callbacks).__name__} returns {value!r}"
    elif way == "graphs":
        other = d3gd.graphs.ring(5)
        value = rng.choice([None, 3, "ring", other, _GRAPH, [_GRAPH], np.eye(4), d3gd.graphs.complete(_N)])
        graphs = rng.choice([lambda k: value, functools.partial(lambda v, k: v, value), [value], [_GRAPH, value], value])
        told = f"graphs {type(graphs).__name__} of {value!r}"
        verdict, conditions = case.attempt(d3gd.Conditions, graphs=graphs, biased=True)
        if verdict == REFUSED:
            case.tell(told)
            return REFUSED
        settings["conditions"] = conditions
    elif way == "notes":
        notes = rng.choice([{"a": np.float64(1)}, {"a": {1, 2}}, {"a": object()}, {3: 4}, {"algorithm": 1}, {"a": math.nan}, {"a": b"x"}, [1]])
        settings |= {"notes": notes, "out": "run"}
        told = repr(notes)
    else:
        x0 = rng.choice([1e150, 1e300, -1e308, 1e38, 3.5e38, 1e-320, 1e20])
        settings |= {"x0": np.full(_D, x0), "dtype": rng.choice(["float32", "float64"])}
        told = f"{x0} in {settings['dtype']}"
    case.tell(f"{way}: {told}"[:150])
    verdict, found = case.attempt(_run, _Signs(lambda g: g, 0), **settings)
    return REFUSED if verdict == REFUSED else _settle(case, expected, found, lambda: None)
