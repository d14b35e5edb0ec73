"""A run as a moving picture, for slides: the network as its weights change, above its curves."""

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from d3gd.arrays import Floats, Ints
from d3gd.digraph import Digraph
from d3gd.drawing import draw, widest
from d3gd.errors import RecordError, SettingsError, WeightsError
from d3gd.plots.labels import plain_label
from d3gd.result import History, Result
from d3gd.runs import files
from d3gd.validation import as_path, count, mapping, shown
from d3gd.weights import perron

_DRAWN_UP_TO = 100  # agents: more are a tangle at this size
_SIDE_BY_SIDE = 4
_ROSE, _FELL, _SAME = "#0072B2", "#D55E00", "#8A939E"  # as in reports, safe for colour blindness
_DPI, _COLOURS = 100, 128


def movie(
    results: Mapping[str, Result], path: str | Path, *, metric: str | None = None, fps: int = 10, frames: int = 60
) -> None:
    """Write an animation of runs whose weights were recorded: networks side by side, above the curves of a metric.

    The width of a link is its weight, its colour whether the weight rose or fell since the start; the size of an agent
    is its Perron weight, its colour the loss on its own data (dark is most).

    Args:
        results: The runs, by their names, each with ``record_weights=True``.
        path: The file to write; its name ends in .gif.
        metric: The metric below the networks; the first that all runs recorded by default.
        fps: Frames per second.
        frames: The most frames; records are thinned to them.
    """
    target = as_path("path", path)
    if target.suffix != ".gif":
        raise SettingsError(f"{path} ends in {target.suffix!r}; an animation's name ends in .gif")
    count("fps", fps, least=1, most=50)
    count("frames", frames, least=2, most=1000)
    runs = _checked(mapping("results", results, "names to runs"))
    figure, panels, cursor = _scene(runs, metric)
    times = np.unique(np.concatenate([run.history.iterations for run in panels]))
    chosen = times[np.unique(np.linspace(0, len(times) - 1, min(frames, len(times))).round().astype(int))]
    drawn = []
    for k in chosen:
        for panel in panels:
            panel.show(int(k))
        cursor.set_xdata([k, k])
        drawn.append(_drawn(figure))
    first, *others = [*drawn, *[drawn[-1]] * (fps // 2)]  # it rests at the end
    content = BytesIO()
    first.save(content, format="gif", save_all=True, append_images=others, duration=1000 // fps, loop=0)
    files.make_folder(target.parent)
    files.write_atomically(target, content.getvalue())


def _drawn(figure: Any) -> Any:
    """Return a figure as a picture of few colours, not dithered: files are a tenth of those with dots between colours.

    The octree keeps the colours of thin lines, which other palettes mix with their surroundings.
    """
    from PIL import Image

    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3]
    picture = Image.fromarray(np.ascontiguousarray(pixels))
    return picture.quantize(_COLOURS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)


def _checked(results: Mapping[str, Result]) -> dict[str, Result]:
    if not 1 <= len(results) <= _SIDE_BY_SIDE:
        raise RecordError(f"{len(results)} runs were given; an animation shows 1 to {_SIDE_BY_SIDE} side by side")
    for name, run in results.items():
        if not isinstance(run, Result):
            raise RecordError(f"results holds {shown(run)}; give results of d3gd.run")
        if run.history is None:
            raise RecordError(
                f"{name} kept its last weights only; run it with record_weights = true (d3gd run --report)"
            )
        if len(run.x) > _DRAWN_UP_TO:
            raise RecordError(
                f"{name} has {len(run.x)} agents; an animation draws up to {_DRAWN_UP_TO}; see d3gd report instead"
            )
    return dict(results)


class _Panel(NamedTuple):
    """The network of one run."""

    history: History
    links: dict[tuple[int, ...], Any]
    agents: Any
    title: Any
    name: str
    sizes: Floats  # of the agents, per record
    largest: float
    entries: Ints  # positions of the links among the weights

    def show(self, k: int) -> None:
        """Show the weights and agents at an iteration."""
        at = int(np.searchsorted(self.history.iterations, k, side="right")) - 1
        now, first = self.history.weights[at], self.history.weights[0]
        for entry in self.entries:
            link = self.links[int(self.history.sources[entry]), int(self.history.targets[entry])]
            change = now[entry] - first[entry]
            same = abs(change) <= 1e-3 * self.largest or not np.isfinite(change)
            link.set_color(_SAME if same else _ROSE if change > 0 else _FELL)
            share = min(1.0, abs(now[entry]) / self.largest) if np.isfinite(now[entry]) else 0.0
            link.set_linewidth(widest(len(self.entries)) * share)
        self.agents.set_sizes(self.sizes[at])
        if self.history.losses is not None:
            losses = self.history.losses[at]
            low, high = (0.0, 1.0) if not np.isfinite(losses).all() else (losses.min(), losses.max())
            equal = high - low <= 1e-9 * abs(high)
            self.agents.set_array(np.full(len(losses), 0.5) if equal else (high - losses) / (high - low))
        self.title.set_text(f"{plain_label(self.name)}\niteration {self.history.iterations[at]}")


def _scene(runs: Mapping[str, Result], metric: str | None) -> tuple[Any, list[_Panel], Any]:
    """Return the figure, the panels of the networks, and the time cursor."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from d3gd.plots import STYLE, plot_runs

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(max(4.5, 4.0 * len(runs)), 6.0), layout="constrained", dpi=_DPI)
        FigureCanvasAgg(figure)
        grid = figure.add_gridspec(2, len(runs), height_ratios=[5, 2])
        panels = [_panel(figure.add_subplot(grid[0, i]), name, run) for i, (name, run) in enumerate(runs.items())]
        axes = figure.add_subplot(grid[1, :])
        plot_runs(dict(runs), metrics=[] if metric is None else [metric], ax=axes)
        axes.set_ylabel(axes.get_ylabel().split("  ")[0])  # without its formula, which is longer than the panel
        cursor = axes.axvline(0, color="black", linewidth=1, linestyle=":")
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # nothing jumps while it plays
    return figure, panels, cursor


def _panel(axes: Any, name: str, run: Result) -> _Panel:
    from matplotlib.patheffects import withStroke

    history = run.history
    assert history is not None
    n = len(run.x)
    entries = np.flatnonzero(history.sources != history.targets)
    pairs = np.column_stack([history.sources, history.targets])[entries]
    draw(Digraph.from_edges(n, pairs, labels=run.labels), ax=axes)
    (agents,) = axes.collections
    links = {tuple(int(part) for part in link.get_gid().split("-")[1:]): link for link in axes.patches}
    finite = history.weights[:, entries][np.isfinite(history.weights[:, entries])]
    usual = float(agents.get_sizes()[0])
    agents.set(cmap="cividis", clim=(0, 1))
    for text in axes.texts:
        text.set_path_effects([withStroke(linewidth=2, foreground="white")])  # on dark agents too
    return _Panel(
        history,
        links,
        agents,
        axes.set_title(" \n ", fontsize=10),
        name,
        np.array([usual * np.clip(n * _perron(history, i), 0.15, 4.0) for i in range(len(history))]),
        float(finite.max(initial=0)) or 1.0,
        entries,
    )


def _perron(history: History, record: int) -> Floats:
    matrix = history.matrix(record)
    try:
        return perron(matrix)
    except WeightsError:  # they no longer connect all agents, or the run diverged
        return np.full(matrix.shape[0], 1 / matrix.shape[0])
