"""Run folders: written atomically, never overwritten, readable by other tools."""

import csv
import dataclasses
import itertools
import json
import re
import sys
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import load_npz, save_npz

import d3gd
from d3gd.errors import RecordError, SettingsError
from d3gd.runs.files import read_arrays, read_metrics, remove_folder, replacing, write_arrays, write_metrics
from d3gd.runs.lock import Lock
from tests.helpers.folders import GRAPH, METHOD, PROBLEM, contents, dying_at, run, same

# What is written --------------------------------------------------------------------------------------------------


def test_a_folder_holds_what_it_takes_to_repeat_the_run(tmp_path):
    result = run(tmp_path, seed=3)
    settings = json.loads((tmp_path / "settings.json").read_text())
    assert settings["algorithm"]["kind"] == "D3GD"
    assert settings["algorithm"]["step_size"] == 0.05
    assert settings["algorithm"]["anchor"] == 0.2
    assert settings["problem"]["seed"] == 0
    assert settings["seed"] == 3
    assert {"d3gd", "numpy", "scipy", "python"} <= settings["versions"].keys()
    start = np.load(tmp_path / "start.npz", allow_pickle=False)
    graph = d3gd.Digraph(4, start["indptr"], start["sources"])
    again = d3gd.run(
        METHOD,
        graph,
        PROBLEM,
        iterations=settings["iterations"],
        every=settings["every"],
        seed=3,
        weights=graph.matrix(start["weights"]),
        x0=start["x0"],
    )
    same(again, result)


def test_plain_tools_read_the_files(tmp_path):
    result = run(tmp_path)
    with (tmp_path / "metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["iteration"]) for row in rows] == result.iterations.tolist()
    assert [float(row["stationarity"]) for row in rows] == result.metrics["stationarity"].tolist()
    assert np.array_equal(load_npz(tmp_path / "weights.npz").toarray(), result.weights.toarray())
    assert np.array_equal(np.load(tmp_path / "models.npz")["x"], result.x)
    facts = json.loads((tmp_path / "result.json").read_text())
    assert (facts["status"], facts["iterations"]) == ("completed", 60)


def test_nothing_on_disk_needs_pickle(tmp_path):
    run(tmp_path)
    files = list(tmp_path.rglob("*.npz"))
    assert len(files) >= 5
    for path in files:
        with np.load(path, allow_pickle=False) as arrays_of:
            assert all(arrays_of[name].dtype != object for name in arrays_of)
    with pytest.raises(ValueError, match=r"[Oo]bject"):
        write_arrays(tmp_path / "bad.npz", {"x": np.array([object()])})
    assert not (tmp_path / "bad.npz").exists()


def test_no_temporary_files_are_left(tmp_path):
    run(tmp_path)
    assert not [path for path in tmp_path.rglob("*") if path.name.endswith(".tmp")]


@given(
    st.dictionaries(
        st.sampled_from(["stationarity", "loss", "bytes"]),
        arrays(float, 5, elements=st.floats(allow_nan=True, allow_infinity=True)),
        min_size=1,
    ),
    arrays(float, (5, 3), elements=st.floats()),
)
def test_metrics_keep_every_digit(tmp_path_factory, metrics, per_agent):
    path = tmp_path_factory.mktemp("metrics") / "metrics.csv"
    metrics = {**metrics, "accuracy_per_agent": per_agent}
    write_metrics(path, np.arange(5), metrics)
    iterations, read = read_metrics(path)
    assert np.array_equal(iterations, np.arange(5))
    assert read.keys() == metrics.keys()
    for name, values in metrics.items():
        assert np.array_equal(read[name], values, equal_nan=True)


def test_a_loaded_result_equals_the_one_that_was_saved(tmp_path):
    result = run(tmp_path / "run")
    loaded = d3gd.Result.load(tmp_path / "run")
    same(loaded, result)
    assert loaded.seconds == result.seconds
    assert loaded.settings == result.settings
    assert loaded.message == result.message
    assert {name: values.dtype for name, values in loaded.metrics.items()} == {
        name: values.dtype for name, values in result.metrics.items()
    }
    loaded.save(tmp_path / "copy")
    same(d3gd.Result.load(tmp_path / "copy"), result)


def test_a_diverged_result_survives_the_disk_too(tmp_path):
    result = d3gd.run(d3gd.DiDGD(step_size=1e9), GRAPH, PROBLEM, iterations=500, out=tmp_path)
    assert result.status == "diverged"
    loaded = d3gd.Result.load(tmp_path)
    same(loaded, result)
    assert loaded.message == result.message


def test_data_frame_has_one_row_per_record():
    result = d3gd.run(
        METHOD, GRAPH, PROBLEM, iterations=12, every=5, metrics={"norms": lambda s: np.abs(s.x).max(axis=1)}
    )
    frame = result.to_pandas()
    assert frame.index.name == "iteration"
    assert frame.index.tolist() == [0, 5, 10, 12]
    assert list(frame.columns) == [f"norms[{i}]" for i in range(4)]
    assert np.array_equal(frame.to_numpy(), result.metrics["norms"])


def test_agents_keep_their_names(tmp_path):
    graph = d3gd.Digraph.from_edges(3, [(0, 1), (1, 2), (2, 0)], labels=["Ada", "Bo[b]", "Ço"])
    problem = d3gd.problems.quadratic(agents=3, dim=2)
    metrics = {"first": lambda s: s.x[:, 0], "pair": lambda s: s.x[0]}
    result = d3gd.run(METHOD, graph, problem, iterations=4, metrics=metrics, out=tmp_path)
    for each in (result, d3gd.Result.load(tmp_path)):
        assert each.labels == graph.labels
        named = [f"first[{name}]" for name in graph.labels]
        assert list(each.to_pandas().columns) == [*named, "pair[0]", "pair[1]"]
    same(d3gd.Result.load(tmp_path), result)
    assert run(None, 1).labels is None


@pytest.mark.parametrize(
    "metrics",
    [
        {"matrix": np.zeros((2, 3, 3))},
        {"complex": np.zeros(2, complex)},
        {"text": np.array(["a", "b"])},
        {"iteration": np.zeros(2)},
        {"loss[1]": np.zeros(2)},
    ],
    ids=lambda metrics: next(iter(metrics)),
)
def test_what_could_not_be_read_back_is_not_written(tmp_path, metrics):
    with pytest.raises(RecordError, match=re.escape(repr(next(iter(metrics))))):
        write_metrics(tmp_path / "metrics.csv", np.arange(2), metrics)
    assert not list(tmp_path.iterdir())


def test_a_metric_may_have_any_other_name(tmp_path):
    metrics = {"a[b]": np.arange(2.0), "[0": np.ones(2), 'x, "y"': np.zeros((2, 3)), "flag": np.array([True, False])}
    write_metrics(tmp_path / "metrics.csv", np.arange(2), metrics)
    _, found = read_metrics(tmp_path / "metrics.csv")
    assert {name: values.tolist() for name, values in found.items()} == {k: v.tolist() for k, v in metrics.items()}


def test_numbers_of_numpy_are_settings_like_any_other(tmp_path):
    method = d3gd.D3GD(step_size=float(np.float32(0.05)))
    notes = {"trial": np.int64(3), "shares": np.array([0.5, 0.5]), "at": tmp_path, "on": np.bool_(True)}
    d3gd.run(method, GRAPH, PROBLEM, iterations=4, out=tmp_path / "run", notes=notes)
    found = d3gd.Result.load(tmp_path / "run").settings
    assert {name: found[name] for name in notes} == {"trial": 3, "shares": [0.5, 0.5], "at": str(tmp_path), "on": True}


@pytest.mark.parametrize("value", [1j, object(), {1, 2}, {(1, 2): 3}, b"bytes", 10**5000, lambda: 0], ids=type)
def test_a_note_without_a_form_in_json_is_refused_before_the_run(tmp_path, value):
    with pytest.raises(SettingsError, match="JSON") as caught:
        run(tmp_path / "run", notes={"deep": [{"odd": value}]}, callbacks=[dying_at(0)])
    assert "odd" in str(caught.value)
    assert not (tmp_path / "run").exists()


# Nothing written is lost --------------------------------------------------------------------------------------------


def test_a_folder_with_a_run_is_refused_and_left_as_it_was(tmp_path):
    run(tmp_path)
    before = contents(tmp_path)
    with pytest.raises(RecordError, match="already holds a run"):
        run(tmp_path)
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    "other",
    [
        {"algorithm": d3gd.D3GD(step_size=0.06)},
        {"problem": d3gd.problems.quadratic(agents=4, dim=2, seed=1)},
        {"graph": d3gd.graphs.complete(4)},
        {"weights": d3gd.weights.lazy(GRAPH)},
        {"x0": np.ones(2)},
        {"seed": 1},
        {"every": 6},
    ],
    ids=lambda other: next(iter(other)),
)
@pytest.mark.parametrize("died", ["late", "before the first checkpoint"])
def test_the_folder_of_another_experiment_is_refused_and_left_as_it_was(tmp_path, other, died):
    with pytest.raises(RuntimeError):
        run(tmp_path, callbacks=[dying_at(50 if died == "late" else 0)])
    before = contents(tmp_path)
    call = {"algorithm": METHOD, "graph": GRAPH, "problem": PROBLEM, "every": 5, **other}
    with pytest.raises(RecordError, match="another experiment"):
        d3gd.run(**call, iterations=60, out=tmp_path, resume=True)
    assert contents(tmp_path) == before


def test_a_folder_that_cannot_be_made_is_told_before_the_first_step(tmp_path):
    (tmp_path / "file").write_text("kept")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(RecordError, match="cannot be created"):
            run(folder, callbacks=[lambda s: pytest.fail("the run had begun")])
    assert (tmp_path / "file").read_text() == "kept"


def test_a_write_that_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def write_half():
        with replacing(path) as file:
            file.write(b"ne")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_half()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


# Reading what is not a run ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["metrics.csv", "models.npz", "weights.npz", "settings.json", "result.json"])
@pytest.mark.parametrize("content", [b"", b"no such thing", b"PK\x03\x04 cut"])
def test_a_damaged_result_is_told_in_one_line(tmp_path, name, content):
    run(tmp_path)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(RecordError, match=name) as caught:
        d3gd.Result.load(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_result_of_an_earlier_version_is_read(tmp_path):
    """Such a result has no digests; its weights are compressed."""
    result = run(tmp_path)
    record = json.loads((tmp_path / "result.json").read_text())
    old = {name: record[name] for name in ("status", "message", "iterations", "seconds", "final")}
    (tmp_path / "result.json").write_text(json.dumps(old))
    save_npz(tmp_path / "weights.npz", result.weights)
    same(d3gd.Result.load(tmp_path), result)


def test_weights_from_elsewhere_cannot_reach_outside_their_memory(tmp_path):
    result = run(tmp_path / "run")
    weights = result.weights.copy()
    weights.indices[3] = 10**6
    with pytest.raises(RecordError, match=r"weights\.npz"):
        d3gd.Result.load(saved(dataclasses.replace(result, weights=weights), tmp_path / "indices"))
    weights = result.weights.copy()
    weights.indptr[1] = 10**6
    with pytest.raises(RecordError, match=r"weights\.npz"):
        d3gd.Result.load(saved(dataclasses.replace(result, weights=weights), tmp_path / "indptr"))


def saved(result, folder):
    result.save(folder)
    return folder


def test_a_folder_without_a_result_is_told_in_one_line(tmp_path):
    with pytest.raises(RecordError, match=r"no result\.json"):
        d3gd.Result.load(tmp_path)


def test_pickles_are_never_read(tmp_path):
    np.savez(tmp_path / "evil.npz", x=np.array([{"a": 1}], dtype=object))
    with pytest.raises(RecordError, match="cannot be read"):
        read_arrays(tmp_path / "evil.npz")


class Signal(BaseException):
    """What the handler of a signal raises."""


def interrupted(action, line):
    """Call a function whose given line, counted as they are executed, is interrupted."""
    executed = itertools.count()

    def trace(frame, event, argument):
        if not any(part in frame.f_code.co_filename for part in ("d3gd", "pathlib", "contextlib")):
            return None  # such as finalizers, whose exceptions are ignored
        if event == "line" and next(executed) == line:
            raise Signal
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("what", ["folder", "lock"])
def test_a_signal_may_interrupt_the_removal_of_folders_and_locks_anywhere(tmp_path, what):
    for line in itertools.count():
        if what == "lock":
            held, left = Lock(tmp_path / "lock"), tmp_path / "lock"
            remove = held.release
        else:
            left = tmp_path / "folder"
            (left / "inner").mkdir(parents=True, exist_ok=True)
            (left / "inner/file").touch()
            remove = partial(remove_folder, left)
        try:
            interrupted(remove, line)
        except Signal:
            remove()
            assert not left.exists()
        else:
            break
    assert line > 5
    assert not left.exists()
