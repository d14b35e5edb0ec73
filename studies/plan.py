"""A comparison of weight rules on many networks, data sets, batch sizes, step sizes and seeds.

A *trial* is one network, data set, batch size and seed: every method runs on it at every step size of one grid, and the
curves are stored in one file; see :mod:`d3gd.runs.trials`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from d3gd import data, engine, graphs, problems, weights
from d3gd.algorithms.base import Algorithm
from d3gd.algorithms.d3gd import D3GD
from d3gd.algorithms.didgd import DiDGD
from d3gd.algorithms.frost import FROST
from d3gd.algorithms.identity import describe
from d3gd.algorithms.perron import PerronD3GD
from d3gd.algorithms.push_pull import PushPull
from d3gd.digest import digest
from d3gd.errors import RecordError
from d3gd.graphs import Digraph
from d3gd.problems import Problem
from d3gd.runs import files
from d3gd.runs.outputs import claim
from d3gd.runs.trials import run_missing, stored

BASELINE, CONTROL, DEFAULT, PLANNED = "Di-DGD", "Di-DGD, exact pi", "PerronD3GD", "PerronD3GD, planned"
ADAPT, MIXING, CORRECTION = "adapt-then-combine", "mixing weights", "correction"
BALANCED = "correction, balanced weights"
CENTRAL = "centralized"  # plain gradient descent: the floor for any network at a step size
TITLE = "Weight rules on many networks, data sets, batch sizes, step sizes and seeds"
STEPS = (0.03, 0.1, 0.5)
ITERATIONS = 1000
EVERY = 100


def methods(step: float) -> dict[str, Algorithm[Any]]:
    """Return the methods at one step size; each row below the control adds one change to a row above it."""
    return {
        BASELINE: DiDGD(step_size=step),
        CONTROL: DiDGD(step_size=step, perron="known"),
        ADAPT: PerronD3GD(step_size=step, rule="fixed", correct=False),
        "D3GD (paper)": D3GD(step_size=step, refine_step=1.0, rule="decentralized"),
        MIXING: PerronD3GD(step_size=step, correct=False),
        CORRECTION: PerronD3GD(step_size=step, rule="fixed"),
        BALANCED: PerronD3GD(step_size=step, rule="fixed"),  # on other initial weights, see Trial.run
        DEFAULT: PerronD3GD(step_size=step),
        PLANNED: PerronD3GD(step_size=step, rule="planned"),
        "FROST, mixing": FROST(step_size=step),
        "Push-Pull": PushPull(step_size=step),
        CENTRAL: PerronD3GD(step_size=step, rule="fixed", correct=False),  # on the complete graph, see Trial.run
    }


NETWORKS: Mapping[str, Callable[[int], Digraph]] = {
    "Erdos-Renyi 0.6 (20)": lambda seed: graphs.erdos_renyi(20, 0.6, seed=seed),
    "Erdos-Renyi 0.2 (20)": lambda seed: graphs.erdos_renyi(20, 0.2, seed=seed),
    "one-way ring (10)": lambda seed: graphs.ring(10),
    "exponential (32)": lambda seed: graphs.exponential(32),
    "Erdos-Renyi 0.1 (50)": lambda seed: graphs.erdos_renyi(50, 0.1, seed=seed),
    "torus (16)": lambda seed: graphs.grid(4, 4, torus=True),
    "grid (20)": lambda seed: graphs.grid(4, 5),
    "star (12)": lambda seed: graphs.star(12),
    "geometric (24)": lambda seed: graphs.random_geometric(24, 0.4, seed=seed),
    "regular, degree 3 (30)": lambda seed: graphs.regular(30, 3, seed=seed),
}


def _digits(agents: int, seed: int, batch: int | None) -> Problem:
    return problems.digits_classification(agents=agents, seed=seed, batch=batch, test_fraction=0)


def _cancer(agents: int, seed: int, batch: int | None) -> Problem:
    X, y = data.breast_cancer()
    return problems.label_skewed_classification(X, y, agents=agents, seed=seed, batch=batch, test_fraction=0)


def _wine(agents: int, seed: int, batch: int | None) -> Problem:
    X, y = data.wine()
    return problems.label_skewed_classification(X, y, agents=agents, seed=seed, batch=batch, test_fraction=0)


def _gaussian(agents: int, seed: int, batch: int | None) -> Problem:
    return problems.mixture_classification(agents=agents, seed=seed, batch=batch, test_samples=0)


def _sigmoid(agents: int, seed: int, batch: int | None) -> Problem:
    return problems.sigmoid_classification(agents=agents, seed=seed, batch=batch, test_samples=0)


DATA: Mapping[str, Callable[[int, int, int | None], Problem]] = {
    "digits": _digits,
    "cancer": _cancer,
    "wine": _wine,
    "gaussian": _gaussian,
    "sigmoid": _sigmoid,
}

# The rules were developed on the digits on the first five networks; all other cells are held out.
DEVELOPED = tuple(("digits", network) for network in list(NETWORKS)[:5])
HELD_OUT = (
    *(("digits", network) for network in list(NETWORKS)[5:]),
    ("cancer", "Erdos-Renyi 0.2 (20)"),
    ("cancer", "torus (16)"),
    ("wine", "one-way ring (10)"),
    ("gaussian", "Erdos-Renyi 0.2 (20)"),
    ("gaussian", "regular, degree 3 (30)"),
    ("sigmoid", "Erdos-Renyi 0.6 (20)"),
    ("sigmoid", "geometric (24)"),
)
QUICK = (DEVELOPED[1], DEVELOPED[2], HELD_OUT[0], ("sigmoid", "Erdos-Renyi 0.6 (20)"))
BATCHES = (None, 16)


@dataclass(frozen=True)
class Trial:
    """One network, data set, batch size and seed."""

    data: str
    network: str
    batch: int | None
    seed: int

    def run(self) -> dict[str, Any]:
        """Run every method at every step size; return their curves, ready for JSON."""
        graph = NETWORKS[self.network](self.seed)
        everyone = graphs.complete(graph.n)  # on which Metropolis weights average exactly
        balanced = weights.balanced(graph)
        problem = DATA[self.data](graph.n, self.seed, self.batch)
        runs = []
        for step in STEPS:
            for method, algorithm in methods(step).items():
                result = engine.run(
                    algorithm,
                    everyone if method == CENTRAL else graph,
                    problem,
                    weights=balanced if method == BALANCED else None,
                    iterations=ITERATIONS,
                    every=EVERY,
                    metrics=("stationarity", "disagreement", "n_min_pi", "bytes"),
                    progress=False,
                )
                runs.append(
                    {
                        "method": method,
                        "step_size": step,
                        "status": result.status,
                        "iterations": result.iterations.tolist(),
                        **{name: values.tolist() for name, values in result.metrics.items()},
                    }
                )
        return {"trial": asdict(self), "runs": runs}

    @property
    def file(self) -> str:
        """The name of the trial's file."""
        words = f"{self.data} {self.network} batch {self.batch or 'all'} seed {self.seed}"
        return "-".join("".join(c if c.isalnum() or c == "." else " " for c in words).split()) + ".json"


def trials(*, quick: bool, seeds: int) -> list[Trial]:
    """Return the trials of a study."""
    cells = QUICK if quick else (*DEVELOPED, *HELD_OUT)
    return [Trial(*cell, batch, seed) for seed in range(seeds) for cell in cells for batch in BATCHES]


def run_trials(
    wanted: Sequence[Trial], *, out: Path, jobs: int | None = None, progress: bool | None = None
) -> list[dict[str, Any]]:
    """Run the trials that ``out`` does not yet hold, and return all of them in order.

    Args:
        wanted: The trials.
        out: The folder; each finished trial is a file in ``out/trials``.
        jobs: Number of processes; by default one per core.
        progress: Show progress, as a bar on a terminal and in lines elsewhere; by default only on a terminal.
    """
    claim(out, "study", {"study": TITLE})
    folder = files.make_folder(out / "trials")
    key = digest([{name: describe(a) for name, a in methods(step).items()} for step in STEPS], ITERATIONS, EVERY)
    paths = {folder / trial.file: trial for trial in wanted}
    kept = {file: content for file in paths if (content := stored(file)) is not None}
    there = {file: content for file, content in kept.items() if content.get("trial") == asdict(paths[file])}
    _require_same_study(there, key)  # before hours of computation
    return list(run_missing(paths, partial(_run, key=key), there=there, jobs=jobs, progress=progress).values())


def _require_same_study(there: Mapping[Path, Mapping[str, Any]], key: str) -> None:
    for file, content in there.items():
        if content.get("key") != key:
            raise RecordError(f"{file} is of another study (other methods or iterations); choose another --out")


def _run(trial: Trial, key: str) -> dict[str, Any]:
    return {"key": key, **trial.run()}
