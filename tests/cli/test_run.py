"""The commands run, plot, init and others, as a user sees them."""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import d3gd as package
from d3gd.plots import labels_of, plot_runs
from d3gd.result import Result
from tests.cli.conftest import Outcome, finish, start

Write = Callable[..., str]
Command = Callable[..., Outcome]


def bits(folder: str | Path) -> list[bytes]:
    return [(Path(folder) / name).read_bytes() for name in ("metrics.csv", "models.npz", "weights.npz")]


def test_a_run_equals_the_same_calls_in_python(experiment: Write, d3gd: Command) -> None:
    outcome = d3gd("run", experiment(), "--seed", "3")
    assert outcome.code == 0
    assert "completed at iteration 60" in outcome.out
    assert "d3gd plot runs/experiment-3" in outcome.out
    result = package.run(
        package.D3GD(step_size=0.05),
        package.graphs.ring(5),
        package.problems.quadratic(agents=5, dim=3, seed=3),
        iterations=60,
        every=5,
        seed=3,
    )
    saved = Result.load("runs/experiment-3")
    assert np.array_equal(saved.x, result.x)
    assert np.array_equal(saved.metrics["disagreement"], result.metrics["disagreement"])


def test_the_seed_reaches_graph_and_problem_unless_they_have_their_own(experiment: Write, d3gd: Command) -> None:
    drawn = {"kind": "erdos_renyi", "n": 8, "p": 0.5}
    own_problem = {"kind": "quadratic", "dim": 3, "seed": 7}
    path = experiment(graph=drawn, problem=own_problem)
    for seed in ("0", "1"):
        assert d3gd("run", path, "--seed", seed, "--out", seed).code == 0
    zero, one = Result.load("0"), Result.load("1")
    assert zero.weights.nnz != one.weights.nnz or (zero.weights.indices != one.weights.indices).any()
    assert zero.settings["problem"] == one.settings["problem"]


def test_the_copy_in_the_folder_repeats_the_run_wherever_it_lies(experiment: Write, d3gd: Command) -> None:
    rng = np.random.default_rng(0)
    rows = np.column_stack([np.arange(40) % 2, rng.normal(size=(40, 2)).round(3)])
    np.savetxt("table.csv", rows, delimiter=",", header="kind,a,b", comments="")
    Path("links.csv").write_text("source,target\nA,B\nB,C\nC,A\n")
    np.savetxt("own.csv", [[0.5, 0, 0.5], [0.5, 0.5, 0], [0, 0.5, 0.5]], delimiter=",")
    path = experiment(
        graph={"kind": "edges", "file": "links.csv"},
        weights={"kind": "file", "file": "own.csv"},
        problem={"kind": "softmax", "file": "table.csv", "label": "kind", "alpha": 1.0, "batch": 4},
        algorithm={"kind": "D3GD", "step_size": {"start": 0.1, "power": 0.5, "over": 20}, "participation": 0.5},
        metrics=["disagreement", "accuracy_per_agent"],
        target={"disagreement": -1.0},
    )
    assert d3gd("run", path, "--out", "first", "--iterations", "30", "--seed", "5").code == 0
    for file in ("links.csv", "own.csv", "table.csv", path):
        Path(file).unlink()
    Path("first").rename("moved")
    assert d3gd("run", "moved/experiment.toml", "--out", "again").code == 0
    assert bits("again") == bits("moved")
    assert (Path("again") / "experiment.toml").read_bytes() == (Path("moved") / "experiment.toml").read_bytes()


def test_a_finished_run_can_be_made_longer(experiment: Write, d3gd: Command) -> None:
    path = experiment()
    assert d3gd("run", path, "--out", "long").code == 0
    assert d3gd("run", path, "--out", "grown", "--iterations", "23").code == 0
    assert d3gd("run", path, "--out", "grown", "--resume").code == 0
    assert bits("grown") == bits("long")


def test_a_target_stops_the_run(experiment: Write, d3gd: Command) -> None:
    path = experiment(iterations=5000, target={"stationarity": 0.1})
    outcome = d3gd("run", path, "--out", "out")
    assert outcome.code == 0
    assert "target" in outcome.out
    result = Result.load("out")
    assert result.metrics["stationarity"][-1] <= 0.1
    assert (result.metrics["stationarity"][:-1] > 0.1).all()


def test_the_settings_that_init_writes_run(d3gd: Command, experiment: Write) -> None:
    experiment()
    assert d3gd("init", "new/example.toml").code == 0
    assert d3gd("run", "new/example.toml", "--iterations", "20").code == 0


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg"])
def test_plot_writes_a_figure_of_several_runs(experiment: Write, d3gd: Command, suffix: str) -> None:
    for kind in ("D3GD", "DiDGD"):
        assert d3gd("run", experiment(algorithm={"kind": kind, "step_size": 0.05}), "--out", kind).code == 0
    figure = Path(f"figures/figure.{suffix}")
    assert d3gd("plot", "D3GD", "DiDGD", "--x", "bytes", "--metric", "loss", "--out", figure).code == 0
    content = figure.read_bytes()
    assert content.startswith({"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}[suffix])
    if suffix == "svg":
        assert all(text in content.decode() for text in ("D3GD", "DiDGD", "sent over all links (kB)", "loss"))


def test_plot_leaves_out_what_is_not_finished(experiment: Write, d3gd: Command) -> None:
    outcome = d3gd("run", experiment(), "--out", "done", "--resume")
    assert "nothing to resume in done" in outcome.err
    Path("begun").mkdir()
    outcome = d3gd("plot", "begun", "done")
    assert outcome.code == 0
    assert outcome.err == "skipped, not finished: begun\n"


def test_a_legend_names_only_what_differs(experiment: Write, d3gd: Command) -> None:
    for out, step in (("a", 0.05), ("b", 0.025), ("c", 0.025)):
        assert d3gd("run", experiment(algorithm={"kind": "D3GD", "step_size": step}), "--out", out).code == 0
    runs = [(name, Result.load(name)) for name in "abc"]
    assert list(labels_of(runs[:2])) == ["step_size=0.05", "step_size=0.025"]
    assert list(labels_of(runs[1:])) == ["D3GD (b)", "D3GD (c)"]
    assert list(labels_of(runs[:1])) == ["D3GD (a)"]


def test_runs_that_differ_in_their_seed_only_are_one_curve(experiment: Write, d3gd: Command) -> None:
    """Their networks are drawn anew for each seed, and differ in their numbers of links."""
    graph = {"kind": "erdos_renyi", "n": 6, "p": 0.4}
    for kind in ("D3GD", "DiDGD"):
        file = experiment(graph=graph, algorithm={"kind": kind, "step_size": 0.05})
        for seed in ("0", "1", "2"):
            assert d3gd("run", file, "--seed", seed, "--out", f"{kind}-{seed}").code == 0
    folders = [f"{kind}-{seed}" for kind in ("D3GD", "DiDGD") for seed in range(3)]
    assert len({Result.load(folder).settings["graph"]["links"] for folder in folders}) > 1
    assert d3gd("plot", *folders, "--x", "time", "--out", "figure.svg").code == 0
    drawn = Path("figure.svg").read_text()
    assert all(text in drawn for text in (">D3GD (3 seeds)<", ">DiDGD (3 seeds)<", "time (s), at the mean pace"))


def test_many_runs_and_metrics_per_agent_fit_a_figure(experiment: Write, d3gd: Command) -> None:
    problem = {"kind": "sigmoid_classification", "samples": 5, "features": 2, "test_samples": 20}
    assert d3gd("run", experiment(problem=problem), "--out", "out").code == 0
    result = Result.load("out")
    plot_runs({f"run {i}": result for i in range(9)}, "figure.png", metrics=list(result.metrics))
    assert Path("figure.png").stat().st_size > 10_000


@pytest.mark.parametrize("command", [[], ["init"], ["run"], ["plot"], ["report"], ["graph"], ["reproduce"]])
def test_help_teaches_with_an_example(d3gd: Command, command: list[str]) -> None:
    outcome = d3gd(*command, "--help")
    assert outcome.code == 0
    assert f"  d3gd {' '.join(command)}" in outcome.out


@pytest.mark.parametrize("words", [[], ["site"]])
def test_without_a_command_the_help_is_printed_as_it_is(d3gd: Command, words: list[str]) -> None:
    outcome = d3gd(*words)
    assert outcome == d3gd(*words, "--help")
    assert outcome.code == 0
    assert outcome.out.count("\n") > 10


def test_help_and_version_do_not_wait_for_numpy(tmp_path: Path) -> None:
    outcome = finish(start("--version", cwd=tmp_path))
    assert outcome == Outcome(0, f"d3gd {package.__version__}\n", "")
    import subprocess

    code = "import sys; from d3gd.cli import call; call(['run', '--help']); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    heavy = {"numpy", "scipy", "matplotlib", "networkx", "sklearn", "pandas", "msgspec"}
    assert not heavy & set(loaded.stdout.splitlines()[-1].split())


def test_a_user_s_folder_is_left_alone(experiment: Write, d3gd: Command) -> None:
    path = experiment()
    Path("metrics.csv").write_text("mine")
    before = {file.name: file.read_bytes() for file in Path().iterdir()}
    for more in ([], ["--resume"]):
        assert "choose a new or an empty folder" in d3gd("run", path, "--out", ".", *more).error
    assert {file.name: file.read_bytes() for file in Path().iterdir()} == before


def test_a_refused_run_does_not_block_the_corrected_one(experiment: Write, d3gd: Command) -> None:
    refused = d3gd("run", experiment(algorithm={"kind": "PushPull", "step_size": 0.05}, metrics=["perron_error"]))
    assert "perron_error" in refused.error
    assert d3gd("run", experiment()).code == 0
