"""The page of a study: all its cells in a table that sorts, and how each method does over all of them."""

import csv
import io
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from d3gd import reading
from d3gd.report.payload import numbers, thinned
from d3gd.report.table import NONE, Axis, Cell, number, write_table, written
from d3gd.runs import files

_CELLS, _SETTINGS, _RATIO = "cells.csv", "settings.json", "_ratio"
_POINTS = 300  # of a curve


def is_study(folder: Path) -> bool:
    """Whether a folder holds the results of a study."""
    if not {_CELLS, _SETTINGS} <= set(files.visible(folder)):
        return False
    return "study" in files.read_json(folder / _SETTINGS)


def write_study(folder: Path, path: Path) -> None:
    """Write the page of a study's folder from its ``cells.csv``, a row per cell and method.

    Curves are over the share of cells: a method's ratios to its reference in ascending order, for each part.
    """
    content = reading.text(folder / _CELLS, files.WANTED, limit=reading.ARRAYS)
    with files.parsing(folder / _CELLS):
        columns, *rows = csv.reader(io.StringIO(content, newline=""))
        if not rows or any(len(row) != len(columns) for row in rows):
            raise ValueError("its rows do not match its first line")
        curves, axes = _profiles(columns, rows)
    write_table(
        path,
        str(files.read_json(folder / _SETTINGS)["study"]),
        *_table(columns, rows),
        headline=[f"{len(rows):,} rows: a cell of the study and a method each."],
        axes=axes,
        curves=curves,
        choose="show ",
        without="There are no ratios in this table, so no curves.",
        reading=[
            "A ratio is that of a method's value to its reference's in the same cell: below 1 is better. It is the "
            "median over seeds, with the quartiles in brackets. The file cells.csv has all digits.",
            "A curve has a method's ratios in ascending order: at 0.5 is the median over cells, at 1 the worst cell.",
        ],
    )


def _table(columns: list[str], rows: list[list[str]]) -> tuple[list[str], list[tuple[str, list[Cell]]]]:
    """Return the columns and rows of the page: a ratio stands with its quartiles, and runs with those that diverged."""
    at = {name: place for place, name in enumerate(columns)}
    made: dict[str, Callable[[list[str]], Cell]] = {}
    for name in columns:
        lower, upper, diverged = (at.get(other) for other in (f"{name}_lower", f"{name}_upper", "diverged"))
        if name.removesuffix("_lower").removesuffix("_upper") != name or (name == "diverged" and "completed" in at):
            continue
        if lower is not None and upper is not None:
            made[name] = partial(_ratio, places=(at[name], lower, upper))
        elif name == "completed" and diverged is not None:
            made["seeds"] = partial(_seeds, places=(at[name], diverged))
        else:
            made[name] = partial(_plain, place=at[name])
    ordered = sorted(made, key=lambda name: name in ("stationarity", "disagreement", "seeds"))  # ratios are what counts
    return [name.replace("_", " ") for name in ordered], [("", [made[name](row) for name in ordered]) for row in rows]


def _plain(row: list[str], *, place: int) -> Cell:
    return written(row[place])


def _ratio(row: list[str], *, places: tuple[int, int, int]) -> Cell:
    key, text = written(row[places[0]])
    if not isinstance(key, float):
        return key, text
    if len({row[place] for place in places}) == 1:
        return number(key)
    lower, upper = (f"{float(row[place]):.2g}" if row[place] else NONE for place in places[1:])
    return key, f"{key:.3g} [{lower}, {upper}]"


def _seeds(row: list[str], *, places: tuple[int, int]) -> Cell:
    completed, diverged = (int(row[place]) for place in places)
    return float(completed), f"{completed} of {completed + diverged}" if diverged else str(completed)


def _profiles(columns: list[str], rows: list[list[str]]) -> tuple[dict[str, dict[str, Any]], dict[str, Axis]]:
    """Return every method's ratios in ascending order, for each part of the study and each metric."""
    found: dict[str, dict[str, Any]] = {}
    axes: dict[str, Axis] = {}
    if not {"method", "part"} <= set(columns):
        return found, axes
    part, method = columns.index("part"), columns.index("method")
    for where in dict.fromkeys(row[part] for row in rows):
        here = [row for row in rows if row[part] == where]
        for name in (name for name in columns if name.endswith(_RATIO)):
            metric, key, at = name.removesuffix(_RATIO), f"{where} {name}", columns.index(name)
            axes[key] = Axis(f"{where}: {metric}", f"{metric}, relative to the reference", "share of cells")
            for who in dict.fromkeys(row[method] for row in here):
                held = np.sort([float(row[at]) for row in here if row[method] == who and row[at]])
                share, some = np.arange(1, len(held) + 1) / max(1, len(held)), thinned(len(held), _POINTS)
                if held.size:
                    found.setdefault(who, {})[key] = {"x": numbers(share[some]), "y": numbers(held[some])}
    return found, axes
