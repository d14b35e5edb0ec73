"""The command sweep, as a user meets it."""

import csv
import signal
import time
from collections.abc import Callable
from pathlib import Path

from tests.cli.conftest import Outcome, finish, start

Write = Callable[..., str]
Command = Callable[..., Outcome]


def table(folder: str) -> list[dict[str, str]]:
    with (Path(folder) / "sweep.csv").open() as file:
        return list(csv.DictReader(file))


def test_a_sweep_goes_into_a_folder_and_the_same_command_repeats_nothing(experiment: Write, d3gd: Command) -> None:
    command = ("sweep", experiment(), "--set", "algorithm.step_size=0.01,0.05", "--set", "graph.n=5,6")
    options = ("--seeds", "2", "--jobs", "1", "--out", "s")
    outcome = d3gd(*command, *options)
    assert outcome.code == 0
    assert outcome.err.splitlines()[-1].startswith("Sweep: 8 of 8 (100 %)")
    assert all(f"wrote {Path('s') / f'sweep.{suffix}'}" in outcome.out for suffix in ("csv", "png", "pdf"))
    assert [row["status"] for row in table("s")] == ["completed"] * 8
    again = d3gd(*command, *options)
    assert again.err.splitlines() == ["Sweep: 8 of 8 (100 %)"]
    assert again.out == outcome.out
    assert d3gd("plot", *(Path("s") / row["run"] for row in table("s")), "--out", "p.png").code == 0


def test_failures_are_listed_and_told_by_the_exit_code(experiment: Write, d3gd: Command) -> None:
    command = ("sweep", experiment(), "--set", "algorithm.step_size=-1,0.05", "--jobs", "1", "--out", "s")
    outcome = d3gd(*command)
    assert outcome.code == 1
    assert "step_size = -1" in outcome.out
    assert outcome.out.endswith("1 of 2 runs failed\n")
    assert [row["status"] for row in table("s")] == ["failed", "completed"]


def test_settings_that_are_not_known_are_told_with_the_nearest(experiment: Write, d3gd: Command) -> None:
    path = experiment()
    assert "did you mean 'step_size'?" in d3gd("sweep", path, "--set", "algorithm.stepsize=1").error
    assert "give a name and its values" in d3gd("sweep", path, "--set", "algorithm.step_size").error
    assert "is given twice" in d3gd("sweep", path, "--set", "graph.n=5", "--set", "graph.n=6").error
    assert not Path("sweep").exists()


def test_an_interrupted_sweep_keeps_its_runs_and_continues(experiment: Write, d3gd: Command, tmp_path: Path) -> None:
    path = experiment(iterations=10**6, every=1000, checkpoint_every=1000)
    process = start("sweep", path, "--seeds", "2", "--jobs", "1", "--out", "s", cwd=tmp_path)
    deadline = time.monotonic() + 50
    while not list(Path("s").rglob("manifest.json")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    outcome = finish(process)
    assert outcome.code == 130
    assert outcome.err.splitlines()[-1] == "interrupted; s keeps the runs; the same command continues"
    reached = max(int(path.parent.name) for path in Path("s").rglob("manifest.json"))
    assert reached >= 1000
    settings = ("--iterations", str(reached), "--seeds", "1", "--jobs", "1", "--out", "s")
    assert d3gd("sweep", path, *settings).code == 0
    assert [int(row["iterations"]) for row in table("s")] == [reached]
