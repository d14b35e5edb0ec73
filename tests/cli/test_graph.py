"""The command graph."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from d3gd import graphs, weights
from d3gd.config.tables import KINDS
from tests.cli.conftest import Outcome

Write = Callable[..., str]
Command = Callable[..., Outcome]


def facts(outcome: Outcome) -> dict[str, Any]:
    assert outcome.code == 0, outcome
    content: dict[str, Any] = json.loads(outcome.out)
    return content


def test_json_agrees_with_the_library(d3gd: Command) -> None:
    found = facts(d3gd("graph", "erdos_renyi", "--n", "20", "--p", "0.6", "--seed", "4", "--json"))
    graph = graphs.erdos_renyi(20, 0.6, seed=4)
    matrix = weights.metropolis(graph)
    pi = weights.perron(matrix)
    assert (found["n"], found["links"]) == (20, graph.link_count)
    assert found["hears"] == {
        "min": graph.in_degrees.min(),
        "mean": graph.in_degrees.mean(),
        "max": graph.in_degrees.max(),
    }
    assert found["diameter"] == graph.diameter()
    assert found["spectral_gap"] == weights.spectral_gap(matrix)
    assert (found["n_min_pi"], found["n_max_pi"]) == (20 * pi.min(), 20 * pi.max())


@pytest.mark.parametrize(
    ("args", "n", "links"),
    [
        (["ring", "--n", "4"], 4, 4),
        (["--n=4", "ring"], 4, 4),
        (["grid", "--rows", "3", "--columns", "4"], 12, 34),
        (["grid", "--rows", "3", "--columns", "4", "--torus"], 12, 48),
        (["random_geometric", "--n", "30", "--radius", "0.6", "--spread", "0.0"], 30, None),
        (["regular", "--n", "10", "--degree", "3"], 10, 30),
        (["star", "--n", "5"], 5, 8),
        (["ring", "--n", "3000"], 3000, 3000),
    ],
)
def test_keys_are_those_of_the_generators(d3gd: Command, args: list[str], n: int, links: int | None) -> None:
    found = facts(d3gd("graph", *args, "--json"))
    assert found["n"] == n
    assert links is None or found["links"] == links
    assert (found["diameter"] is None) == (n > 2000)


def test_a_doubly_stochastic_network_is_heard_evenly(d3gd: Command) -> None:
    found = facts(d3gd("graph", "ring", "--n", "7", "--weights", "lazy", "--json"))
    assert found["weights"] == "lazy"
    assert found["n_min_pi"] == pytest.approx(1)
    assert found["n_max_pi"] == pytest.approx(1)
    # Lazy Metropolis weights on a one-way ring: eigenvalues 3/4 + w/4 for the n-th roots of unity w.
    assert found["spectral_gap"] == pytest.approx(1 - abs(0.75 + 0.25 * np.exp(2j * np.pi / 7)))


def test_a_file_of_links_with_names(d3gd: Command, tmp_path: Path) -> None:
    path = tmp_path / "links.csv"
    path.write_text("source, target, note\nA,B,x\nB,C,\nC,A,\n")
    found = facts(d3gd("graph", "--edges", path, "--json"))
    assert (found["n"], found["links"], found["strongly_connected"]) == (3, 3, True)


def test_a_network_that_is_not_connected_is_described_all_the_same(d3gd: Command, tmp_path: Path) -> None:
    path = tmp_path / "links.csv"
    path.write_text("source,target\n0,1\n")
    found = facts(d3gd("graph", "--edges", path, "--n", "3", "--json"))
    assert found["n"] == 3
    assert not found["strongly_connected"]
    assert found["spectral_gap"] is None
    shown = d3gd("graph", "--edges", path)
    assert shown.code == 0
    assert "agent 0 cannot be reached from agent 1" in shown.out


def test_the_network_of_an_experiment(d3gd: Command, experiment: Write) -> None:
    path = experiment(seed=2, graph={"kind": "erdos_renyi", "n": 12, "p": 0.4}, weights={"kind": "uniform"})
    found = facts(d3gd("graph", path, "--json"))
    assert found["links"] == graphs.erdos_renyi(12, 0.4, seed=2).link_count
    assert found["weights"] == "uniform"
    assert facts(d3gd("graph", path, "--weights", "lazy", "--json"))["weights"] == "lazy"


def test_without_arguments_it_lists_every_kind(d3gd: Command) -> None:
    shown = d3gd("graph")
    assert shown.code == 0
    assert all(kind in shown.out for kind in KINDS["graph"] if kind != "edges")
    assert "--edges" in shown.out


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["rnig", "--n", "3"], ("'rnig'", "did you mean 'ring'?")),
        (["ring"], ("[graph] n is missing", "add --n a whole number")),
        (["ring", "--m", "3"], ("'m'", "choose from n")),
        (["ring", "--n", "many"], ('n = "many"', "a whole number")),
        (["ring", "--n", "-3"], ("n = -3", "1 or more")),
        (["ring", "star", "--n", "3"], ("ring, star", "one kind")),
        (["--n", "3"], ("none", "lists the kinds")),
        (["ring", "--n", "3", "--weights", "heavy"], ("'heavy'", "metropolis")),
        (["--edges", "absent.csv"], ("absent.csv", "No such file")),
        (["experiment.toml", "--n", "3"], ("--n", "experiment.toml")),
    ],
)
def test_bad_arguments_take_one_line(d3gd: Command, experiment: Write, args: list[str], words: tuple[str, ...]) -> None:
    experiment()
    error = d3gd("graph", *args).error
    assert all(word in error for word in words), error
