"""The study's heat map: every cell and method, as a ratio to Di-DGD."""

from collections.abc import Sequence
from io import BytesIO
from typing import Any

import numpy as np

from d3gd.plots import DPI
from studies.plan import BASELINE
from studies.summary import METRICS, Row

_LEAST, _MOST = -3, 1  # range of the colours, in powers of ten
_WIDTH, _ROW, _AROUND = 8.6, 0.085, 2.1  # inches


def draw(rows: Sequence[Row]) -> bytes:
    """Return the heat map as a PNG: blue is below Di-DGD, red above, a cross diverged, grey has no ratio.

    Args:
        rows: The comparison at equal steps, cells in display order.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.colors import TwoSlopeNorm
    from matplotlib.figure import Figure

    cells = sorted({row.cell for row in rows}, key=_order(rows))
    names = [method for method in dict.fromkeys(row.method for row in rows) if method != BASELINE]
    at = {(row.cell, row.method): row for row in rows}
    with mpl.rc_context({"font.size": 8}):
        figure = Figure(figsize=(_WIDTH, _AROUND + _ROW * len(cells)), dpi=DPI, layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(1, len(METRICS))
        colours = mpl.colormaps["RdBu_r"].with_extremes(bad="0.75")
        image: Any = None
        for panel, metric in zip(panels, METRICS, strict=True):
            table = np.array([[at[c, name].ratios[BASELINE][metric].median for name in names] for c in cells])
            with np.errstate(divide="ignore"):
                logs = np.clip(np.log10(table), _LEAST, _MOST)
            image = panel.imshow(
                logs, cmap=colours, norm=TwoSlopeNorm(0, _LEAST, _MOST), aspect="auto", interpolation="nearest"
            )
            lost = np.array([[at[c, name].diverged >= at[c, name].completed for name in names] for c in cells])
            down, across = np.nonzero(lost)
            for colour, width in (("white", 2.0), ("black", 0.9)):  # a rim, visible on dark red
                panel.plot(across, down, "x", color=colour, markersize=4, markeredgewidth=width)
            panel.set_title(metric)
            panel.set_xticks(range(len(names)), names, rotation=40, ha="right", rotation_mode="anchor")
            panel.tick_params(length=0)
            _rule(panel, cells, len(names))
        bar = figure.colorbar(
            image, ax=panels, location="top", shrink=0.6, aspect=50, pad=0.12 / figure.get_figheight(), extend="both"
        )
        bar.set_ticks(range(_LEAST, _MOST + 1), labels=[f"{10.0**i:g}" for i in range(_LEAST, _MOST + 1)])
        bar.set_label(f"final value as a ratio to {BASELINE} at the same step size, median over seeds")
        steps = ", ".join(f"{step:g}" for step in dict.fromkeys(cell.step for cell in cells))
        figure.supxlabel(
            f"Within each batch size, from above: step sizes {steps}.  "
            f"Cross: half or more of the seeds diverged.  Grey: {BASELINE} diverged in all.",
            fontsize=8,
        )
        content = BytesIO()
        figure.savefig(content, format="png")
    return content.getvalue()


def _order(rows: Sequence[Row]) -> Any:
    """Sort cells by data set and network in the order of the rows, then by batch size and step."""
    families = {family: i for i, family in enumerate(dict.fromkeys((r.cell.data, r.cell.network) for r in rows))}
    return lambda cell: (families[cell.data, cell.network], cell.batch is not None, cell.batch or 0, cell.step)


def _rule(panel: Any, cells: Sequence[Any], width: int) -> None:
    """Label data sets, networks and batch sizes on the left, and draw lines between them."""
    places = [cell[:2] for cell in cells]
    batches = [cell[:3] for cell in cells]
    panel.set_yticks([])
    panel.vlines([i + 0.5 for i in range(width - 1)], -0.5, len(cells) - 0.5, lw=0.5, color="white")
    for keys, line in ((batches, {"lw": 0.5, "color": "white"}), (places, {"lw": 1.2, "color": "black"})):
        starts = [i for i, key in enumerate(keys) if i and key != keys[i - 1]]
        panel.hlines([i - 0.5 for i in starts], -0.5, width - 0.5, **line)
    if not panel.get_subplotspec().is_first_col():
        return
    middles = {key: float(np.mean([i for i, k in enumerate(batches) if k == key])) for key in dict.fromkeys(batches)}
    labels = ["full" if key[2] is None else f"{key[2]}" for key in middles]
    panel.set_yticks(list(middles.values()), labels, fontsize=6)
    outer = panel.secondary_yaxis(-0.11)
    middles = {key: float(np.mean([i for i, k in enumerate(places) if k == key])) for key in dict.fromkeys(places)}
    outer.set_yticks(list(middles.values()), [f"{data}\n{network}" for data, network in middles])
    outer.tick_params(length=0)
    outer.spines[:].set_visible(False)
