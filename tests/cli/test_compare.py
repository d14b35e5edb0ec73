"""The command compare, as a user meets it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Outcome

Write = Callable[..., str]
Command = Callable[..., Outcome]
SMALL = ("--iterations", "30", "--seeds", "2", "--steps", "0.05,0.1", "--jobs", "1")


def rows(folder: str | Path) -> dict[str, dict]:
    return {row["method"]: row for row in json.loads((Path(folder) / "compare.json").read_text())["rows"]}


def test_a_file_is_compared_into_a_folder(experiment: Write, d3gd: Command) -> None:
    outcome = d3gd("compare", experiment(algorithm=None), "--out", "c", *SMALL, "--methods", "DiDGD,PerronD3GD,EXTRA")
    assert outcome.code == 0
    stages = [line.partition(":")[0] for line in outcome.err.splitlines()]
    assert list(dict.fromkeys(stages)) == ["Tuning", "Runs"]  # where there is no terminal, progress takes lines
    assert outcome.err.splitlines()[-1].startswith("Runs: 4 of 4 (100 %)")
    assert all(f"wrote {Path('c') / name}" in outcome.out for name in ("compare.md", "compare.csv", "curves.png"))
    assert "needs undirected links" in outcome.out
    assert "50% coverage" in outcome.out  # two seeds
    assert "seeds 10000 to 10002, none of them reported" in outcome.out
    found = rows("c")
    assert {row["status"] for name, row in found.items() if name != "EXTRA"} == {"ranked"}
    assert found["EXTRA"]["status"] == "refused"
    assert found["DiDGD"]["needs"] == "in-neighbours"
    tables = {"compare.csv", "compare.json", "compare.md", "curves.pdf", "curves.png"}
    assert {path.name for path in Path("c").iterdir()} == tables | {"experiment.toml", "runs", "settings.json"}
    assert not list(Path("c").rglob("*.tmp"))


def test_the_copy_in_the_folder_repeats_the_comparison(experiment: Write, d3gd: Command, blank: None) -> None:
    Path("links.csv").write_text("source,target\nA,B\nB,C\nC,A\n")
    path = experiment(graph={"kind": "edges", "file": "links.csv"}, seed=7)
    assert d3gd("compare", path, "--out", "c", *SMALL, "--only", "DiDGD").code == 0
    assert d3gd("compare", "c/experiment.toml", "--out", "again", *SMALL[2:], "--only", "DiDGD").code == 0
    first, second = rows("c")["DiDGD"], rows("again")["DiDGD"]
    assert {**first, "pace": 0, "cost": 0} == {**second, "pace": 0, "cost": 0}
    assert json.loads(Path("c/compare.json").read_text())["seeds"] == [7, 8]


def test_processes_change_nothing(experiment: Write, d3gd: Command, blank: None) -> None:
    Path("links.csv").write_text("source,target\nA,B\nB,C\nC,A\nC,B\n")
    path = experiment(graph={"kind": "edges", "file": "links.csv"})
    for jobs in ("1", "2"):
        assert d3gd("compare", path, "--out", jobs, *SMALL[:-1], jobs, "--only", "DiDGD,PushPull").code == 0
    for one, two in zip(rows("1").values(), rows("2").values(), strict=True):
        assert one["values"] == two["values"]


def test_a_target_and_a_budget_of_bytes(experiment: Write, d3gd: Command, blank: None) -> None:
    path = experiment(iterations=None, target={"loss": 3.5})
    outcome = d3gd("compare", path, "--budget-bytes", "20000", "--metric", "loss", *SMALL[2:], "--only", "DiDGD")
    assert outcome.code == 0
    assert "until loss reaches 3.5 and stays there" in outcome.out
    assert "20 kB over all links" in outcome.out
    assert (Path("comparison") / "compare.md").exists()


def test_a_budget_of_gradients(experiment: Write, d3gd: Command, blank: None) -> None:
    path = experiment(iterations=None)
    outcome = d3gd("compare", path, "--out", "c", "--budget-gradients", "25", *SMALL[2:], "--only", "DiDGD")
    assert outcome.code == 0
    assert "at the end of the budget, 25 gradients per agent" in outcome.out
    assert json.loads(Path("c/compare.json").read_text())["budget"]["gradients"] == 25


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("--methods", "PushPul"), "method 'PushPul' is not known; did you mean 'PushPull'?"),
        (("--metric", "los"), "metric 'los' is not known; did you mean 'loss'?"),
        (("--iterations", "0"), "budget of iterations = 0"),
        (("--budget-bytes", "0"), "budget of bytes = 0"),
        (("--budget-bytes", "100"), "a model along each of the 5 links takes 120 bytes"),
        (("--steps", "0.1;1"), "give numbers separated by commas, as in 0.01,0.1,1"),
        (("--steps", "0.1,-1"), "give positive numbers"),
        (("--seeds", "0"), "seeds = 0: it must be a whole number"),
    ],
)
def test_mistakes_take_one_line(experiment: Write, d3gd: Command, args: tuple[str, ...], told: str) -> None:
    assert told in d3gd("compare", experiment(), "--out", "c", *args).error
    assert not Path("c").exists()


def test_another_comparison_or_a_run_in_the_folder_is_left_alone(experiment: Write, d3gd: Command, blank: None) -> None:
    path = experiment()
    assert d3gd("run", path, "--out", "run").code == 0
    assert "run holds something other than a comparison" in d3gd("compare", path, "--out", "run", *SMALL).error
    assert d3gd("compare", path, "--out", "c", *SMALL, "--only", "DiDGD").code == 0
    other = experiment(problem={"kind": "quadratic", "dim": 4})
    assert "another network or problem" in d3gd("compare", other, "--out", "c", *SMALL, "--only", "DiDGD").error
    assert "cannot be read" in d3gd("compare", "missing.toml", "--out", "c").error


def test_help_teaches(d3gd: Command) -> None:
    text = d3gd("compare", "--help").out
    assert all(word in text for word in ("d3gd compare --quick", "one grid", "Methods that cannot run", "lambda gamma"))
