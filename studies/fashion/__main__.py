"""The study on Fashion-MNIST."""

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from d3gd.digest import digest
from d3gd.runs.files import make_folder, write_atomically
from d3gd.runs.outputs import claim
from d3gd.runs.trials import run_missing, stored
from studies import command
from studies.fashion.plan import CELLS, EPOCHS, METHODS, STEPS, TUNING_EPOCHS, TUNING_SEEDS, Trial
from studies.fashion.report import figure, lines, read, tuned, written


def tuning(methods: Sequence[str]) -> list[Trial]:
    """Return the trials that choose step sizes: on the directed graph, with strong skew."""
    each = product(methods, STEPS, TUNING_SEEDS)
    return [Trial(m, "directed", 0.1, step, seed, TUNING_EPOCHS, "validation") for m, step, seed in each]


def reported(steps: dict[str, float], cells: Sequence[tuple[str, float]], seeds: int) -> list[Trial]:
    """Return the trials whose test accuracy is reported."""
    return [
        Trial(m, graph, alpha, step, seed, EPOCHS, "test")
        for graph, alpha in cells
        for seed in range(seeds)
        for m, step in steps.items()
        if graph == CELLS[0][0] or not METHODS[m].on_any_graph
    ]


def run(trials: Sequence[Trial], data: Path, out: Path, jobs: int | None, what: str) -> list[dict[str, Any]]:
    """Run the trials that are missing, and return all; those in ``runs.csv`` need not be repeated."""
    folder = make_folder(out / "trials")
    wanted = {folder / trial.file: trial for trial in trials}
    listed = read((out / "runs.csv").read_text(encoding="utf-8")) if (out / "runs.csv").exists() else []
    known = {folder / Trial(**run["trial"]).file: run for run in listed}
    there = {file: run for file in wanted if (run := stored(file) or known.get(file)) is not None}
    found = run_missing(wanted, partial(_run, data=data), there=there, jobs=jobs, progress=True, what=what)
    return list(found.values())


def _run(trial: Trial, data: Path) -> dict[str, Any]:
    return trial.run(data)


def study(given: argparse.Namespace) -> None:
    """Tune, train, and write the page."""
    out, cells = given.out, CELLS[: given.cells]
    claim(out, "study on Fashion-MNIST", {"study": "Fashion-MNIST", "methods": digest(list(METHODS), STEPS)})
    trials = run(tuning(list(METHODS)), given.data, out, given.jobs, "Tuning")
    runs = run(reported(tuned(trials), cells, given.seeds), given.data, out, given.jobs, "Training")
    write_atomically(out / "fashion.md", written(trials, runs).encode())
    write_atomically(out / "runs.csv", lines([*trials, *runs]).encode())
    figure(runs, out / "fashion.png")
    print(f"written to {out / 'fashion.md'}")


def main(args: list[str] | None = None) -> int:
    """Run the study and return an exit code."""
    parser = command.options(
        "studies.fashion",
        "Train a small convolutional network on Fashion-MNIST over 16 agents with label skew, by every method with its "
        "own tuned step size. Writes a page with tables, a figure, and all runs as CSV.",
        out="fashion",
    )
    parser.add_argument(
        "--data",
        type=Path,
        default=Path("/usr/share/datasets/fashion-mnist"),
        help="folder with the four idx files, as Debian's package dataset-fashion-mnist installs them",
    )
    parser.add_argument("--seeds", type=int, default=3, help="random draws of split, graph, network and batches")
    parser.add_argument("--cells", type=int, default=len(CELLS), help="how many pairs of graph and skew to run")
    given = parser.parse_args(args)
    return command.ended(lambda: study(given), given.out)


if __name__ == "__main__":
    sys.exit(main())
