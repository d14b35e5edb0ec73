"""Curves of runs, and networks that move."""

from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from d3gd.arrays import Array, Floats
from d3gd.drawing import new_figure
from d3gd.errors import RecordError, SettingsError
from d3gd.plots.labels import grouped, labels_of, plain_label
from d3gd.plots.movie import movie
from d3gd.result import Result
from d3gd.runs import files
from d3gd.validation import as_path, listed, mapping, one_of, shown

__all__ = ["grouped", "labels_of", "movie", "plain_label", "plot_runs", "quartiles_of", "write_figure"]

# Okabe and Ito's colours, safe for colour blindness; their yellow is too pale for a line.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DPI = 220  # of figures for papers
_DASHES = ("-", "--", "-.", ":")
_FORMATS = (".png", ".pdf", ".svg")
TITLES = {
    "stationarity": r"stationarity  $\|\nabla F(x_i)\|^2$",
    "stationarity_at_mean": r"stationarity  $\|\nabla F(\bar x)\|^2$",
    "disagreement": r"disagreement  $\|x_i - x_j\|^2$",
    "loss": r"loss  $F(x_i)$",
    "loss_at_mean": r"loss  $F(\bar x)$",
    "n_min_pi": r"$n\,\min_i\,\pi_i$",
    "accuracy": "test accuracy",
    "accuracy_worst": "test accuracy, worst agent",
    "accuracy_per_agent": "test accuracy, each agent",
    "perron_error": "error of the Perron estimates",
    "design": r"design function  $J_k$",
    "bytes": "bytes sent over all links",
}
_LINEAR = ("accuracy", "n_min_pi")  # metrics between 0 and 1
_DEFAULT = ("stationarity", "stationarity_at_mean", "disagreement")
STYLE = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 10,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "svg.fonttype": "none",
}
Runs: TypeAlias = Mapping[str, Result | Sequence[Result]]


def plot_runs(
    results: Runs,
    path: str | Path | None = None,
    *,
    metrics: Sequence[str] = (),
    x: str = "iterations",
    ax: Any = None,
) -> Any:
    """Plot the curves of several runs in one figure, with a panel for each metric, or on given axes.

    Args:
        results: The runs, by their names in the legend. Of several runs under one name, such as those of
            :func:`d3gd.plots.grouped`, the median is plotted, with a band between the quartiles.
        path: A file to write; its suffix defines the format: .png, .pdf or .svg. By default none is written.
        metrics: The metrics to plot; by default stationarity and disagreement.
        x: The horizontal axis: ``"iterations"``, ``"bytes"`` sent, or ``"time"``, at the mean pace of each run.
        ax: matplotlib axes to plot one metric on, instead of a new figure.

    Returns:
        The new figure, or ``ax``.
    """
    import matplotlib as mpl

    _suffix(path)  # before anything is drawn
    one_of("x", x, ("iterations", "bytes", "time"))
    runs = {name: _runs(held) for name, held in mapping("results", results, "names to runs").items()}
    if not runs:
        raise RecordError("there is no run to plot; give at least one")
    metrics = listed("metrics", metrics, "names")
    names = _chosen(metrics, [run for group in runs.values() for run in group])
    if ax is not None:
        if len(metrics) > 1 or path is not None:
            raise SettingsError("ax= takes one metric and writes no file; plot each on axes of its own")
        handles = _draw(ax, names[0], runs, x)
        if len(runs) > 1:
            ax.legend(handles, [plain_label(name) for name in runs])
        return ax
    with mpl.rc_context(STYLE):
        width = 0.6 + 4.4 * len(names)
        # The legend is below the panels, in as many columns as fit, and the figure grows with its rows.
        columns = min(len(runs), max(1, int(width * 11 / max(len(label) + 6 for label in runs))))
        rows = -(-len(runs) // columns)
        figure = new_figure(width, 3.4 + 0.21 * rows, dpi=150)
        panels = figure.subplots(1, len(names), squeeze=False)[0]
        for panel, name in zip(panels, names, strict=True):
            handles = _draw(panel, name, runs, x)
        if len(runs) > 1:
            labels = [plain_label(name) for name in runs]
            legend = figure.legend(handles, labels, loc="outside lower center", ncols=columns)
            for line in legend.get_lines():
                line.set(linewidth=STYLE["lines.linewidth"], alpha=1, marker="")
        else:
            figure.suptitle(plain_label(next(iter(runs))), fontsize=10)
        if path is not None:
            write_figure(figure, path)
    return figure


def write_figure(figure: Any, path: str | Path) -> None:
    """Write a matplotlib figure to a file: .png, .pdf or .svg."""
    content = figure_bytes(figure, _suffix(path))
    files.make_folder(Path(path).parent)
    files.write_atomically(Path(path), content)


def figure_bytes(figure: Any, suffix: str) -> bytes:
    """Return a matplotlib figure as the content of a file with a suffix; equal figures are equal files."""
    import matplotlib as mpl

    content = BytesIO()
    with mpl.rc_context({"svg.fonttype": STYLE["svg.fonttype"]}):
        figure.savefig(content, format=suffix[1:], metadata={"CreationDate": None} if suffix == ".pdf" else None)
    return content.getvalue()


def _suffix(path: str | Path | None) -> str:
    suffix = "" if path is None else as_path("path", path).suffix
    if path is not None and suffix not in _FORMATS:
        raise SettingsError(f"{path} ends in {suffix!r}; a figure's name ends in .png, .pdf or .svg")
    return suffix


def _runs(held: Any) -> list[Result]:
    runs = [held] if isinstance(held, Result) else listed("a run to plot", held, "results of d3gd.run")
    wrong = [run for run in runs if not isinstance(run, Result)]
    if wrong or not runs:
        raise RecordError(f"results holds {shown(wrong[0]) if wrong else 'no run'}; give results of d3gd.run")
    return runs


def _chosen(metrics: Sequence[str], results: Sequence[Result]) -> list[str]:
    recorded = [name for name in results[0].metrics if all(name in result.metrics for result in results)]
    names = list(metrics) or [name for name in _DEFAULT if name in recorded]
    missing = [name for name in names if name not in recorded]
    if missing or not names:
        what = f"metric {shown(missing[0])} is" if missing else "stationarity and disagreement are"
        raise RecordError(f"{what} not recorded in all of these runs; choose from {', '.join(recorded) or 'none'}")
    return names


def _draw(panel: Any, name: str, runs: Mapping[str, Sequence[Result]], x: str) -> list[Any]:
    """Plot a metric of all runs, and return a line of each."""
    handles = []
    unit, size = _unit(runs) if x == "bytes" else ("", 1.0)
    held = [result.metrics[name].astype(float) for group in runs.values() for result in group]
    log = deserves_log(name, np.concatenate([curve.ravel() for curve in held]))
    for i, (label, group) in enumerate(runs.items()):
        look = {"color": PALETTE[i % len(PALETTE)], "linestyle": _DASHES[i % len(_DASHES)]}  # curves may coincide
        if len(group) == 1:
            curve, across = group[0].metrics[name].astype(float), _across(group[0], label, x) / size
        else:
            places, quartiles = quartiles_of(group, name, x)
            curve, across = quartiles[1], places / size
            low, high = (_seen(each, log) for each in quartiles[[0, 2]])
            panel.fill_between(across, low, high, color=look["color"], alpha=0.15, linewidth=0)
        curve = _seen(curve, log)
        thin = {"linewidth": 0.6, "alpha": 0.6} if curve.ndim > 1 else {}
        alone = {"marker": "."} if np.isfinite(curve).sum(axis=0).max() < 2 else {}
        lines = panel.plot(across, curve, **look, **thin, **alone)
        handles.append(lines[0])
    panel.set_yscale("log" if log else "linear")
    titles = {"iterations": "iteration", "bytes": f"sent over all links ({unit})", "time": "time (s), at the mean pace"}
    panel.set_xlabel(titles[x])
    panel.set_ylabel(TITLES.get(name, plain_label(name)))
    panel.margins(x=0.03)
    return handles


def _seen(curve: Floats, log: bool) -> Floats:
    """Return a curve with gaps where a logarithmic axis cannot show it: disagreement starts at zero."""
    return np.where(curve > 0, curve, np.nan) if log else curve


def quartiles_of(group: Sequence[Result], name: str, x: str = "iterations") -> tuple[Array, Floats]:
    """Return the places of the records that all runs have, and the quartiles there, over runs and agents.

    Args:
        group: The runs.
        name: The metric.
        x: What the places are on: ``"iterations"``, ``"bytes"`` or ``"time"``, of which the median over runs is taken.
    """
    common = group[0].iterations
    for result in group[1:]:
        common = np.intersect1d(common, result.iterations)
    rows = [result.metrics[name].astype(float)[np.isin(result.iterations, common)] for result in group]
    table = np.concatenate([row.reshape(len(common), -1) for row in rows], axis=1)
    places = [_across(run, "a run", x)[np.isin(run.iterations, common)] for run in group]
    with np.errstate(invalid="ignore"):  # between infinite values there is a gap
        return np.median(places, axis=0), np.quantile(table, [0.25, 0.5, 0.75], axis=1)


def deserves_log(name: str, values: Floats) -> bool:
    """Whether a metric's values are best seen on a logarithmic axis."""
    finite = values[np.isfinite(values)]
    positive = finite[finite > 0]
    if name.startswith(_LINEAR) or not positive.size or finite.min() < 0:
        return False
    return name.startswith(_DEFAULT) or bool(positive.max() > 10 * positive.min())


def _across(result: Result, label: str, x: str) -> Any:
    """Return the horizontal places of a run's records."""
    if x == "iterations":
        return result.iterations
    if x == "time":
        return result.iterations * (result.seconds / max(1, int(result.iterations[-1])))
    if "bytes" not in result.metrics:
        raise RecordError(f"{label} has no record of bytes; plot against iterations, or record the metric 'bytes'")
    return result.metrics["bytes"]


def _unit(runs: Mapping[str, Iterable[Result]]) -> tuple[str, float]:
    most = max(float(_across(run, label, "bytes").max()) for label, group in runs.items() for run in group)
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if most >= 2 * size:
            return unit, size
    return "bytes", 1.0
