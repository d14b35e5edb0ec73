"""The page of a comparison: a table that sorts and curves that can be switched off."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from d3gd.comparison.figure import curve
from d3gd.comparison.runs import Run, place, read
from d3gd.comparison.scenario import Budget
from d3gd.report import write_page
from d3gd.report.payload import numbers
from d3gd.runs import files
from d3gd.runs.trials import stored

_TABLE = "compare.json"
_AXES = {"iterations": "iteration", "gradients": "gradients per agent", "bytes": "bytes sent", "seconds": "seconds"}


def is_comparison(folder: Path) -> bool:
    """Whether a folder holds a finished comparison."""
    return (folder / _TABLE).is_file()


def write_stored(folder: Path, path: Path) -> None:
    """Write the page of a comparison's folder; without its runs, it has no curves."""
    content = files.read_json(folder / _TABLE)
    with files.parsing(folder / _TABLE):
        found = {str(row["method"]): _runs(folder, row, content) for row in content["rows"]}
        held = _page(content, found)
    write_page(path, str(held["title"]), "comparison", held)


def write(content: Mapping[str, Any], runs: Mapping[str, Sequence[Run]], path: str | Path) -> None:
    """Write the page of a comparison.

    Args:
        content: The content of ``compare.json``.
        runs: The reported runs of each method.
        path: The page.
    """
    write_page(path, str(content["title"]), "comparison", _page(content, runs))


def _page(content: Mapping[str, Any], runs: Mapping[str, Sequence[Run]]) -> dict[str, Any]:
    told = {name: content[name] for name in ("title", "headline", "metric", "reading", "versions", "rows")}
    shown = [str(row["method"]) for row in content["rows"] if row["status"] in ("ranked", "yardstick")]
    return {
        **told,
        "axes": _AXES,
        "curves": {name: _curves(runs[name], str(content["metric"])) for name in shown if runs.get(name)},
    }


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
