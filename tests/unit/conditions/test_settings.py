"""Conditions in settings files."""

import numpy as np
import pytest

import d3gd
from d3gd.cli import call
from d3gd.config.experiment import load
from d3gd.errors import D3GDError

EXPERIMENT = """
iterations = 30
[graph]
kind = "edges"
file = "links.csv"
[problem]
kind = "quadratic"
dim = 2
[algorithm]
kind = "{kind}"
step_size = 0.05
{more}
[conditions]
"""
LINKS = [("A", "B"), ("B", "C"), ("C", "A"), ("B", "A"), ("C", "B")]


def write(folder, conditions, kind="DiDGD", more="averaged = true"):
    for name, links in (("links", LINKS), ("one", LINKS[3:]), ("two", LINKS[:3])):
        (folder / f"{name}.csv").write_text("source,target\n" + "".join(f"{s},{t}\n" for s, t in links))
    path = folder / "experiment.toml"
    path.write_text(EXPERIMENT.format(kind=kind, more=more) + conditions)
    return path


def test_a_table_is_the_same_as_arguments(tmp_path):
    text = 'loss = 0.2\ngraphs = ["one.csv", "two.csv"]\nperiod = 2\ndelay = 2\nabsences = [[1, 5, 9]]\n'
    result = load(write(tmp_path, text)).run(tmp_path / "out")
    number = {"A": 0, "B": 1, "C": 2}
    graph, one, two = (
        d3gd.Digraph.from_edges(3, [(number[s], number[t]) for s, t in links])
        for links in (LINKS, LINKS[3:], LINKS[:3])
    )
    conditions = d3gd.Conditions(loss=0.2, graphs=[one, two], period=2, delay=2, absences=[(1, 5, 9)])
    method = d3gd.DiDGD(step_size=0.05, averaged=True)
    problem = d3gd.problems.quadratic(agents=3, dim=2)
    same = d3gd.run(method, graph, problem, iterations=30, conditions=conditions)
    assert np.array_equal(result.x, same.x)
    assert result.settings["conditions"] == same.settings["conditions"]


def test_the_copy_in_a_runs_folder_repeats_it_without_the_original_files(tmp_path):
    path = write(tmp_path, 'graphs = ["one.csv", "two.csv"]\npause = 0.1\n')
    result = load(path).run(tmp_path / "out")
    for file in (*tmp_path.glob("*.csv"), path):
        file.unlink()
    again = load(tmp_path / "out/experiment.toml").run(tmp_path / "again")
    assert np.array_equal(result.x, again.x)


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ("loss = 1.0", r"experiment.toml: \[conditions\] loss = 1.0: it must be a number in \[0, 1\)"),
        ("los = 0.1", r"experiment.toml: \[conditions\] key 'los' is not known; did you mean 'loss'"),
        ('delay = "long"', r"experiment.toml: \[conditions\] delay = \"long\": it must be a whole number"),
        ("absences = [[1, 2]]", r"\[conditions\] absences = .* must be a list of \[agent, first, until\] triples"),
        ('graphs = ["no.csv"]', r"experiment.toml: \[conditions\] .*no.csv cannot be read"),
        ('graphs = ["links.csv", "strange.csv"]', "strange.csv: 'Z' is not an agent of the network"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(conditions, message, tmp_path):
    (tmp_path / "strange.csv").write_text("source,target\nA,Z\n")
    with pytest.raises(D3GDError, match=message):
        load(write(tmp_path, conditions)).run(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_table_it_must_be(tmp_path):
    path = tmp_path / "experiment.toml"
    path.write_text("conditions = 3\n" + EXPERIMENT.replace("[conditions]", "").format(kind="DiDGD", more=""))
    with pytest.raises(D3GDError, match=r"\[conditions\] is 3, not a table"):
        load(path)


def test_the_command_refuses_a_biased_method_or_says_that_it_is(tmp_path, capsys):
    path = write(tmp_path, "loss = 0.1", kind="FROST", more="")
    assert call(["run", str(path), "--out", str(tmp_path / "out")]) == 2
    assert (
        "experiment.toml: FROST does not survive loss: it relies on the sum that it tracks" in capsys.readouterr().err
    )
    path = write(tmp_path, "loss = 0.1\nbiased = true", kind="FROST", more="")
    assert call(["run", str(path), "--out", str(tmp_path / "out")]) == 0
    assert "biased: FROST does not survive loss" in capsys.readouterr().out
