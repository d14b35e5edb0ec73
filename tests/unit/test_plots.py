"""Figures of runs, whatever their names hold."""

import pytest

import d3gd


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
