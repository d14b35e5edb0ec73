"""Curves of runs."""

from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import numpy as np

from d3gd.arrays import Floats
from d3gd.errors import RecordError, SettingsError
from d3gd.result import Result
from d3gd.runs import files
from d3gd.validation import as_path, listed, mapping, one_line, one_of, shown

# Okabe and Ito's colours, safe for colour blindness; their yellow is too pale for a line.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DPI = 220  # of figures for papers
_DASHES = ("-", "--", "-.", ":")
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


def plot_runs(
    results: Mapping[str, Result],
    path: str | Path,
    *,
    metrics: Sequence[str] = (),
    x: Literal["iterations", "bytes"] = "iterations",
) -> None:
    """Plot the curves of several runs in one figure, with a panel for each metric.

    Args:
        results: The runs, by their names in the legend.
        path: The file to write; its suffix defines the format: .png, .pdf or .svg.
        metrics: The metrics to plot; by default stationarity and disagreement.
        x: The horizontal axis: iterations or bytes sent.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    path = as_path("path", path)
    one_of("x", x, ("iterations", "bytes"))
    if path.suffix not in (".png", ".pdf", ".svg"):
        raise SettingsError(f"{path} ends in {path.suffix!r}; a figure's name ends in .png, .pdf or .svg")
    names = _chosen(metrics, results)
    with mpl.rc_context(STYLE):
        width = 0.6 + 4.4 * len(names)
        # The legend is below the panels, in as many columns as fit, and the figure grows with its rows.
        columns = min(len(results), max(1, int(width * 11 / max(len(label) + 6 for label in results))))
        rows = -(-len(results) // columns)
        figure = Figure(figsize=(width, 3.4 + 0.21 * rows), dpi=150, layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(1, len(names), squeeze=False)[0]
        for panel, name in zip(panels, names, strict=True):
            handles = _draw(panel, name, results, x)
        if len(results) > 1:
            labels = [plain_label(name) for name in results]
            legend = figure.legend(handles, labels, loc="outside lower center", ncols=columns)
            for line in legend.get_lines():
                line.set(linewidth=STYLE["lines.linewidth"], alpha=1, marker="")
        else:
            figure.suptitle(plain_label(next(iter(results))), fontsize=10)
        content = BytesIO()
        figure.savefig(content, format=path.suffix[1:])
    files.make_folder(path.parent)
    files.write_atomically(path, content.getvalue())


def plain_label(text: str) -> str:
    r"""Return a user's text for a figure: on one line, with dollar signs escaped.

    Example:
        >>> plain_label("5 $")
        '5 \\$'
    """
    return one_line(text).replace("$", r"\$")


def labels_of(results: Iterable[tuple[str, Result]]) -> dict[str, Result]:
    """Name runs for a legend: the algorithm and the settings that differ.

    Args:
        results: Pairs of a folder's name and its run. The folder's name distinguishes runs with the same settings.
    """
    pairs = list(results)
    facts = [_facts(result.settings) for _, result in pairs]
    keys = [key for key in dict.fromkeys(key for fact in facts for key in fact) if key != "algorithm"]
    differing = [key for key in keys if len({repr(fact[key]) for fact in facts if key in fact}) > 1]
    labels = [
        ", ".join([str(fact["algorithm"]), *(f"{key}={_short(fact[key])}" for key in differing if key in fact)])
        for fact in facts
    ]
    repeated = {label for label in labels if labels.count(label) > 1}
    named: dict[str, Result] = {}
    for label, (folder, result) in zip(labels, pairs, strict=True):
        named[f"{label} ({folder})" if label in repeated or len(pairs) == 1 else label] = result
    return named


def _facts(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run's settings as a flat mapping, by their names in a legend."""
    algorithm = dict(settings.get("algorithm", {}))
    facts = {"algorithm": algorithm.pop("kind", "run"), **algorithm, "seed": settings.get("seed")}
    for part in ("graph", "problem"):
        facts |= {f"{part}.{key}": value for key, value in settings.get(part, {}).items() if key != "fingerprint"}
    return facts


def _short(value: Any) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 24 else text[:21] + "..."


def _chosen(metrics: Sequence[str], results: Mapping[str, Result]) -> list[str]:
    wrong = [value for value in mapping("results", results, "names to runs").values() if not isinstance(value, Result)]
    if wrong or not results:
        found = shown(wrong[0]) if wrong else "nothing"
        raise RecordError(f"results holds {found}; give at least one result of d3gd.run, by its name in the legend")
    recorded = [
        name for name in next(iter(results.values())).metrics if all(name in r.metrics for r in results.values())
    ]
    names = listed("metrics", metrics, "names") or [name for name in _DEFAULT if name in recorded]
    missing = [name for name in names if name not in recorded]
    if missing or not names:
        what = f"metric {shown(missing[0])} is" if missing else "stationarity and disagreement are"
        raise RecordError(f"{what} not recorded in all of these runs; choose from {', '.join(recorded) or 'none'}")
    return names


def _draw(panel: Any, name: str, results: Mapping[str, Result], x: str) -> list[Any]:
    """Plot a metric of all runs, and return a line of each."""
    handles = []
    unit, size = _unit(results) if x == "bytes" else ("", 1.0)
    values = {run: result.metrics[name].astype(float) for run, result in results.items()}
    log = _deserves_log(name, np.concatenate([curve.ravel() for curve in values.values()]))
    for i, (run, result) in enumerate(results.items()):
        across = result.iterations if x == "iterations" else _bytes(result, run) / size
        # A logarithmic axis cannot show the zero at which disagreement starts.
        curve = np.where(values[run] > 0, values[run], np.nan) if log else values[run]
        thin = {"linewidth": 0.6, "alpha": 0.6} if curve.ndim > 1 else {}
        alone = {"marker": "."} if np.isfinite(curve).sum(axis=0).max() < 2 else {}
        # Dashes keep coinciding curves visible.
        lines = panel.plot(across, curve, _DASHES[i % len(_DASHES)], color=PALETTE[i % len(PALETTE)], **thin, **alone)
        handles.append(lines[0])
    panel.set_yscale("log" if log else "linear")
    panel.set_xlabel("iteration" if x == "iterations" else f"sent over all links ({unit})")
    panel.set_ylabel(TITLES.get(name, plain_label(name)))
    panel.margins(x=0.03)
    return handles


def _deserves_log(name: str, values: Floats) -> bool:
    finite = values[np.isfinite(values)]
    positive = finite[finite > 0]
    if name.startswith(_LINEAR) or not positive.size or finite.min() < 0:
        return False
    return name.startswith(_DEFAULT) or bool(positive.max() > 10 * positive.min())


def _bytes(result: Result, label: str) -> Any:
    if "bytes" not in result.metrics:
        raise RecordError(f"{label} has no record of bytes; plot against iterations, or record the metric 'bytes'")
    return result.metrics["bytes"]


def _unit(results: Mapping[str, Result]) -> tuple[str, float]:
    most = max(float(_bytes(result, label).max()) for label, result in results.items())
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if most >= 2 * size:
            return unit, size
    return "bytes", 1.0
