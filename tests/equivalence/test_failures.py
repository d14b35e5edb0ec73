"""What goes wrong on one rank ends all of them, with one message."""

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

import d3gd
from d3gd.cli import call
from d3gd.result import Result
from tests.equivalence.launching import ROOT, finish, launch, start

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


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("hang", "nothing came from rank 2 for 2 s"),
        ("raise", "rank 2: the data of this rank are gone"),
        ("type", "rank 2: x holds complex128 numbers"),
        ("dimension", "rank 2 has models of a length other than rank 0"),
        ("experiment", "rank 2 has an experiment"),
    ],
)
def test_trouble_on_one_rank_ends_all_with_one_message(how, message, tmp_path):
    pytest.importorskip("mpi4py")
    began = time.monotonic()
    code, _, err = launch("mpi", 3, ROOT / "tests/equivalence/hanging.py", how, 2, cwd=tmp_path)
    assert code != 0
    assert time.monotonic() - began < 30
    assert len(errors(err)) == 1, err
    assert message in errors(err)[0]


def test_a_rank_that_hangs_ends_torchrun_too(tmp_path):
    pytest.importorskip("torch")
    code, _, err = launch("torch", 3, ROOT / "tests/equivalence/hanging.py", "hang", 1, cwd=tmp_path)
    assert code != 0
    assert len(errors(err)) == 1, err
    assert "nothing came from rank 1 for 2 s" in errors(err)[0]


def test_a_bug_on_one_rank_keeps_its_traceback(tmp_path):
    pytest.importorskip("mpi4py")
    code, _, err = launch("mpi", 3, ROOT / "tests/equivalence/hanging.py", "bug", 0, cwd=tmp_path)
    assert code != 0
    assert err.count("ZeroDivisionError: a bug of the user") == 1


@pytest.mark.parametrize("launcher", ["mpi", "torch"])
def test_the_command_prints_once_and_writes_one_folder(launcher, tmp_path):
    pytest.importorskip({"mpi": "mpi4py", "torch": "torch"}[launcher])
    path = write(tmp_path)
    assert call(["run", str(path), "--out", str(tmp_path / "alone")]) == 0
    code, out, err = launch(launcher, 2, "-m", "d3gd", "run", path, cwd=tmp_path)
    assert code == 0, err
    assert out.count("completed at iteration 300") == 1
    same(tmp_path / "runs/experiment-0", tmp_path / "alone")


def same(one, other):
    one, other = Result.load(one), Result.load(other)
    assert np.array_equal(one.x, other.x)
    assert np.array_equal(one.weights.data, other.weights.data)
    assert np.array_equal(one.metrics["bytes"], other.metrics["bytes"])
    assert np.array_equal(one.iterations, other.iterations)
    assert one.settings["problem"] == other.settings["problem"]


@pytest.mark.parametrize("kind", ["D3GD", "PerronD3GD"])
def test_a_run_goes_on_with_another_number_of_ranks(kind, tmp_path):
    pytest.importorskip("mpi4py")
    path, out = write(tmp_path, kind), str(tmp_path / "out")
    assert call(["run", str(path), "--out", str(tmp_path / "alone")]) == 0
    for ranks, iterations in ((3, 100), (2, 200)):
        words = ["-m", "d3gd", "run", path, "--out", out, "--iterations", iterations, "--resume"]
        code, _, err = launch("mpi", ranks, *words, cwd=tmp_path)
        assert code == 0, err
    assert call(["run", str(path), "--out", out, "--resume"]) == 0
    same(out, tmp_path / "alone")


def children(pid):
    """The processes below one, from /proc."""
    found, ahead = [], [pid]
    while ahead:
        for task in Path(f"/proc/{ahead.pop()}/task").iterdir():
            below = [int(word) for word in (task / "children").read_text().split()]
            found += below
            ahead += below
    return found


def is_second(pid):
    return b"PMI_RANK=1\0" in Path(f"/proc/{pid}/environ").read_bytes()


def test_a_killed_rank_ends_the_run_and_the_next_start_goes_on(tmp_path):
    pytest.importorskip("mpi4py")
    path, out = write(tmp_path, iterations=1500), tmp_path / "out"
    assert call(["run", str(path), "--out", str(tmp_path / "alone")]) == 0
    process = start("mpi", 2, "-m", "d3gd", "run", path, "--out", out, "--iterations", 1000000, cwd=tmp_path)
    deadline = time.monotonic() + 60
    while len(list(out.glob("checkpoints/*/manifest.json"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    (rank,) = [pid for pid in children(process.pid) if is_second(pid)]
    os.kill(rank, signal.SIGKILL)
    assert finish(process)[0] != 0
    code, _, err = launch("mpi", 3, "-m", "d3gd", "run", path, "--out", out, cwd=tmp_path)
    assert code == 2
    assert "go on with it from iteration" in errors(err)[0]
    code, _, err = launch("mpi", 3, "-m", "d3gd", "run", path, "--out", out, "--resume", cwd=tmp_path)
    assert code == 0, err
    same(out, tmp_path / "alone")


@pytest.mark.parametrize(
    ("ranks", "change", "message"),
    [
        (7, ("", ""), "experiment.toml: 7 ranks for 6 agents; start at most 6"),
        (2, ("p = 0.5", "p = 7.0"), "experiment.toml: [graph]"),
        (2, ("step_size = 0.1", "step_size = -1.0"), "experiment.toml: [algorithm] step_size"),
    ],
)
def test_bad_input_is_told_once_and_all_leave(ranks, change, message, tmp_path):
    pytest.importorskip("mpi4py")
    path = write(tmp_path)
    path.write_text(path.read_text().replace(*change))
    code, out, err = launch("mpi", ranks, "-m", "d3gd", "run", path, cwd=tmp_path)
    assert code == 2
    assert out == ""
    assert len(errors(err)) == 1, err
    assert message in errors(err)[0]


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

    with pytest.raises(d3gd.D3GDError, match="does not say what it follows"):
        kinds(Vague(np.zeros(3)))
