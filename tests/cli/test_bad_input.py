"""Bad input gives one line with what was found, what is needed and what to do; no file is lost."""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array, save_npz

from d3gd.cli import call
from d3gd.result import Result
from tests.cli.conftest import EXPERIMENT, Outcome, finish, start, toml

Write = Callable[..., str]
Command = Callable[..., Outcome]

RING = {"kind": "ring", "n": 3}
GOOD_WEIGHTS = [[0.5, 0, 0.5], [0.5, 0.5, 0], [0, 0.5, 0.5]]


def refused(d3gd: Command, path: str, *words: str) -> None:
    error = d3gd("run", path, "--out", "out").error
    for word in words:
        assert word in error, f"{word!r} is not in: {error}"
    assert not Path("out").exists(), "a refused experiment must leave no folder behind"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        # Graphs
        ({"graph": {"kind": "edges", "edges": [[0, 1], [1, 2], [2, 1]]}}, ("agent 0", "not strongly connected", "add")),
        ({"graph": {"kind": "edges", "n": 2, "edges": [[0, 5]]}}, ("[graph]", "(0, 5)", "0 to 1")),
        ({"graph": {"kind": "edges", "n": 2}}, ("[graph]", "edges", "file", "neither")),
        ({"graph": {"kind": "erdos_renyi", "n": 20, "p": 1.5}}, ("[graph]", "p = 1.5", "at most 1")),
        ({"graph": {"kind": "erdos_renyi", "n": 30, "p": 0.01}}, ("[graph]", "p = 0.01", "would do")),
        ({"graph": {"kind": "ring", "n": 0}}, ("[graph]", "n = 0", "1 or more")),
        ({"graph": {"kind": "regular", "n": 5, "degree": 9}}, ("[graph]", "degree = 9", "1 to 4")),
        ({"graph": {"kind": "edges", "file": "absent.csv"}}, ("[graph]", "absent.csv", "CSV")),
        # Weights
        ({"weights": {"kind": "lazy", "stay": 1.0}}, ("[weights]", "stay = 1.0", "below 1")),
        ({"weights": {"kind": "file", "file": "absent.npz"}}, ("[weights]", "absent.npz", "save_npz")),
        ({"weights": {"kind": "file", "file": "weights.txt"}}, ("[weights]", "'.txt'", ".npz")),
        # Problems
        ({"problem": {"kind": "quadratic", "dim": 3, "agents": 4}}, ("4 agents", "graph has 5")),
        ({"problem": {"kind": "quadratic", "dim": 3, "agents": 6}}, ("6 agents", "graph has 5")),
        ({"problem": {"kind": "quadratic", "dim": 0}}, ("[problem]", "dim = 0")),
        ({"problem": {"kind": "quadratic", "dim": 3, "conditioning": 0.5}}, ("[problem]", "conditioning = 0.5")),
        ({"problem": {"kind": "sigmoid_classification", "alpha": 0.0}}, ("[problem]", "alpha = 0.0", "or more")),
        ({"problem": {"kind": "sigmoid_classification", "alpha": [0.1, 0.2]}}, ("[problem]", "alpha", "5 agents")),
        ({"problem": {"kind": "softmax", "file": "absent.csv"}}, ("[problem]", "absent.csv", "check the path")),
        # Algorithms
        ({"algorithm": {"kind": "D3GD", "step_size": -0.1}}, ("[algorithm]", "step_size = -0.1", "positive")),
        ({"algorithm": {"kind": "DiDGD", "step_size": 0}}, ("[algorithm]", "step_size = 0", "positive")),
        ({"algorithm": {"kind": "D3GD", "step_size": 0.1, "anchor": 1.5}}, ("[algorithm]", "anchor = 1.5", "[0, 1)")),
        (
            {"algorithm": {"kind": "D3GD", "step_size": {"start": 0.1, "power": -1}}},
            ("[algorithm]", "step_size", "power = -1", "positive"),
        ),
        # The run
        ({"iterations": -1}, ("iterations = -1", "0 or more")),
        ({"every": 0}, ("every = 0", "1 or more")),
        ({"metrics": ["stationarty"]}, ("'stationarty'", "choose from", "disagreement")),
        ({"target": {"accuracy": 0.1}}, ("'accuracy'", "does not record", "disagreement")),
    ],
)
def test_a_value_out_of_range_is_named_with_its_range(
    experiment: Write, d3gd: Command, changes: dict[str, Any], words: tuple[str, ...]
) -> None:
    refused(d3gd, experiment(**changes), "experiment.toml:", *words)


@pytest.mark.parametrize("seed", [{"seed": -1}, {"problem": {"kind": "quadratic", "dim": 3, "seed": -1}}])
def test_a_negative_seed_is_refused(experiment: Write, d3gd: Command, seed: dict[str, Any]) -> None:
    refused(d3gd, experiment(**seed), "experiment.toml:", "seed = -1", "0 or more")


@pytest.mark.parametrize(
    ("row", "values", "words"),
    [
        (0, [0.5, 0.25, 0.25], ("A[0, 1] = 0.25", "no link 1 -> 0", "add the link")),
        (1, [1.0, 0, 0], ("agent 1", "zero self-weight", "A[1, 1] = 0", "positive weight on itself")),
        (2, [0, 0.5, 0.4], ("row 2", "0.9", "1")),
        (2, [0, 0.5, float("nan")], ("A[2, 2]", "nan")),
        (2, [0, 1.5, -0.5], ("A[2, 2]", "-0.5")),
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".npz"])
def test_weights_that_do_not_fit_their_graph(
    experiment: Write, d3gd: Command, row: int, values: list[float], words: tuple[str, ...], suffix: str
) -> None:
    matrix = np.array(GOOD_WEIGHTS)
    matrix[row] = values
    path = experiment(graph=RING, weights={"kind": "file", "file": f"own{suffix}"})
    if suffix == ".csv":
        np.savetxt("own.csv", matrix, delimiter=",")
    else:
        save_npz("own.npz", csr_array(matrix))
    refused(d3gd, path, "experiment.toml: [weights]", f"own{suffix}", *words)


def test_weights_that_are_no_matrix(experiment: Write, d3gd: Command) -> None:
    path = experiment(graph=RING, weights={"kind": "file", "file": "own.csv"})
    for text, words in {"0.5,0.5\n1\n": "2 rows", "a,b\n": "'a'", "": "0 rows", "1,0\n0,1\n": "(2, 2)"}.items():
        Path("own.csv").write_text(text)
        refused(d3gd, path, "own.csv", words)


def test_data_with_nan(experiment: Write, d3gd: Command) -> None:
    path = experiment(problem={"kind": "softmax", "file": "table.csv", "label": "kind"})
    Path("table.csv").write_text("kind,width\n0,1.5\n1,nan\n")
    refused(d3gd, path, "experiment.toml: [problem]", "table.csv, line 3", "width is nan", "drop that row")
    Path("table.csv").write_text("species,width\n0,1.5\n")
    refused(d3gd, path, "[problem]", "'kind'", "species")


def test_links_that_cannot_be_read(experiment: Write, d3gd: Command) -> None:
    path = experiment(graph={"kind": "edges", "file": "links.csv"})
    texts = {"a,b\n0,1\n": "'source'", "source,target\n0\n": "line 2", "source,target\n": "no links"}
    for text, words in texts.items():
        Path("links.csv").write_text(text)
        refused(d3gd, path, "[graph]", "links.csv", words)


def test_a_file_that_is_not_there_or_not_toml(tmp_path: Path, d3gd: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused(d3gd, "absent.toml", "absent.toml", "No such file", "d3gd init absent.toml")
    Path("broken.toml").write_text("iterations = \n")
    refused(d3gd, "broken.toml", "broken.toml", "TOML", "line 1")
    Path("binary.toml").write_bytes(b"\xff\xfe\x00")
    refused(d3gd, "binary.toml", "binary.toml", "TOML")
    refused(d3gd, ".", "directory")


def test_a_huge_step_is_a_status_and_not_an_error(experiment: Write, d3gd: Command) -> None:
    path = experiment(algorithm={"kind": "DiDGD", "step_size": 1e3})
    outcome = d3gd("run", path, "--out", "out")
    assert outcome.code == 3
    assert outcome.err == ""
    assert "diverged" in outcome.out
    assert "step_size = 100" in outcome.out
    assert "--seed" not in outcome.out
    assert Result.load("out").status == "diverged"
    assert d3gd("plot", "out").code == 0


@pytest.mark.parametrize("folder", ["out", "out/deeper"])
def test_a_folder_that_cannot_be_made(experiment: Write, d3gd: Command, folder: str) -> None:
    path = experiment()
    Path("out").write_text("precious")
    error = d3gd("run", path, "--out", folder).error
    assert f"folder {folder} cannot be created" in error
    assert "--out" in error
    assert Path("out").read_text() == "precious"


def test_a_folder_that_holds_a_run_stays_as_it_is(experiment: Write, d3gd: Command) -> None:
    path = experiment()
    assert d3gd("run", path, "--out", "out").code == 0
    before = {file: file.read_bytes() for file in Path("out").rglob("*") if file.is_file()}
    assert "--resume" in d3gd("run", path, "--out", "out").error
    other = experiment(algorithm={"kind": "DiDGD", "step_size": 0.01})
    assert "another experiment" in d3gd("run", other, "--out", "out", "--resume").error
    assert {file: file.read_bytes() for file in Path("out").rglob("*") if file.is_file()} == before


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["rnu"], ("rnu", "d3gd --help")),
        (["run"], ("FILE.toml",)),
        (["run", "experiment.toml", "--iteratoins", "5"], ("--iteratoins",)),
        (["run", "experiment.toml", "--seed", "one"], ("--seed", "integer", "d3gd run --help")),
        (["plot", "nowhere"], ("nowhere", "result.json")),
        (["plot", "out", "--metric", "lose"], ("'lose'", "loss")),
        (["plot", "out", "--out", "figure.gif"], ("figure.gif", ".png")),
        (["plot", "out", "--out", "experiment.toml/figure.png"], ("experiment.toml",)),
        (["init", "experiment.toml"], ("experiment.toml", "exists")),
        (["reproduce", "fig3"], ("fig3", "fig1")),
        (["reproduce", "--seeds", "0"], ("seeds = 0", "at least 1")),
    ],
)
def test_a_wrong_command_line(experiment: Write, d3gd: Command, args: list[str], words: tuple[str, ...]) -> None:
    path = experiment()
    if args[0] == "plot":
        assert d3gd("run", path, "--out", "out", "--iterations", "5").code == 0
    error = d3gd(*args).error
    assert all(word in error for word in words), error


def test_debug_shows_where_an_error_came_from(experiment: Write, d3gd: Command) -> None:
    path = experiment(iterations=-1)
    for args in (["--debug", "run", path], ["run", path, "--debug"]):
        outcome = d3gd(*args)
        assert outcome.code == 2
        assert "Traceback" in outcome.err
        assert outcome.err.splitlines()[-1].startswith("error: experiment.toml: iterations = -1")


def test_a_reader_that_leaves_early_is_no_error(experiment: Write, tmp_path: Path) -> None:
    process = start("graph", "--json", "ring", "--n", "3", cwd=tmp_path)
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    assert finish(process).err == ""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An experiment that takes a second or two, run once without interruption."""
    folder = tmp_path_factory.mktemp("long")
    content = {
        **EXPERIMENT,
        "iterations": 2000,
        "every": 10,
        "checkpoint_every": 100,
        "graph": {"kind": "ring", "n": 8},
    }
    (folder / "experiment.toml").write_text(toml(content))
    assert call(["run", str(folder / "experiment.toml"), "--out", str(folder / "whole")]) == 0
    return folder


def wait_for_checkpoint(process: subprocess.Popen[str], folder: Path, after: int) -> None:
    limit = time.monotonic() + 60
    while not any(int(path.parent.name) >= after for path in folder.glob("checkpoints/*/manifest.json")):
        assert process.poll() is None, finish(process)
        assert time.monotonic() < limit
        time.sleep(0.005)


def same_as_whole(folder: Path) -> None:
    whole = folder.parent / "whole"
    assert (folder / "metrics.csv").read_bytes() == (whole / "metrics.csv").read_bytes()
    assert np.array_equal(np.load(folder / "models.npz")["x"], np.load(whole / "models.npz")["x"])
    assert (folder / "weights.npz").read_bytes() == (whole / "weights.npz").read_bytes()


def test_ctrl_c_leaves_a_checkpoint_and_says_how_to_go_on(whole: Path) -> None:
    process = start("run", "experiment.toml", "--out", "out", cwd=whole)
    wait_for_checkpoint(process, whole / "out", after=100)
    process.send_signal(signal.SIGINT)
    stopped = finish(process)
    assert stopped.code == 130
    assert stopped.err.count("\n") == 1
    assert not (whole / "out" / "result.json").exists()
    command = stopped.err.strip().rpartition("continue with: d3gd ")[2]
    resumed = finish(start(*command.split(), cwd=whole))
    assert resumed.code == 0, resumed
    same_as_whole(whole / "out")


def test_a_killed_run_resumes_bit_for_bit(whole: Path) -> None:
    process = start("run", "experiment.toml", "--out", "killed", cwd=whole)
    wait_for_checkpoint(process, whole / "killed", after=random.choice([100, 400, 800]))
    time.sleep(random.random() * 0.1)
    os.kill(process.pid, signal.SIGKILL)
    assert finish(process).code == -signal.SIGKILL
    resumed = finish(start("run", "experiment.toml", "--out", "killed", "--resume", cwd=whole))
    assert resumed.code == 0, resumed
    same_as_whole(whole / "killed")
