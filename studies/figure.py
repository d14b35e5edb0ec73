"""The study's figures: a heat map of all networks and methods, and methods where messages are lost."""

from collections.abc import Sequence
from io import BytesIO
from typing import Any

import numpy as np

from d3gd.comparison.figure import curve
from d3gd.comparison.numbers import shown
from d3gd.comparison.result import Comparison
from d3gd.plots import DPI, PALETTE, STYLE, TITLES
from studies.settings import AVERAGED, BASELINE, DEFAULT, FROST_, PUSH_PULL
from studies.summary import Row, batch_words, mean_of

_LEAST, _MOST = -3, 1  # range of the colours, in powers of ten
_LINES = (  # the methods under loss: colour, dashes, and what agents must know
    (DEFAULT, PALETTE[1], "-", "in-neighbours"),
    (AVERAGED, PALETTE[0], "-", "in-neighbours"),
    (f"{AVERAGED}, decaying", PALETTE[5], "-", "in-neighbours"),
    ("PULM-DGD", PALETTE[3], "-", "in-neighbours"),
    ("R-FAST", PALETTE[2], (0, (4, 1.4, 1, 1.4)), "out-degrees"),
    (BASELINE, PALETTE[6], (0, (1.2, 1.2)), "does not survive loss"),
    (FROST_, PALETTE[4], (0, (1.2, 1.2)), "does not survive loss"),
    (PUSH_PULL, "0.5", (0, (1.2, 1.2)), "does not survive loss"),
)


def heat_map(rows: Sequence[Row]) -> bytes:
    """Return the heat map of stationarity as a PNG, a panel for each batch size.

    Args:
        rows: The comparison at equal steps, in display order.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.colors import TwoSlopeNorm
    from matplotlib.figure import Figure

    places = list(dict.fromkeys((row.cell.group, row.cell.data, row.cell.network) for row in rows))
    names = [method for method in dict.fromkeys(row.method for row in rows) if method != BASELINE]
    batches = list(dict.fromkeys(row.cell.batch for row in rows))
    with mpl.rc_context({"font.size": 8}):
        figure = Figure(figsize=(9.4, 1.9 + 0.21 * len(places)), dpi=DPI, layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(1, len(batches), sharey=True, squeeze=False)[0]
        colours = mpl.colormaps["RdBu_r"].with_extremes(bad="0.8")
        image: Any = None
        for panel, batch in zip(panels, batches, strict=True):
            table = _table([row for row in rows if row.cell.batch == batch], places, names)
            with np.errstate(divide="ignore"):
                logs = np.clip(np.log10(table), _LEAST, _MOST)
            image = panel.imshow(logs, cmap=colours, norm=TwoSlopeNorm(0, _LEAST, _MOST), aspect="auto")
            for (i, j), value in np.ndenumerate(table):
                dark = not np.isnan(value) and not 10 ** (0.6 * _LEAST) < value < 10 ** (0.6 * _MOST)
                text = "" if np.isnan(value) else shown(value)
                panel.text(j, i, text, ha="center", va="center", fontsize=5.5, color="white" if dark else "black")
            panel.set_title(batch_words(batch))
            panel.set_xticks(range(len(names)), names, rotation=40, ha="right", rotation_mode="anchor")
            panel.set_yticks(range(len(places)), [f"{data}, {network}" for _, data, network in places])
            panel.tick_params(length=0)
            starts = [i for i, place in enumerate(places) if i and place[0] != places[i - 1][0]]
            panel.hlines([i - 0.5 for i in starts], -0.5, len(names) - 0.5, lw=1.4, color="black")
        bar = figure.colorbar(image, ax=list(panels), location="top", shrink=0.6, aspect=50, extend="both")
        bar.set_ticks(range(_LEAST, _MOST + 1), labels=[f"{10.0**i:g}" for i in range(_LEAST, _MOST + 1)])
        bar.set_label(f"stationarity relative to {BASELINE} at the same step size, mean over step sizes")
        return _png(figure)


def _table(rows: Sequence[Row], places: Sequence[tuple[str, str, str]], names: Sequence[str]) -> Any:
    """Return the geometric means over step sizes, (places, methods); NaN where a method was not run."""
    found: dict[tuple[tuple[str, str, str], str], list[float]] = {}
    for row in rows:
        ratio = row.ratio["stationarity"].median
        if not np.isnan(ratio):
            found.setdefault(((row.cell.group, row.cell.data, row.cell.network), row.method), []).append(ratio)
    return np.array([[mean_of(found.get((place, name), [])) for name in names] for place in places])


def under_loss(comparison: Comparison) -> bytes:
    """Return the curves of methods on a network that loses messages, against iterations and bytes, as a PNG."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    steps = {row.method: row.step for row in comparison.rows}
    drawn = [line for line in _LINES if line[0] in comparison.runs]
    starts = [float(run.curves[comparison.metric][0]) for runs in comparison.runs.values() for run in runs]
    with mpl.rc_context({**STYLE, "font.size": 9}):
        figure = Figure(figsize=(9.6, 3.5), dpi=DPI, layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(1, 2, sharey=True)
        for panel, (axis, label, scale) in zip(
            panels, (("iterations", "iteration", 1.0), ("bytes", "sent over all links (MB)", 1e6)), strict=True
        ):
            for method, colour, dashes, _ in reversed(drawn):
                points = curve(comparison.runs[method], axis, comparison.metric)
                if points is not None:
                    places, (low, median, high) = points
                    seen = np.isfinite(high)
                    panel.fill_between(
                        places / scale, low, high, where=seen, color=colour, alpha=0.15, linewidth=0, zorder=1
                    )
                    panel.plot(places / scale, np.where(np.isfinite(median), median, np.nan), color=colour, ls=dashes)
            panel.set_yscale("log")
            panel.set_ylim(top=3 * max(starts))
            panel.set_xlim(left=0)
            panel.set_xlabel(label)
        panels[0].set_ylabel(TITLES[comparison.metric])
        handles, labels = [], []
        for needs in dict.fromkeys(line[3] for line in drawn):
            handles.append(Line2D([], [], linestyle="none"))
            labels.append(needs if needs.startswith("does") else f"knows {needs}")
            for method, colour, dashes, _ in (line for line in drawn if line[3] == needs):
                handles.append(Line2D([], [], color=colour, ls=dashes))
                labels.append(f"{method}, step {steps[method]:g}")
        figure.legend(handles, labels, loc="outside right center", fontsize=8, handlelength=2.6)
        return _png(figure)


def _png(figure: Any) -> bytes:
    content = BytesIO()
    figure.savefig(content, format="png")
    return content.getvalue()
