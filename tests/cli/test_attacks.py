"""Hostile files and values: one line at once for any content, and no control of the terminal."""

import os
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import d3gd as library
from d3gd.cli.calling import call
from d3gd.config.experiment import load
from d3gd.config.tables import KINDS
from d3gd.errors import PatienceWarning, WeightsError, printable
from tests.cli.conftest import Outcome

Write = Callable[..., str]
Command = Callable[..., Outcome]

RING = {"kind": "ring", "n": 3}
READERS: dict[str, dict[str, Any]] = {
    "links": {"graph": {"kind": "edges", "file": "hostile.csv"}},
    "weights": {"graph": RING, "weights": {"kind": "file", "file": "hostile.csv"}},
    "edge weights": {"graph": RING, "weights": {"kind": "edges", "file": "hostile.csv"}},
    "sparse": {"graph": RING, "weights": {"kind": "file", "file": "hostile.npz"}},
    "table": {"problem": {"kind": "softmax", "file": "hostile.csv"}},
    "arrays": {"problem": {"kind": "softmax", "file": "hostile.npz"}},
}


def fifo(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def folder(path: Path) -> None:
    path.mkdir()


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**40)


def noise(path: Path) -> None:
    path.write_bytes(np.random.default_rng(0).bytes(5000))


def empty(path: Path) -> None:
    path.touch()


def packed(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as file:
        file.writestr("label.npy", b"no array")


def escapes(path: Path) -> None:
    path.write_text("source\x1b[2J,target\n\x1b]0;owned\x07,1\n")


@pytest.mark.parametrize("spoil", [fifo, device, folder, huge, noise, empty, packed, escapes])
@pytest.mark.parametrize("reader", READERS)
def test_a_hostile_file_takes_one_line(experiment: Write, d3gd: Command, reader: str, spoil: Any) -> None:
    path = experiment(**READERS[reader])
    for suffix in (".csv", ".npz"):
        spoil(Path(f"hostile{suffix}"))
    error = d3gd("run", path, "--out", "out").error
    assert "hostile" in error
    assert error.isprintable()
    assert not Path("out").exists()


@pytest.mark.parametrize("spoil", [fifo, device, folder, huge, noise, packed])
def test_so_does_a_hostile_settings_file(
    tmp_path: Path, d3gd: Command, spoil: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    spoil(Path("hostile.toml"))
    for command in ("run", "graph", "compare"):
        error = d3gd(command, "hostile.toml").error
        assert "hostile.toml" in error
        assert error.isprintable()


BEYOND = {
    "lists 2,000 deep": "x = " + "[" * 2000 + "]" * 2000,
    "lists 300 deep": "x = " + "[" * 300 + "]" * 300,
    "keys 2,000 deep": ".".join("x" * 2000) + " = 1",
    "tables 300 deep": "x = " + "{a = " * 300 + "1" + "}" * 300,
    "5,000 digits": "seed = " + "9" * 5000,
    "5,000 hexadecimal digits": "seed = 0x" + "f" * 5000,
    "more than 64 bits": "seed = 99999999999999999999",
    "escapes in a key": '"\\u001b[31m\\u0007" = 1',
    "escapes in a value": 'seed = "\\u001b[31m\\u0007"',
    "a raw escape": "x = '\x1b[31m'",
    "a long key": "k" * 5000 + " = 1",
    "a long value": 'seed = "' + "k" * 5000 + '"',
}


@pytest.mark.parametrize("case", BEYOND)
def test_toml_beyond_all_measure(experiment: Write, d3gd: Command, case: str) -> None:
    path = experiment()
    Path(path).write_text(BEYOND[case] + "\n" + Path(path).read_text())
    error = d3gd("run", path, "--out", "out").error
    assert len(error) < 600
    assert error.isprintable()


@pytest.mark.parametrize(
    "args",
    [
        ["ring", "--n", "9" * 5000],
        ["ring", "--n", "0x" + "f" * 5000],
        ["ring", "--n", str(2**62)],
        ["ring", "--n", "1000000000"],
        ["complete", "--n", "1000000"],
        ["ring", "--n", "[" * 2000],
        ["edges", "--edges", "[[0, 1000000000], [1000000000, 0]]"],
        ["\x1b[31mring", "--n", "3"],
    ],
    ids=["digits", "hexadecimal", "2**62", "10**9", "complete", "nested", "a far label", "escapes"],
)
def test_a_network_beyond_all_measure(d3gd: Command, args: list[str]) -> None:
    error = d3gd("graph", *args).error
    assert len(error) < 600
    assert error.isprintable()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("source,target\n0,1000000000\n1000000000,0\n", ("1000000000", "without gaps")),
        ("source,target\n0," + "9" * 5000 + "\n", ("5,000 digits",)),
        ("source,target\n0," + str(2**62) + "\n", ("19 digits",)),
    ],
)
def test_a_link_to_far_away(experiment: Write, d3gd: Command, text: str, words: tuple[str, ...]) -> None:
    path = experiment(graph={"kind": "edges", "file": "links.csv"})
    Path("links.csv").write_text(text)
    error = d3gd("run", path).error
    assert all(word in error for word in ("links.csv", *words)), error


@pytest.mark.parametrize("label", ["1000000000", "1e300", str(2**62)])
def test_a_class_far_away(experiment: Write, d3gd: Command, label: str) -> None:
    path = experiment(problem={"kind": "softmax", "file": "table.csv"})
    Path("table.csv").write_text(f"width,label\n1.5,0\n1.5,{label}\n")
    error = d3gd("run", path).error
    assert "table.csv, line 3" in error
    assert "without gaps" in error


def test_damaged_sparse_weights_are_refused_by_the_library_too() -> None:
    graph = library.graphs.ring(3)
    for spoil in ("indices", "indptr"):
        matrix = csr_array(library.weights.metropolis(graph))
        getattr(matrix, spoil)[1] = 10**6
        with pytest.raises(WeightsError):
            library.weights.check(matrix, graph)
        with pytest.raises(WeightsError):
            library.weights.perron(matrix)


def test_a_path_cannot_steer_the_terminal(tmp_path: Path, d3gd: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("\x1b[31mred.toml", "two\nlines.toml", "\x9b31m.toml", "\u202egnp.toml", "\udcff.toml"):
        error = d3gd("run", name).error
        assert error.isprintable(), error
    assert printable("naïve π") == "naïve π"


def test_no_weights_are_recommended_that_cannot_be_chosen(d3gd: Command) -> None:
    for kind in KINDS["weights"]:
        outcome = d3gd("graph", "ring", "--n", "4", "--weights", kind)
        if "choose" in outcome.err:
            recommended = outcome.err.rpartition("choose ")[2].split()[0].strip("',;")
            assert d3gd("graph", "ring", "--n", "4", "--weights", recommended).code == 0


def test_weights_in_a_file_of_links_are_the_initial_ones(experiment: Write, d3gd: Command) -> None:
    path = experiment(graph={"kind": "edges", "file": "links.csv"})
    Path("links.csv").write_text("source,target,weight\nA,B,0.25\nB,C,0.5\nC,A,0.125\nC,C,0.5\n")
    expected = [[0.875, 0, 0.125], [0.25, 0.75, 0], [0, 0.5, 0.5]]
    _, matrix = load(path).network()
    assert np.array_equal(matrix.toarray(), expected)
    assert d3gd("graph", "--edges", "links.csv", "--json").out.count('"weights": "edges"') == 1
    assert d3gd("graph", path, "--json").out.count('"weights": "edges"') == 1
    assert d3gd("graph", "--edges", "links.csv", "--weights", "uniform", "--json").out.count('"edges"') == 0
    assert d3gd("run", path, "--out", "out", "--iterations", "1").code == 0
    Path("links.csv").unlink()
    _, kept = load("out/experiment.toml").network()
    assert np.array_equal(kept.toarray(), expected)
    chosen = experiment(graph={"kind": "edges", "file": "links.csv"}, weights={"kind": "uniform"})
    Path("links.csv").write_text("source,target,weight\n0,1,0.25\n1,0,0.25\n")
    assert np.array_equal(load(chosen).network()[1].toarray(), np.full((2, 2), 0.5))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0,1,0.5\n1,0,\n", "line 3"),
        ("0,1,0.5\n1,0\n", "line 3"),
        ("0,1,0.5\n1,0,nan\n", "'nan'"),
        ("0,1,0.5\n1,0,much\n", "'much'"),
        ("0,1,0.5\n1,0,1.0\n", "less than 1"),
        ("0,1,0.5\n1,0,-0.5\n", "not negative"),
        ("0,1,0.5\n1,0,0.5\n0,1,0.25\n", "different weight"),
        ("0,1,0.5\n1,0,0.5\n0,0,0.25\n", "row 0"),
        ("0,1,0.5\n1,0,0.0\n", "agent 0"),
    ],
)
def test_weights_of_links_that_make_no_weights(experiment: Write, d3gd: Command, text: str, words: str) -> None:
    path = experiment(graph={"kind": "edges", "file": "links.csv"})
    Path("links.csv").write_text("source,target,weight\n" + text)
    error = d3gd("run", path).error
    assert "[weights] links.csv" in error
    assert words in error


def test_a_command_tells_of_long_work_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("default", PatienceWarning)
        monkeypatch.setattr("d3gd.validation.PATIENCE", 0.0)
        assert call(["graph", "ring", "--n", "5", "--json"]) == 0
    told = capfd.readouterr().err.splitlines()
    assert len(told) == 1
    assert told[0].startswith("warning: the diameter of 5 agents may take")
