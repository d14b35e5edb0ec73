"""An error on one rank ends all of them, with one message."""

import os
import subprocess
import sys

import numpy as np
import pytest

import d3gd
from d3gd.cli import call
from d3gd.result import Result
from tests.helpers.launching import ROOT, launch, require

pytestmark = pytest.mark.xdist_group("launches")
EXPERIMENT = """
iterations = {iterations}
every = 50
checkpoint_every = 50
[graph]
kind = "erdos_renyi"
n = 6
p = 0.5
[problem]
kind = "sigmoid_classification"
samples = 10
features = 3
test_samples = 10
batch = 4
[algorithm]
kind = "{kind}"
step_size = 0.1
"""


def write(folder, kind="PerronD3GD", iterations=300):
    path = folder / "experiment.toml"
    path.write_text(EXPERIMENT.format(kind=kind, iterations=iterations))
    return path


def errors(err):
    return [line for line in err.splitlines() if line.startswith("error: ")]


MISFIT = "rank 2 is at (round x {}, Y float64[6]) while rank 0 is at (round x float64[3], Y float64[6])"


@pytest.mark.parametrize(
    ("launcher", "how", "message"),
    [
        ("mpi", "hang", "no message from rank 2 for 2 s"),
        ("fork", "hang", "no message from rank 2 for 2 s"),
        ("mpi", "shape", MISFIT.format("float64[2]")),
        ("fork", "shape", MISFIT.format("float64[2]")),
        ("apart", "hang", "no message from rank 2 for 2 s"),
        ("apart", "shape", MISFIT.format("float64[2]")),
        ("mpi", "float32", MISFIT.format("float32[3]")),
        ("mpi", "raise", "rank 2: the data of this rank are gone"),
        ("mpi", "complex128", "rank 2: x holds complex128 numbers"),
        ("mpi", "dimension", "rank 2 has models of a length other than rank 0"),
        ("mpi", "experiment", "rank 2 has an experiment"),
        ("mpi", "precision", "rank 2 has an experiment"),
        ("mpi", "settings", "rank 2 has a problem"),
        ("mpi", "data", "rank 2 has a problem"),
        ("mpi", "agents", "the problem has 6 agents but the graph has 5"),
    ],
)
def test_trouble_on_one_rank_ends_all_with_one_message(launcher, how, message, tmp_path):
    apart = [launcher] if launcher == "apart" else []
    launcher = "fork" if apart else launcher
    require(launcher)
    # MPI sees at once what does not fit: there the launch would be over time if a timeout were needed.
    timeout = 600 if launcher == "mpi" and how in ("shape", "float32") else 2
    code, _, err = launch(launcher, 3, ROOT / "tests/equivalence/hanging.py", how, 2, timeout, *apart, cwd=tmp_path)
    assert code != 0
    assert len(errors(err)) == 1, err
    assert message in errors(err)[0]


def test_a_bug_on_one_rank_keeps_its_traceback(tmp_path):
    require("mpi")
    code, _, err = launch("mpi", 3, ROOT / "tests/equivalence/hanging.py", "bug", 0, 2, cwd=tmp_path)
    assert code != 0
    assert err.count("ZeroDivisionError: a bug of the user") == 1


def test_the_command_prints_once_and_writes_one_folder(alone, tmp_path):
    require("mpi")
    code, out, err = launch("mpi", 2, "-m", "d3gd", "run", write(tmp_path, iterations=200), cwd=tmp_path)
    assert code == 0, err
    assert out.count("completed at iteration 200") == 1
    same(tmp_path / "runs/experiment-0", alone)


def same(one, other):
    one, other = Result.load(one), Result.load(other)
    assert np.array_equal(one.x, other.x)
    assert np.array_equal(one.weights.data, other.weights.data)
    assert np.array_equal(one.metrics["bytes"], other.metrics["bytes"])
    assert np.array_equal(one.iterations, other.iterations)
    assert one.settings["problem"] == other.settings["problem"]


@pytest.mark.parametrize("kind", ["D3GD", "PerronD3GD"])
def test_a_run_goes_on_with_another_number_of_ranks(kind, tmp_path):
    require("mpi")
    path, out = write(tmp_path, kind), str(tmp_path / "out")
    assert call(["run", str(path), "--out", str(tmp_path / "alone")]) == 0
    for ranks, iterations in ((3, 100), (2, 200)):
        words = ["-m", "d3gd", "run", path, "--out", out, "--iterations", iterations, "--resume"]
        code, _, err = launch("mpi", ranks, *words, cwd=tmp_path)
        assert code == 0, err
    assert call(["run", str(path), "--out", out, "--resume"]) == 0
    same(out, tmp_path / "alone")


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The run of one process that nothing interrupts."""
    folder = tmp_path_factory.mktemp("alone")
    assert call(["run", str(write(folder, iterations=200)), "--out", str(folder / "out")]) == 0
    return folder / "out"


def signalled(launcher, ranks, moment, folder):
    """Start the same run, let a rank meet its signal, and return how that ended."""
    require(launcher)
    path, script = write(folder, iterations=200), ROOT / "tests/equivalence/killed.py"
    return launch(launcher, ranks, script, moment, "run", path, "--out", folder / "out", cwd=folder)


def go_on(launcher, ranks, folder):
    words = ["run", str(folder / "experiment.toml"), "--out", str(folder / "out"), "--resume"]
    if launcher is None:
        return call(words)
    code, out, err = launch(launcher, ranks, "-m", "d3gd", *words, cwd=folder)
    assert code == 0, err
    assert out.count("completed at iteration 200") == 1
    return code


def saved(folder):
    """The iterations of complete checkpoints."""
    return sorted(int(path.parent.name) for path in folder.glob("out/checkpoints/*/manifest.json"))


@pytest.mark.parametrize(
    ("launcher", "moment", "kept", "then", "ranks"),
    [
        ("mpi", "early", [], "mpi", 2),
        ("mpi", "state", [50], "mpi", 3),
        ("mpi", "manifest", [50], "torch", 2),
        ("mpi", "late", [50, 100], "mpi", 3),
        ("torch", "late", [50, 100], None, 1),
    ],
)
def test_a_killed_run_goes_on_to_the_same_bits(launcher, moment, kept, then, ranks, alone, tmp_path):
    require(*filter(None, (launcher, then)))
    assert signalled(launcher, 2, moment, tmp_path)[0] != 0
    assert saved(tmp_path) == kept
    assert go_on(then, ranks, tmp_path) == 0
    same(tmp_path / "out", alone)


@pytest.mark.parametrize(
    ("launcher", "moment", "expected"),
    [("mpi", "interrupt", 130), ("mpi", "terminate", 143), ("torch", "interrupt", 1)],  # torchrun has a code of its own
)
def test_a_signal_to_one_rank_leaves_a_checkpoint_of_all(launcher, moment, expected, alone, tmp_path, capfd):
    code, _, err = signalled(launcher, 3, moment, tmp_path)
    assert code == expected
    assert err.count("interrupted; ") == 1, err
    assert saved(tmp_path) == [50, 80]
    assert call(["run", str(tmp_path / "experiment.toml"), "--out", str(tmp_path / "out")]) == 2
    assert "continue it from iteration 80" in capfd.readouterr().err
    assert go_on(None, 1, tmp_path) == 0
    same(tmp_path / "out", alone)


def test_a_terminated_process_leaves_a_checkpoint_and_says_how_to_go_on(alone, tmp_path):
    path = write(tmp_path, iterations=200)
    words = [ROOT / "tests/equivalence/killed.py", "terminate", "run", path, "--out", tmp_path / "out"]
    own = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    ended = subprocess.run(
        [sys.executable, *map(str, words)], cwd=tmp_path, env=own, capture_output=True, text=True, timeout=120
    )
    assert ended.returncode == 143
    assert "--resume" in ended.stderr
    assert saved(tmp_path) == [50, 73]
    assert go_on(None, 1, tmp_path) == 0
    same(tmp_path / "out", alone)


@pytest.mark.parametrize(
    ("ranks", "change", "message"),
    [
        (7, ("", ""), "experiment.toml: 7 ranks for 6 agents; start at most 6"),
        (2, ("p = 0.5", "p = 7.0"), "experiment.toml: [graph]"),
        (2, ("step_size = 0.1", "step_size = -1.0"), "experiment.toml: [algorithm] step_size"),
    ],
)
def test_bad_input_is_told_once_and_all_leave(ranks, change, message, tmp_path):
    require("mpi")
    path = write(tmp_path)
    path.write_text(path.read_text().replace(*change))
    code, out, err = launch("mpi", ranks, "-m", "d3gd", "run", path, cwd=tmp_path)
    assert code == 2
    assert out == ""
    assert len(errors(err)) == 1, err
    assert message in errors(err)[0]


def test_a_checkpoint_of_another_experiment_is_told_once_and_all_leave(tmp_path):
    require("mpi")
    path, out = write(tmp_path, "DiDGD", iterations=50), tmp_path / "out"
    assert call(["run", str(path), "--out", str(out)]) == 0
    path.write_text(path.read_text().replace("step_size = 0.1", "step_size = 0.2"))
    code, _, err = launch("mpi", 3, "-m", "d3gd", "run", path, "--out", out, "--resume", cwd=tmp_path)
    assert code == 2
    assert len(errors(err)) == 1, err
    assert "holds another experiment" in errors(err)[0]


@pytest.mark.parametrize(("name", "module"), [("mpi", "mpi4py"), ("torch", "torch")])
def test_a_missing_extra_names_the_pip_command(name, module, monkeypatch, tmp_path, capfd):
    monkeypatch.setitem(__import__("sys").modules, module, None)
    assert call(["run", str(write(tmp_path)), "--transport", name]) == 2
    assert f"pip install 'd3gd[{name}]'" in capfd.readouterr().err


def test_state_fields_must_say_what_they_follow():
    from typing import NamedTuple

    from d3gd.state import kinds

    class Vague(NamedTuple):
        x: np.ndarray

    with pytest.raises(d3gd.D3GDError, match="has no declared kind"):
        kinds(Vague(np.zeros(3)))
