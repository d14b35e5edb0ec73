"""Figures of runs, whatever their names hold."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from PIL import Image

import d3gd
from d3gd.algorithms.identity import describe
from d3gd.errors import GraphError, RecordError, SettingsError
from d3gd.plots.movie import _scene


@pytest.fixture(scope="module")
def result():
    graph, problem = d3gd.graphs.ring(3), d3gd.problems.quadratic(agents=3, dim=2)
    metrics = {"$loss^": lambda s: s.problem.loss(s.x)}
    return d3gd.run(d3gd.DiDGD(step_size=0.1), graph, problem, iterations=50, metrics=metrics)


def test_names_of_runs_and_metrics_are_shown_as_they_are(result, tmp_path):
    path = tmp_path / "runs.svg"  # a warning would be an error
    d3gd.plots.plot_runs({"_hidden$x_{": result, "two\nlines": result}, path, metrics=["$loss^"])
    drawn = path.read_text()
    assert all(name in drawn for name in ("_hidden$x_{", "two lines", "$loss^"))


@pytest.fixture(scope="module")
def seeds():
    problem = d3gd.problems.quadratic
    return [
        d3gd.run(
            d3gd.DiDGD(step_size=0.1), d3gd.graphs.ring(3), problem(agents=3, dim=2, seed=s), iterations=30, seed=s
        )
        for s in range(4)
    ]


def test_a_figure_is_returned_and_files_only_when_asked(seeds, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    figure = seeds[0].plot()
    panels = figure.axes
    assert [panel.get_ylabel().split()[0] for panel in panels] == ["stationarity", "disagreement"]
    for panel, name in zip(panels, ("stationarity", "disagreement"), strict=True):
        (line,) = panel.get_lines()
        values = seeds[0].metrics[name]
        assert np.array_equal(line.get_xdata(), seeds[0].iterations)
        assert np.array_equal(line.get_ydata(), np.where(values > 0, values, np.nan), equal_nan=True)
    assert list(tmp_path.iterdir()) == []
    for suffix in ("pdf", "png"):
        d3gd.plots.plot_runs({"a": seeds[0]}, f"figure.{suffix}")
        assert (tmp_path / f"figure.{suffix}").stat().st_size > 1000


def test_given_axes_are_used_and_returned(seeds):
    axes = Figure().subplots()
    assert seeds[0].plot("loss", ax=axes) is axes
    assert np.array_equal(axes.get_lines()[0].get_ydata(), seeds[0].metrics["loss"])
    d3gd.plots.plot_runs({"a": seeds[1], "b": seeds[2]}, metrics=["loss"], ax=axes)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "b"]
    with pytest.raises(SettingsError, match="ax= takes one metric"):
        d3gd.plots.plot_runs({"a": seeds[1]}, metrics=["loss", "bytes"], ax=axes)


def test_seeds_become_a_median_with_quartiles(seeds):
    groups = d3gd.plots.grouped((str(i), result) for i, result in enumerate(seeds))
    assert list(groups) == ["DiDGD (4 seeds)"]
    axes = d3gd.plots.plot_runs(groups, metrics=["loss"]).axes[0]
    table = np.array([result.metrics["loss"] for result in seeds])
    (line,) = axes.get_lines()
    np.testing.assert_allclose(line.get_ydata(), np.median(table, axis=0))
    band = axes.collections[0].get_paths()[0].vertices
    for place, k in enumerate(seeds[0].iterations):
        edge = band[band[:, 0] == k, 1]
        low, high = np.quantile(table[:, place], [0.25, 0.75])
        assert np.allclose([edge.min(), edge.max()], [low, high])


def test_a_label_names_what_differs_and_nothing_else(seeds):
    other = [replace(run, settings={**run.settings, "algorithm": {"kind": "DiDGD", "step_size": 0.2}}) for run in seeds]
    pairs = [(str(i), run) for i, run in enumerate([*seeds[:2], *other[:3]])]
    assert list(d3gd.plots.grouped(pairs)) == ["step_size=0.1 (2 seeds)", "step_size=0.2 (3 seeds)"]
    assert list(d3gd.plots.grouped(pairs[1:3])) == ["step_size=0.1, seed=1", "step_size=0.2, seed=0"]
    assert list(d3gd.plots.labels_of(pairs[:2])) == ["seed=0", "seed=1"]
    assert list(d3gd.plots.grouped([("a", seeds[0]), ("b", seeds[0])])) == ["DiDGD (a)", "DiDGD (b)"]


def test_where_methods_differ_their_defaults_go_without_saying(seeds):
    methods = [
        d3gd.DiDGD(step_size=0.1),
        d3gd.DiDGD(step_size=0.1, perron="known"),
        d3gd.PerronD3GD(step_size=0.2),
        d3gd.PerronD3GD(step_size=0.2, rule="fixed"),
    ]
    told = [{**seeds[0].settings, "algorithm": describe(method)} for method in methods]
    pairs = [(str(i), replace(seeds[0], settings=settings)) for i, settings in enumerate(told)]
    steps = [f"step_size={size}" for size in (0.1, 0.1, 0.2, 0.2)]
    names = ["DiDGD", "DiDGD", "PerronD3GD", "PerronD3GD"]
    rest = [[], ["perron=known"], [], ["rule=fixed"]]
    assert list(d3gd.plots.labels_of(pairs)) == [
        ", ".join([name, step, *more]) for name, step, more in zip(names, steps, rest, strict=True)
    ]
    assert list(d3gd.plots.labels_of(pairs[:2])) == ["perron=tracked", "perron=known"]  # one method: the values differ


def test_time_is_at_the_mean_pace_of_a_run(seeds):
    run = replace(seeds[0], seconds=6.0)
    line = run.plot("loss", x="time").axes[0].get_lines()[0]
    np.testing.assert_allclose(line.get_xdata(), run.iterations / 5)
    with pytest.raises(SettingsError, match="x = 'hours'"):
        run.plot(x="hours")


def test_a_network_is_drawn_with_links_as_wide_as_their_weights(tmp_path):
    graph = d3gd.Digraph.from_edges(4, [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)], labels=["a", "$b^", "c", "d"])
    weights = d3gd.weights.metropolis(graph)
    axes = graph.draw(weights)
    widths = {patch.get_gid(): patch.get_linewidth() for patch in axes.patches}
    matrix = weights.toarray()
    assert widths.keys() == {f"link-{j}-{i}" for j, i in graph.edges.tolist()}
    largest = max(matrix[i, j] for j, i in graph.edges.tolist())
    for j, i in graph.edges.tolist():
        assert widths[f"link-{j}-{i}"] == pytest.approx(4 * matrix[i, j] / largest)
    axes.figure.savefig(tmp_path / "network.pdf")
    assert [text.get_text() for text in axes.texts] == ["a", r"\$b^", "c", "d"]
    own = Figure().subplots()
    assert graph.draw(ax=own) is own
    assert len(own.patches) == 5
    with pytest.raises(GraphError, match=r"shape \(3, 3\), the graph has 4 agents"):
        graph.draw(np.eye(3))


@pytest.fixture(scope="module")
def recorded():
    graph, problem = d3gd.graphs.erdos_renyi(5, 0.5, seed=1), d3gd.problems.quadratic(agents=5, dim=2)
    return d3gd.run(d3gd.D3GD(step_size=0.05), graph, problem, iterations=30, record_weights=True)


def test_a_movie_has_a_frame_per_record_and_they_differ(recorded, tmp_path):
    path = tmp_path / "movies" / "run.gif"
    d3gd.plots.movie({"$a$": recorded}, path, fps=2)
    with Image.open(path) as film:
        assert film.n_frames == len(recorded.history)  # equal frames are one, shown longer
        pictures = []
        for i in range(film.n_frames):
            film.seek(i)
            pictures.append(np.asarray(film.convert("RGB")))
    assert all((one != other).any() for one, other in pairwise(pictures))


def test_a_movie_keeps_the_colours_of_thin_lines(tmp_path):
    graph, problem = d3gd.graphs.erdos_renyi(20, 0.6, seed=0), d3gd.problems.sigmoid_classification(agents=20)
    run = d3gd.run(d3gd.DiDGD(step_size=0.1), graph, problem, iterations=20, record_weights=True)
    d3gd.plots.movie({"one": run, "other": run}, tmp_path / "run.gif", frames=2)
    with Image.open(tmp_path / "run.gif") as film:
        film.seek(film.n_frames - 1)
        pixels = np.array(film.convert("RGB"), dtype=int).reshape(-1, 3)
    for colour in ("#0072B2", "#D55E00"):  # of the two curves, the second dashed over the first
        assert np.abs(pixels - 255 * np.array(to_rgb(colour))).max(axis=1).min() <= 6, colour


def test_a_movie_shows_the_weights_of_each_record(recorded):
    (panel,) = _scene({"a": recorded}, "loss")[1]
    history = recorded.history
    for record in (0, len(history) - 1):
        panel.show(int(history.iterations[record]))
        widths = {ends: link.get_linewidth() for ends, link in panel.links.items()}
        for j, i, weight in zip(history.sources, history.targets, history.weights[record], strict=True):
            if i != j:
                assert widths[j, i] == pytest.approx(4 * weight / panel.largest)


def test_what_cannot_be_a_movie_is_told(recorded, result, tmp_path):
    with pytest.raises(SettingsError, match=r"name ends in .gif"):
        d3gd.plots.movie({"a": recorded}, tmp_path / "a.mp4")
    with pytest.raises(RecordError, match="record_weights = true"):
        d3gd.plots.movie({"a": result}, tmp_path / "a.gif")
    with pytest.raises(RecordError, match="1 to 4 side by side"):
        d3gd.plots.movie(dict.fromkeys("abcde", recorded), tmp_path / "a.gif")
