"""Metrics, callbacks, notes and changing graphs of one's own."""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import d3gd
from d3gd.result import Result
from tests.fuzz import controls
from tests.fuzz.case import EITHER, REFUSED, RIGHT, WRONG, Case, silent
from tests.fuzz.families.user.running import GRAPH, D, N, Signs, run, settle


def metrics_changed(case: Case) -> str:
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
    names = [
        "mine",
        "iteration",
        "",
        "a,b",
        "a\nb",
        'a"b',
        "a[0]",
        "a[",
        "[0]",
        "\x1b[31m",
        "é",
        " ",
        "a\rb",
        3,
        None,
        ("a",),
        "nan",
        "a.b",
        "#",
    ]
    value = rng.choice(list(values))
    name = "mine" if rng.random() < 0.5 else rng.choice(names)
    shown = ["loss"] if rng.random() < 0.3 else []
    metrics = {name: values[value], **dict.fromkeys(shown, d3gd.metrics.METRICS["disagreement"])}
    target = rng.choice([None, None, {name: 0.5}])
    case.tell(f"metric {name!r} returns {value}, target {target}")
    verdict, found = case.attempt(run, Signs(), metrics=metrics, out="run", target=target)
    if verdict == REFUSED:
        return REFUSED
    verdict, loaded = case.attempt(Result.load, "run")
    if verdict == REFUSED:
        silent(f"the run ended well, and its folder cannot be read: {loaded}")
    if not controls.same(found, loaded):
        silent(f"the folder gives back {loaded.metrics}, the run gave {found.metrics}"[:300])
    return RIGHT


def others(case: Case) -> str:
    """Callbacks, notes, and graphs that change by a function."""
    rng = case.rng
    way = rng.choice(["callback", "callback", "graphs", "graphs", "notes", "x0"])
    settings: dict[str, Any] = {}
    expected = EITHER
    if way == "callback":
        value = rng.choice([None, True, False, np.True_, 1, "yes", [], np.ones(3), object(), math.nan])
        callbacks = rng.choice(
            [[lambda s: value], lambda s: value, [3], [None], 3, "x", (lambda s: value, lambda s: None)]
        )
        settings["callbacks"] = callbacks
        expected = WRONG if callbacks in ([3], [None], 3, "x") else EITHER
        told = f"{callbacks if expected == WRONG else type(callbacks).__name__} returns {value!r}"
    elif way == "graphs":
        other = d3gd.graphs.ring(5)
        value = rng.choice([None, 3, "ring", other, GRAPH, [GRAPH], np.eye(4), d3gd.graphs.complete(N)])
        graphs = rng.choice([lambda k: value, functools.partial(lambda v, k: v, value), [value], [GRAPH, value], value])
        told = f"graphs {type(graphs).__name__} of {value!r}"
        verdict, conditions = case.attempt(d3gd.Conditions, graphs=graphs, biased=True)
        if verdict == REFUSED:
            case.tell(told)
            return REFUSED
        settings["conditions"] = conditions
    elif way == "notes":
        notes = rng.choice(
            [
                {"a": np.float64(1)},
                {"a": {1, 2}},
                {"a": object()},
                {3: 4},
                {"algorithm": 1},
                {"a": math.nan},
                {"a": b"x"},
                [1],
            ]
        )
        settings |= {"notes": notes, "out": "run"}
        told = repr(notes)
    else:
        x0 = rng.choice([1e150, 1e300, -1e308, 1e38, 3.5e38, 1e-320, 1e20])
        settings |= {"x0": np.full(D, x0), "dtype": rng.choice(["float32", "float64"])}
        told = f"{x0} in {settings['dtype']}"
    case.tell(f"{way}: {told}"[:150])
    verdict, found = case.attempt(run, Signs(), **settings)
    return REFUSED if verdict == REFUSED else settle(expected, found, lambda: None)
