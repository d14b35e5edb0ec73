"""Small experiments whose results are known, for attacks to be compared with."""

import copy
import json
import os
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import d3gd
from d3gd.cli import call
from d3gd.result import Result

LINKS = "source,target\n0,1\n1,2\n2,3\n3,0\n0,2\n2,0\n"
NAMED_LINKS = "source,target\nOslo,Rome\nRome,Kyiv\nKyiv,Lima\nLima,Oslo\nOslo,Kyiv\n"
TABLE = "label,width,height\n" + "".join(f"{i % 3},{i % 7 / 4},{(i * i) % 11 / 8}\n" for i in range(24))

# Every kind of value that a settings file can hold, in runs of a few milliseconds.
EXPERIMENTS: dict[str, dict[str, Any]] = {
    "plain": {
        "iterations": 20,
        "every": 5,
        "seed": 1,
        "checkpoint_every": 5,
        "graph": {"kind": "ring", "n": 4},
        "problem": {"kind": "quadratic", "dim": 3},
        "algorithm": {"kind": "D3GD", "step_size": 0.05},
    },
    "noisy": {
        "iterations": 12,
        "every": 4,
        "checkpoint_every": 4,
        "metrics": ["stationarity", "loss", "accuracy_per_agent", "bytes"],
        "graph": {"kind": "erdos_renyi", "n": 5, "p": 0.6, "seed": 3},
        "weights": {"kind": "lazy", "stay": 0.25},
        "problem": {
            "kind": "sigmoid_classification",
            "alpha": 0.5,
            "classes": 3,
            "features": 4,
            "samples": 10,
            "test_samples": 20,
            "batch": 4,
            "regularization": 0.01,
        },
        "conditions": {"loss": 0.2, "delay": 2, "pause": 0.1, "back": 0.5, "delays": "each link"},
        "algorithm": {
            "kind": "DiDGD",
            "step_size": {"start": 0.1, "power": 0.5, "over": 10},
            "averaged": True,
        },
    },
    "single": {
        "iterations": 12,
        "dtype": "float32",
        "graph": {"kind": "grid", "rows": 2, "columns": 3, "torus": True},
        "weights": {"kind": "uniform"},
        "problem": {"kind": "mixture_classification", "classes": 2, "features": 3, "samples": 6, "test_samples": 0},
        "algorithm": {"kind": "PerronD3GD", "step_size": 0.05, "rule": "planned", "correct": True},
        "target": {"disagreement": 1e-9},
    },
    "files": {
        "iterations": 10,
        "every": 2,
        "checkpoint_every": 2,
        "graph": {"kind": "edges", "file": "links.csv"},
        "weights": {"kind": "file", "file": "weights.npz"},
        "problem": {"kind": "softmax", "file": "table.csv", "label": "label", "alpha": 1.0, "test_fraction": 0.25},
        "algorithm": {"kind": "PushPull", "step_size": 0.02},
    },
}


def value_text(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {value_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(value_text, value)) + "]"
    return repr(value)


def toml(experiment: Mapping[str, Any]) -> str:
    """An experiment as a settings file."""
    plain = {key: value for key, value in experiment.items() if not isinstance(value, Mapping)}
    lines = [f"{key} = {value_text(value)}" for key, value in plain.items()]
    for name, table in experiment.items():
        if isinstance(table, Mapping):
            lines += ["", f"[{name}]", *(f"{key} = {value_text(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def experiment(name: str) -> dict[str, Any]:
    """A copy of an experiment, to be spoilt."""
    return copy.deepcopy(EXPERIMENTS[name])


def own_weights() -> Any:
    """The weights of the experiment with files."""
    pairs = [tuple(map(int, line.split(","))) for line in LINKS.splitlines()[1:]]
    return d3gd.weights.uniform(d3gd.Digraph.from_edges(4, pairs))


def write_inputs(folder: Path) -> None:
    """Write the files that an experiment may name."""
    from scipy.sparse import save_npz

    (folder / "links.csv").write_text(LINKS)
    (folder / "table.csv").write_text(TABLE)
    save_npz(folder / "weights.npz", own_weights())


def write(name: str, folder: Path) -> Path:
    """Write an experiment with all its files, and return where its settings are."""
    write_inputs(folder)
    path = folder / "experiment.toml"
    path.write_text(toml(EXPERIMENTS[name]))
    return path


@cache
def result(name: str) -> Result:
    """What an experiment returns when nothing goes wrong."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        settings = write(name, folder)
        code = call(["run", str(settings), "--out", str(folder / "run")])
        assert code == 0, f"the control {name} ends with {code}: {os.pread(2, 1 << 16, 0).decode()}"
        return Result.load(folder / "run")


def same(a: Result, b: Result, rounding: float = 0.0) -> bool:
    """Whether two runs ended alike, bit for bit; the time they took aside, and metrics to a relative ``rounding``."""
    return (
        np.array_equal(a.iterations, b.iterations)
        and list(a.metrics) == list(b.metrics)
        and all(
            np.allclose(a.metrics[name], b.metrics[name], rtol=rounding, atol=0)
            if rounding
            else _same_numbers(a.metrics[name], b.metrics[name])
            for name in a.metrics
        )
        and same_array(a.x, b.x)
        and same_array(a.weights.toarray(), b.weights.toarray())
        and (a.status, a.message) == (b.status, b.message)
    )


def same_array(a: Any, b: Any) -> bool:
    """Whether two arrays agree in shape, precision and every number."""
    a, b = np.asarray(a), np.asarray(b)
    return (a.dtype == b.dtype or a.dtype.kind not in "fc") and _same_numbers(a, b)


def _same_numbers(a: Any, b: Any) -> bool:
    if a.dtype.kind in "fc" and b.dtype.kind in "fc":
        return np.array_equal(a, b, equal_nan=True)
    return a.shape == b.shape and bool(np.all(a == b))
