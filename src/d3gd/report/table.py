"""Pages with a table that sorts and curves that can be switched off."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from d3gd.report import write_page

Cell: TypeAlias = tuple[float | str | None, str]  # by what it sorts, and its text; None is last
NONE = "\N{EN DASH}"  # where there is no number
_LARGEST = 1.7e308  # JSON has no word for infinity


class Axis(NamedTuple):
    """A choice of what the curves show: its name in the list, the title of the chart, and the label of the x axis."""

    choice: str
    title: str
    label: str


def number(value: float | None, text: str | None = None) -> Cell:
    """Return the cell of a number with four digits, or with another text.

    Example:
        >>> number(0.123456), number(math.inf), number(math.nan)[0]
        ((0.123456, '0.1235'), (1.7e+308, '∞'), None)
    """
    if value is None or math.isnan(value):
        return None, NONE if text is None else text
    if math.isinf(value):
        return math.copysign(_LARGEST, value), ("∞" if value > 0 else "-∞") if text is None else text
    return float(value), f"{value:.4g}" if text is None else text


def written(text: str) -> Cell:
    """Return the cell of a text: a number, if it is one.

    Example:
        >>> written("0.10"), written("D3GD"), written("")
        ((0.1, '0.10'), ('D3GD', 'D3GD'), (None, ''))
    """
    try:
        return number(float(text), text) if text else (None, "")
    except ValueError:
        return text, text


def write_table(
    path: str | Path,
    title: str,
    columns: Sequence[str],
    rows: Sequence[tuple[str, Sequence[Cell]]],
    *,
    headline: Sequence[str] = (),
    axes: Mapping[str, Axis] | None = None,
    curves: Mapping[str, Mapping[str, Any]] | None = None,
    choose: str = "against ",
    without: str = "",
    reading: Sequence[str] = (),
    versions: Mapping[str, str] | None = None,
) -> None:
    """Write a page.

    Args:
        path: The file; its name ends in .html.
        title: Its title.
        columns: The names of the columns.
        rows: Rows, best first, each with its kind (a class of the style) and its cells.
        headline: Paragraphs above the table.
        axes: What the curves may be drawn against, by name.
        curves: Curves by their names and those of the axes: ``{"x": ..., "y": ..., "low": ..., "high": ...}``.
        choose: The words before the list of axes.
        without: What to say if there are no curves.
        reading: Paragraphs on how to read it.
        versions: Versions of Python and of libraries.
    """
    content = {
        "columns": list(columns),
        "rows": [{"class": kind, "cells": [list(cell) for cell in cells]} for kind, cells in rows],
        "headline": list(headline),
        "axes": {name: axis._asdict() for name, axis in (axes or {}).items()},
        "curves": curves or {},
        "choose": choose,
        "without": without,
        "reading": list(reading),
        "versions": dict(versions or {}),
    }
    write_page(path, title, "table", content)
