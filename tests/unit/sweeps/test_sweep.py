"""Sweeps: every combination with every seed, continued and not repeated, with failures listed."""

import csv
import shutil
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import d3gd
from d3gd.errors import D3GDError, RecordError, SettingsError
from d3gd.sweeps.points import Point, parsed

FILE = """
iterations = 20
every = 10
[graph]
kind = "ring"
n = 3
[problem]
kind = "quadratic"
dim = 2
[algorithm]
kind = "DiDGD"
step_size = 0.1
"""
STEPS = {"algorithm.step_size": [0.05, 0.1], "graph.n": [3, 4]}


@pytest.fixture
def path(tmp_path):
    (tmp_path / "small.toml").write_text(FILE)
    return tmp_path / "small.toml"


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    (folder / "small.toml").write_text(FILE)
    return d3gd.sweep(folder / "small.toml", STEPS, out=folder / "out", seeds=2, jobs=1)


def test_each_run_is_the_one_that_its_settings_describe(done):
    assert len(done.rows) == 8
    for row in done.rows:
        n, step = row.values["graph.n"], row.values["algorithm.step_size"]
        alone = d3gd.run(
            d3gd.DiDGD(step_size=step),
            d3gd.graphs.ring(n),
            d3gd.problems.quadratic(agents=n, dim=2, seed=row.seed),
            iterations=20,
            seed=row.seed,
        )
        assert np.array_equal(done.result(row).x, alone.x)
        assert row.final["loss"] == alone.metrics["loss"][-1]
        assert (row.status, row.iterations) == ("completed", 20)


def test_the_table_has_one_row_per_run_and_the_figures_are_there(done):
    with (done.folder / "sweep.csv").open() as file:
        table = list(csv.DictReader(file))
    told = [(float(r["algorithm.step_size"]), int(r["graph.n"]), int(r["seed"])) for r in table]
    assert told == [(step, n, seed) for step in (0.05, 0.1) for n in (3, 4) for seed in (0, 1)]
    assert [float(r["stationarity"]) for r in table] == [row.final["stationarity"] for row in done.rows]
    assert all((done.folder / r["run"] / "metrics.csv").exists() for r in table)
    assert all((done.folder / f"sweep.{suffix}").stat().st_size > 1000 for suffix in ("png", "pdf"))
    assert list(done.to_pandas()["graph.n"]) == [3, 3, 4, 4] * 2


def test_the_parquet_table_holds_what_the_csv_does(tmp_path):
    """Also where values of one setting have several types, and where runs failed and have no metrics."""
    pytest.importorskip("pyarrow", reason="there is no pyarrow; pip install 'd3gd[parquet]' brings it")
    import pandas as pd

    def make(step_size, name, seed):
        if name == "bad":
            raise RuntimeError('it is bad, \ud800 and "quoted"')
        graph, problem = d3gd.graphs.ring(3), d3gd.problems.quadratic(agents=3, dim=2, seed=seed)
        return {"algorithm": d3gd.DiDGD(step_size=step_size), "graph": graph, "problem": problem, "iterations": 20}

    settings = {"step_size": [0.1, 1], "name": ["ä", "bad", 3, [1, 2], None]}
    made = d3gd.sweep(make, settings, out=tmp_path / "out", jobs=1)
    table = pd.read_parquet(made.folder / "sweep.parquet")
    assert table["name"].tolist() == ["ä", "bad", "3", "[1, 2]", "None"] * 2
    assert table["step_size"].tolist() == [0.1] * 5 + [1.0] * 5
    finished = [row.final.get("stationarity", np.nan) for row in made.rows]
    assert np.array_equal(table["stationarity"], finished, equal_nan=True)
    assert np.isnan(finished).sum() == 2
    plain = pd.read_csv(made.folder / "sweep.csv", keep_default_na=False, na_values={"stationarity": ""})
    for name in ("step_size", "name", "seed", "status", "message", "stationarity", "run"):
        assert table[name].equals(plain[name].astype(table[name].dtype)), name


def test_combinations_are_ranked_by_their_median_over_seeds(done):
    for group in done.groups:
        values = [row.final["stationarity"] for row in group.rows]
        assert (group.low, group.median, group.high) == pytest.approx(np.quantile(values, [0.25, 0.5, 0.75]))
    medians = [group.median for group in done.ranked]
    assert medians == sorted(medians)
    assert done.best is not None
    assert r"\begin{tabular}{llrl}" in done.to_latex()
    assert done._repr_html_().count("<tr") == 5


def test_the_heat_map_shows_the_medians_on_given_axes(done):
    axes = Figure().subplots()
    assert done.plot(metric="loss", ax=axes) is axes
    (picture,) = axes.get_images()
    losses = np.array([[np.median([row.final["loss"] for row in g.rows]) for g in done.groups]]).reshape(2, 2)
    assert np.allclose(picture.get_array(), losses)


def test_nothing_is_repeated_and_more_only_adds(done, tmp_path):
    folder = tmp_path / "again"
    shutil.copytree(done.folder, folder)
    file = done.folder.parent / "small.toml"
    before = {place: place.stat().st_mtime_ns for place in folder.rglob("result.json")}
    d3gd.sweep(file, {**STEPS, "algorithm.step_size": [0.1, 0.2]}, out=folder, seeds=2, jobs=1)
    after = {place: place.stat().st_mtime_ns for place in folder.rglob("result.json")}
    assert {place: after[place] for place in before} == before
    assert len(after) == 12


def test_a_longer_sweep_continues_its_runs_bit_for_bit(path, tmp_path):
    steps = {"algorithm.step_size": [0.1]}
    d3gd.sweep(path, steps, out=tmp_path / "two", jobs=1)
    longer = d3gd.sweep(path, steps, out=tmp_path / "two", jobs=1, iterations=40)
    whole = d3gd.sweep(path, steps, out=tmp_path / "one", jobs=1, iterations=40)
    assert np.array_equal(longer.result(longer.rows[0]).x, whole.result(whole.rows[0]).x)


def test_a_run_that_was_interrupted_or_damaged_is_finished(path, tmp_path):
    found = d3gd.sweep(path, {}, out=tmp_path / "out", seeds=2, jobs=1)
    first, second = (found.folder / row.place for row in found.rows)
    (first / "result.json").unlink()
    (second / "models.npz").write_bytes(b"damaged")
    again = d3gd.sweep(path, {}, out=tmp_path / "out", seeds=2, jobs=1)
    assert [row.status for row in again.rows] == ["completed"] * 2
    assert [row.final for row in again.rows] == [row.final for row in found.rows]


def test_another_experiment_is_refused_before_anything_runs(path, tmp_path):
    d3gd.sweep(path, {}, out=tmp_path / "out", jobs=1)
    path.write_text(FILE.replace("dim = 2", "dim = 3"))
    with pytest.raises(RecordError, match="a run of another experiment"):
        d3gd.sweep(path, {}, out=tmp_path / "out", seeds=3, jobs=1)
    assert len(list((tmp_path / "out").rglob("result.json"))) == 1
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("")
    with pytest.raises(RecordError, match="something other than a sweep"):
        d3gd.sweep(path, {}, out=tmp_path / "mine", jobs=1)


def test_failures_are_listed_and_the_others_go_on(path, tmp_path, capsys):
    found = d3gd.sweep(path, {"algorithm.step_size": [-1.0, 1e6, 0.1]}, out=tmp_path / "out", jobs=1)
    assert [row.status for row in found.rows] == ["failed", "diverged", "completed"]
    assert "step_size = -1.0" in found.failures[0].message
    assert found.best.values == {"algorithm.step_size": 0.1}
    assert [group.note for group in found.groups] == ["failed", "diverged", ""]
    found.show()
    assert "failed: runs/algorithm.step_size=-1/seed-0: small.toml: [algorithm] step_size" in capsys.readouterr().out


def make(step_size, seed):
    if step_size > 1:
        raise RuntimeError("too\nlong")
    problem = d3gd.problems.quadratic(agents=3, dim=2, seed=seed)
    return {
        "algorithm": d3gd.DiDGD(step_size=step_size),
        "graph": d3gd.graphs.ring(3),
        "problem": problem,
        "iterations": 20,
    }


def test_a_function_makes_the_runs_and_its_errors_are_told(tmp_path):
    found = d3gd.sweep(make, {"step_size": [0.1, 2.0]}, out=tmp_path, seeds=[3, 5], jobs=1)
    assert [row.message for row in found.failures] == ["RuntimeError: too long"] * 2
    alone = d3gd.run(**make(0.1, 5), seed=5)
    assert np.array_equal(found.result(found.rows[1]).x, alone.x)
    again = d3gd.sweep(make, {"step_size": [0.1]}, out=tmp_path, seeds=[3, 5], jobs=1)
    assert [row.final for row in again.rows] == [row.final for row in found.rows[:2]]
    wrong = d3gd.sweep(lambda seed: 3, {}, out=tmp_path / "wrong", jobs=1)
    assert "the function returned 3" in wrong.failures[0].message


def test_where_all_failed_there_is_still_a_table(path, tmp_path):
    found = d3gd.sweep(path, {"algorithm.step_size": [-1.0]}, out=tmp_path / "out", jobs=1)
    assert (found.folder / "sweep.csv").read_text().count("\n") == 2
    assert not (found.folder / "sweep.png").exists()


@pytest.mark.parametrize(
    ("settings", "options", "told"),
    [
        ({"algorithm.stepsize": [1]}, {}, "did you mean 'step_size'"),
        ({"agorithm.step_size": [1]}, {}, r"did you mean '\[algorithm\]'"),
        ({"algorithm.step_size": ["fast"]}, {}, "must be a number"),
        ({"iterations.many": [1]}, {}, "iterations is 20, not a table"),
        ({"graph.n": []}, {}, "has no value"),
        ({"graph.n": 3}, {}, "values"),
        ({"seed": [1]}, {}, "--seeds"),
        ({3: [1]}, {}, "cannot be called 3"),
        ({}, {"seeds": 0}, "seeds"),
        ({}, {"seeds": []}, "no seed"),
        ({}, {"backend": "rocket"}, "'rocket' is not available"),
        ({}, {"jobs": 0}, "jobs"),
        ({}, {"metric": 3}, "metric = 3"),
        ({}, {"metric": "lss"}, "did you mean 'loss'"),
    ],
)
def test_what_cannot_be_swept_is_told(path, tmp_path, settings, options, told):
    with pytest.raises(D3GDError, match=told):
        d3gd.sweep(path, settings, out=tmp_path / "out", **{"jobs": 1, **options})


def test_values_on_the_command_line_are_toml_or_text():
    assert parsed("a.b=1,2.5,true,text") == ("a.b", [1, 2.5, True, "text"])
    assert parsed('metrics=["loss","bytes"],["loss"]') == ("metrics", [["loss", "bytes"], ["loss"]])
    assert parsed("x='a,b',c") == ("x", ["a,b", "c"])
    with pytest.raises(SettingsError, match="give a name and its values"):
        parsed("algorithm.step_size")


def test_names_of_folders_are_short_and_different_whatever_values_hold():
    values = ["../../up", "a/b", "a:b", "ä", "x" * 300, {"start": 0.1, "power": 0.5}]
    places = [Point({"k": value}, 0).place for value in values]
    assert len(set(places)) == len(values)
    for place in places:
        assert place.parts[0] == "runs"
        assert len(place.parts) == 3
        assert ".." not in place.parts
        assert len(place.parts[1]) < 100
    assert Point({}, 4).place == Path("runs/seed-4")
