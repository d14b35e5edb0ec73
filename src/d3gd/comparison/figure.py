"""The curves of a comparison: one metric against iterations, bytes and processor time."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

import numpy as np

from d3gd.arrays import Floats
from d3gd.comparison.numbers import quantile
from d3gd.comparison.runs import Run, between
from d3gd.comparison.summary import Row
from d3gd.drawing import new_figure
from d3gd.plots import DPI, PALETTE, STYLE, TITLES, figure_bytes, plain_label

if TYPE_CHECKING:
    from d3gd.comparison.result import Comparison

# Dashes show what agents must know; colours distinguish methods with equal knowledge, and marks those of equal colour.
_DASHES: Mapping[str, Any] = {
    "in-neighbours": "-",
    "out-degrees": (0, (4, 1.4, 1, 1.4)),
    "undirected links": (0, (1.2, 1.2)),
    "the network": (0, (5, 1.6)),
    "all agents": "-",
}
_MARKS = ("", "o", "s", "^", "D", "v", "P", "X")
_STYLE = {**STYLE, "axes.titlesize": 10, "font.size": 9.5}
_NEAR = 0.025  # distance of two lines' ends, as a share of the width, at which their numbers overlap
_POINTS = 160  # per curve
_BETWEEN = 32  # points from one mark of a curve to its next
_APART = 0.035  # distance of two numbers at the ends of curves, as a share of the height
_HEIGHT, _WIDTH, _LEGEND, _ENTRY = 4.3, 3.7, 2.7, 0.19  # inches


def draw(comparison: "Comparison", suffixes: Sequence[str]) -> dict[str, bytes]:
    """Return the figure in each format given by a file suffix: ``.png``, ``.pdf`` or ``.svg``."""
    figure = figure_of(comparison)
    return {suffix: figure_bytes(figure, suffix) for suffix in suffixes}


def figure_of(comparison: "Comparison") -> Any:
    """Return the figure, with a panel for each axis.

    Lines are medians over seeds and bands quartiles; the number at a line's end is the method's rank, and baselines
    have letters.
    """
    import matplotlib as mpl

    rows = _shown(comparison)
    axes = _axes(comparison)
    if not any(_evaluates_otherwise(run) for row in rows for run in comparison.runs[row.method]):
        del axes["gradients"]
    with mpl.rc_context(_STYLE):
        entries = len(rows) + len({row.needs for row in rows})
        height = max(_HEIGHT, _ENTRY * (entries + 2))
        figure = new_figure(len(axes) * _WIDTH + _LEGEND, height, dpi=DPI)
        panels = figure.subplots(1, len(axes), sharey=True)
        for panel, axis in zip(panels, axes, strict=True):
            draw_panel(panel, comparison, axis)
            panel.label_outer()
        figure.suptitle(plain_label(comparison.title), fontsize=10)
        if rows:
            _legend(figure, rows, _looks(rows))
    return figure


def draw_panel(panel: Any, comparison: "Comparison", axis: str) -> None:
    """Draw all methods against one axis on matplotlib axes, with their ranks at the lines' ends."""
    rows, (label, scale) = _shown(comparison), _axes(comparison)[axis]
    looks, bounds, ends = _looks(rows), _bounds(comparison, rows), []
    if bounds is not None:
        panel.set_yscale("log" if bounds[2] else "linear")
        panel.set_ylim(bounds[0], bounds[1])
    for row in reversed(rows):
        points = curve(comparison.runs[row.method], axis, comparison.metric)
        if points is not None:
            ends.append((row, _line(panel, points, scale, looks[row.method])))
    _number(panel, ends, looks)
    panel.set_xlabel(label)
    panel.set_xlim(left=0)
    panel.set_ylabel(TITLES.get(comparison.metric, plain_label(comparison.metric)))


def _shown(comparison: "Comparison") -> list[Row]:
    return [row for row in comparison.rows if row.status in ("ranked", "yardstick")]


def _axes(comparison: "Comparison") -> dict[str, tuple[str, float]]:
    """Return the label of every axis and the size of its unit."""
    rows = _shown(comparison)
    most = max((run.curves["bytes"][-1] for row in rows for run in comparison.runs[row.method]), default=1.0)
    unit, size = next(((u, s) for u, s in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)) if most >= 2 * s), ("bytes", 1.0))
    return {
        "iterations": ("iteration", 1.0),
        "gradients": ("gradients per agent", 1.0),
        "bytes": (f"sent over all links ({unit})", size),
        "seconds": ("processor time (s)", 1.0),
    }


def _evaluates_otherwise(run: Run) -> bool:
    """Whether a method does not evaluate exactly one gradient per iteration."""
    return not np.array_equal(run.curves["gradients"], run.curves["iterations"])


def _looks(rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """Return the colour, dashes and marks of every method, no two of them alike; baselines are grey."""
    used: list[tuple[str, str]] = []
    letters = cycle(ascii_lowercase)
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        yardstick = row.status == "yardstick"
        # The colour used least so far, first among methods with equal knowledge, then among all.
        counts = [([c for n, c in used if n == row.needs].count(c), [c for _, c in used].count(c)) for c in PALETTE]
        colour = PALETTE[counts.index(min(counts))]
        alike = [each.status for each in rows[: len(found)]].count(row.status) if yardstick else min(counts)[0]
        used += [] if yardstick else [(row.needs, colour)]
        found[row.method] = {
            "color": "0.45" if yardstick else colour,
            "label": next(letters) if yardstick else str(row.rank),
            "linestyle": _DASHES.get(row.needs, "-"),
            "linewidth": 3.2 if yardstick else 1.7,
            "alpha": 0.45 if yardstick else 1.0,
            "zorder": 1 if yardstick else 3,
            "marker": _MARKS[alike % len(_MARKS)],
            "markersize": 4.5,
            "markerfacecolor": "white",
            "markevery": (5 * len(found) % _BETWEEN, _BETWEEN),  # curves may coincide
        }
    return found


def curve(runs: Sequence[Run], axis: str, metric: str) -> tuple[Floats, Floats] | None:
    """Return points on an axis and the quartiles over seeds, (3, points); None if the axis is constant.

    Seeds are combined at equal iterations; bytes and times at an iteration are medians over seeds.
    """
    ended = [run for run in runs if run.status != "diverged"]
    iterations = np.linspace(0, quantile([float(run.curves["iterations"][-1]) for run in ended], 0.5), _POINTS)
    places = np.median([np.interp(iterations, run.curves["iterations"], run.curves[axis]) for run in ended], axis=0)
    if places[-1] <= 0:
        return None
    values = []
    for run in runs:
        k = run.curves["iterations"]
        y = np.asarray(between(iterations, k, run.curves[metric]))
        values.append(np.where(iterations > k[-1], np.inf, y) if run.status == "diverged" else y)
    table = np.array(values).T.tolist()
    return places, np.array([[quantile(column, q) for column in table] for q in (0.25, 0.5, 0.75)])


def _bounds(comparison: "Comparison", rows: Sequence[Row]) -> tuple[float, float, bool] | None:
    """Return the smallest and largest value to show, and whether the axis is logarithmic."""
    curves = [curve(comparison.runs[row.method], "iterations", comparison.metric) for row in rows]
    values = np.concatenate([points[1][1] for points in curves if points is not None] or [np.empty(0)])
    values = values[np.isfinite(values)]
    positive = values[values > 0]
    if not positive.size:
        return None
    starts = [float(run.curves[comparison.metric][0]) for row in rows for run in comparison.runs[row.method]]
    high = max([value for value in starts if value > 0] or [float(positive.max())])
    if values.min() < 0 or positive.max() < 10 * positive.min():
        room = 0.06 * (high - values.min() or 1.0)
        return float(values.min() - room), high + room, False
    return float(positive.min()) / 3, high * 3, True


def _line(panel: Any, points: tuple[Floats, Floats], scale: float, look: Mapping[str, Any]) -> tuple[float, float]:
    """Draw one method, and return the point where its line ends or leaves the panel."""
    places, (low, median, high) = points
    places = places / scale
    seen = np.where(np.isfinite(median), median, np.nan)
    shown = np.isfinite(low) & np.isfinite(high)
    panel.fill_between(places, low, high, where=shown, color=look["color"], alpha=0.12, linewidth=0, zorder=0)
    panel.plot(places, seen, **look)
    bottom, top = panel.get_ylim()
    inside = np.flatnonzero((median >= bottom) & (median <= top))
    last = int(inside[-1]) if inside.size else 0
    return float(places[last]), float(np.clip(median[last], bottom, top))


def _number(panel: Any, ends: Sequence[tuple[Row, tuple[float, float]]], looks: Mapping[str, Any]) -> None:
    """Write the ranks at the lines' ends, without overlaps."""
    from matplotlib import patheffects

    panel.margins(x=0.0)
    right = max((x for _, (x, _) in ends), default=1.0)
    panel.set_xlim(0, right * 1.09)
    to_axes = panel.transData + panel.transAxes.inverted()
    placed = sorted((tuple(to_axes.transform(end)), row.method) for row, end in ends)
    columns: list[list[tuple[tuple[float, float], str]]] = []
    for one in placed:
        near = columns and one[0][0] - columns[-1][-1][0][0] < _NEAR
        columns = [*columns[:-1], [*columns[-1], one]] if near else [*columns, [one]]
    where = {}
    for column in columns:
        ordered = sorted(column, key=lambda one: one[0][1])
        for (x, y), method in zip(_spread([one[0] for one in ordered]), (one[1] for one in ordered), strict=True):
            where[method] = x, y
    for method, (x, y) in where.items():
        panel.text(
            x + 0.012,
            y,
            looks[method]["label"],
            transform=panel.transAxes,
            color=looks[method]["color"],
            fontsize=8,
            va="center",
            fontweight="bold",
            zorder=5,
            path_effects=[patheffects.withStroke(linewidth=2, foreground="white")],
        )


def _spread(wanted: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Separate points that are too close in height, with the smallest shifts; points are in ascending order.

    Example:
        >>> [round(y, 4) for _, y in _spread([(0, 0.1), (0, 0.5), (0, 0.5)])]
        [0.1, 0.4825, 0.5175]
    """
    blocks: list[list[float]] = []  # groups of adjacent heights, centred on their means

    def bottom(block: Sequence[float]) -> float:
        return sum(block) / len(block) - _APART * (len(block) - 1) / 2

    for _, y in wanted:
        blocks.append([y])
        while len(blocks) > 1 and bottom(blocks[-2]) + _APART * len(blocks[-2]) > bottom(blocks[-1]):
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    heights = [bottom(block) + _APART * i for block in blocks for i in range(len(block))]
    return [(x, height) for (x, _), height in zip(wanted, heights, strict=True)]


def _legend(figure: Any, rows: Sequence[Row], looks: Mapping[str, Any]) -> None:
    """List the methods and their ranks, grouped by what agents must know."""
    from matplotlib.lines import Line2D

    handles: list[Any] = []
    labels: list[str] = []
    for needs in [*_DASHES, ""]:
        here = [row for row in rows if row.needs == needs]
        if here:
            handles.append(Line2D([], [], linestyle="none"))
            labels.append("not for a network" if here[0].status == "yardstick" else f"knows {needs}")
        for row in here:
            look = looks[row.method]
            handles.append(Line2D([], [], **{**look, "markevery": 1}))
            labels.append(plain_label(f"{look['label']}  {row.method}"[:40]))
    legend = figure.legend(handles, labels, loc="outside right center", fontsize=8.5, handlelength=3.0)
    for handle, text in zip(handles, legend.get_texts(), strict=True):
        if handle.get_linestyle() == "None":
            text.set(fontweight="bold", x=text.get_position()[0])
