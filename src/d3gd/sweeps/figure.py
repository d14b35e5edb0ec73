"""A sweep drawn: a heat map over two settings, a curve over one."""

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from d3gd.arrays import Floats
from d3gd.comparison.numbers import shown
from d3gd.errors import SettingsError
from d3gd.plots import DPI, PALETTE, STYLE, TITLES, deserves_log, plain_label, plot_runs
from d3gd.sweeps.points import text_of

if TYPE_CHECKING:
    from d3gd.sweeps.result import Group, Sweep

_CURVES = 10  # values of a setting up to which their curves are drawn
_PANELS = 12  # heat maps in one figure
_WORDS = 14  # characters of a value on an axis


def figure_of(sweep: "Sweep") -> Any:
    """Return the figure of a sweep."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    several = _several(sweep)
    with mpl.rc_context(STYLE):
        if len(several) < 2:
            curves = max(map(len, several.values()), default=1) <= _CURVES
            figure = Figure(figsize=(4.6 * (bool(several) + curves), 3.6), dpi=DPI, layout="constrained")
            FigureCanvasAgg(figure)
            panels = list(figure.subplots(1, bool(several) + curves, squeeze=False)[0])
            if several:
                draw_on(panels.pop(0), sweep)
            if curves:
                plot_runs(_named(sweep, several), metrics=[sweep.metric], ax=panels[0])
        else:
            figure = _maps(sweep, several, Figure)
        over = f", median of {len(sweep.seeds)} seeds" if len(sweep.seeds) > 1 else ""
        figure.suptitle(plain_label(f"{sweep.title}{over}"), fontsize=10)
    return figure


def draw_on(axes: Any, sweep: "Sweep") -> None:
    """Draw a sweep on matplotlib axes: over one setting the medians with their quartiles, over two a heat map."""
    several = _several(sweep)
    if len(several) > 2:
        raise SettingsError(f"{len(several)} settings have several values; draw them without ax=, one panel for each")
    if len(several) == 2:
        drawn = _heat(axes, sweep.groups, several, sweep.metric, _norm(sweep))
        axes.figure.colorbar(drawn, ax=axes, label=TITLES.get(sweep.metric, plain_label(sweep.metric)))
        return
    ((name, values),) = several.items() or [("", ("",))]
    low, median, high = np.array([(group.low, group.median, group.high) for group in sweep.groups]).T
    numeric = all(type(value) in (int, float) for value in values)
    order = np.argsort(values) if numeric else np.arange(len(values))
    places = np.array(values, dtype=float)[order] if numeric else order.astype(float)
    low, median, high = (np.where(np.isfinite(each), each, np.nan)[order] for each in (low, median, high))
    axes.fill_between(places, low, high, color=PALETTE[0], alpha=0.2, linewidth=0)
    axes.plot(places, median, color=PALETTE[0], marker="o", markersize=4)
    lost = places[~np.isfinite(median)]
    axes.plot(lost, np.full(len(lost), 0.97), "x", color="black", transform=axes.get_xaxis_transform(), clip_on=False)
    if numeric and places.min() > 0 and places.max() >= 10 * places.min():
        axes.set_xscale("log")
    if not numeric:
        axes.set_xticks(places, [_word(value) for value in values])
    axes.set_yscale("log" if deserves_log(sweep.metric, median) else "linear")
    axes.set_xlabel(plain_label(name) + (" (x: diverged or failed)" if len(lost) else ""))
    axes.set_ylabel(TITLES.get(sweep.metric, plain_label(sweep.metric)))
    axes.set_title("at the end", fontsize=9)


def _maps(sweep: "Sweep", several: Mapping[str, Sequence[Any]], kind: Any) -> Any:
    """Return a figure with a heat map over the first two settings for every combination of the others."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    (down, across), others = list(several)[:2], list(several)[2:]
    combinations = list(itertools.product(*(several[name] for name in others)))[:_PANELS]
    columns = min(len(combinations), 4)
    rows = -(-len(combinations) // columns)
    width = 1.6 + 0.62 * max(3, len(several[across]))
    height = 1.1 + 0.42 * max(3, len(several[down]))
    figure = kind(figsize=(1.2 + columns * width, 0.5 + rows * height), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    drawn: Any = None
    for panel, values in zip(panels, combinations, strict=False):
        fixed = dict(zip(others, values, strict=True))
        groups = [g for g in sweep.groups if all(text_of(g.values[k]) == text_of(v) for k, v in fixed.items())]
        drawn = _heat(panel, groups, {down: several[down], across: several[across]}, sweep.metric, _norm(sweep))
        panel.set_title(plain_label(", ".join(f"{k}={text_of(v)}" for k, v in fixed.items())), fontsize=8)
    for panel in panels[len(combinations) :]:
        panel.set_axis_off()
    figure.colorbar(drawn, ax=panels.tolist(), label=TITLES.get(sweep.metric, plain_label(sweep.metric)))
    return figure


def _heat(axes: Any, groups: Sequence["Group"], several: Mapping[str, Sequence[Any]], metric: str, norm: Any) -> Any:
    """Draw the median of every combination as a coloured cell with its number."""
    (down, rows), (across, columns) = several.items()
    cells: Floats = np.full((len(rows), len(columns)), np.nan)
    words = np.full(cells.shape, "", dtype=object)
    for group in groups:
        i, j = (_index(values, group.values[name]) for name, values in several.items())
        fine = np.isfinite(group.median)
        cells[i, j] = group.median if fine else np.nan
        words[i, j] = shown(group.median) if fine else "failed" if "failed" in group.note else "div."
    drawn = axes.imshow(cells, norm=norm, cmap="cividis", aspect="auto")
    axes.grid(visible=False)
    axes.set_facecolor("#dddddd")
    for i, j in np.ndindex(*cells.shape):
        dark = np.isfinite(cells[i, j]) and norm(cells[i, j]) < 0.5
        axes.text(j, i, words[i, j], ha="center", va="center", fontsize=7, color="white" if dark else "black")
    axes.set_xticks(range(len(columns)), [_word(value) for value in columns])
    axes.set_yticks(range(len(rows)), [_word(value) for value in rows])
    axes.set_xlabel(plain_label(across))
    axes.set_ylabel(plain_label(down))
    return drawn


def _norm(sweep: "Sweep") -> Any:
    """Return the scale of colours, logarithmic where values differ by more than a factor of ten."""
    from matplotlib.colors import LogNorm, Normalize

    values = np.array([group.median for group in sweep.groups])
    finite = values[np.isfinite(values)]
    if finite.size and finite.min() > 0 and finite.max() > 10 * finite.min():
        return LogNorm(finite.min(), finite.max())
    return Normalize(finite.min(), finite.max()) if finite.size else Normalize(0, 1)


def _several(sweep: "Sweep") -> dict[str, Sequence[Any]]:
    return {name: values for name, values in sweep.settings.items() if len(values) > 1}


def _named(sweep: "Sweep", several: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Return the runs of combinations that did not diverge, named by the setting that differs."""
    runs, found = sweep.results(), {}
    for group in sweep.groups:
        if np.isfinite(group.median):
            told = ", ".join(f"{name.split('.')[-1]}={text_of(group.values[name])}" for name in several)
            found[told or group.name] = runs[group.name]
    return found


def _index(values: Sequence[Any], value: Any) -> int:
    return [text_of(each) for each in values].index(text_of(value))


def _word(value: Any) -> str:
    text = text_of(value)
    return plain_label(text if len(text) <= _WORDS else f"{text[: _WORDS - 1]}…")
