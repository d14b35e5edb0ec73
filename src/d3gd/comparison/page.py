"""The page of a comparison: a table that sorts and curves that can be switched off."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from d3gd.comparison.figure import curve
from d3gd.comparison.runs import Run, place, read
from d3gd.comparison.scenario import Budget
from d3gd.report.payload import numbers
from d3gd.report.table import Axis, Cell, number, write_table
from d3gd.runs import files
from d3gd.runs.trials import stored

_TABLE = "compare.json"
_AXES = {
    "iterations": "iteration",
    "gradients": "gradients per agent",
    "bytes": "bytes sent",
    "seconds": "seconds of the processor",
}


def is_comparison(folder: Path) -> bool:
    """Whether a folder holds a finished comparison."""
    try:
        return (folder / _TABLE).is_file()
    except OSError:  # a name too long, or a folder that is closed to this user
        return False


def write_stored(folder: Path, path: Path) -> None:
    """Write the page of a comparison's folder; without its runs, it has no curves."""
    content = files.read_json(folder / _TABLE)
    with files.parsing(folder / _TABLE):
        found = {str(row["method"]): _runs(folder, row, content) for row in content["rows"]}
        write(content, found, path)


def write(content: Mapping[str, Any], runs: Mapping[str, Sequence[Run]], path: str | Path) -> None:
    """Write the page of a comparison.

    Args:
        content: The content of ``compare.json``.
        runs: The reported runs of each method.
        path: The page.
    """
    metric, rows = str(content["metric"]), content["rows"]
    shown = [str(row["method"]) for row in rows if _measured(row)]
    costs = list(rows[0]["cost"]) if rows else []
    targets = [f"{name} to target" for name in costs]
    write_table(
        path,
        str(content["title"]),
        ["rank", "method", "knows", "step", metric, "disagreement", *targets, "numbers per link", "note"],
        [(str(row["status"]), _cells(row, costs)) for row in rows],
        headline=[str(content["headline"])],
        axes={name: Axis(label, metric, label) for name, label in _AXES.items()},
        curves={name: _curves(runs[name], metric) for name in shown if runs.get(name)},
        without="The curves are not in this folder: only its tables are.",
        reading=content["reading"],
        versions=content["versions"],
    )


def _measured(row: Mapping[str, Any]) -> bool:
    return row["status"] in ("ranked", "yardstick")


def _cells(row: Mapping[str, Any], costs: Sequence[str]) -> list[Cell]:
    value = {name: _wide(each) for name, each in row["value"].items()}
    low, high = ("∞" if math.isinf(value[name]) else f"{value[name]:.2g}" for name in ("low", "high"))
    middle = f"{number(value['median'])[1]} [{low}, {high}]"
    ties = [f"ties with {', '.join(map(str, row['ties']))}"] if row["ties"] else []
    spent = [_wide(row["cost"][name]) if _measured(row) else math.nan for name in costs]
    return [
        number(row["rank"]),
        (row["method"], row["method"]),
        (row["needs"], row["needs"]),
        number(_wide(row["step"])),
        number(value["median"], middle) if _measured(row) else (None, row["status"]),
        number(_wide(row["disagreement"])),
        *(number(each, _bytes(each) if name == "bytes" else None) for name, each in zip(costs, spent, strict=True)),
        number(_wide(row["numbers"])),
        (row["note"], "; ".join([*ties, *filter(None, [row["note"]])])),
    ]


def _wide(value: float | str | None) -> float:
    """Return a number of strict JSON."""
    return math.nan if value is None else float(value)


def _bytes(value: float) -> str | None:
    if not math.isfinite(value):
        return None
    unit, size = next(((u, s) for u, s in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)) if value >= s), ("bytes", 1.0))
    return f"{value / size:.4g} {unit}"


def _curves(runs: Sequence[Run], metric: str) -> dict[str, Any]:
    """Return quartiles over seeds against every axis that grows."""
    found = {}
    for axis in _AXES:
        quartiles = curve(runs, axis, metric)
        if quartiles is not None:
            x, (low, median, high) = quartiles
            found[axis] = {
                "x": numbers(x),
                "y": numbers(median),
                "low": numbers(np.where(np.isfinite(low), low, np.nan)),
                "high": numbers(np.where(np.isfinite(high), high, np.nan)),
            }
    return found


def _runs(folder: Path, row: Mapping[str, Any], content: Mapping[str, Any]) -> list[Run]:
    """Return a method's reported runs, as far as the folder has them."""
    found = []
    for seed in content["seeds"]:
        for path in sorted(place(folder, row["method"]).glob(f"step-*-seed-{int(seed)}.json")):
            held = stored(path)
            if held is not None and float(f"{held['step']:.5g}") == row["step"] and held["curves"]:
                found.append(read(held, Budget(**content["budget"])))
    return found
