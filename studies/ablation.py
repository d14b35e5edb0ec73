"""What the weights bring to the correction: fixed, balanced, planned for mixing, and planned from data.

    python -m studies.ablation            # all of it, into docs/results/study/ablation.md
    python -m studies.ablation --seeds 1  # a look

Every cell runs the same correction on four kinds of weights. Ratios are to Di-DGD on Metropolis weights at the same
step size, after 1,000 iterations.
"""

import argparse
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from d3gd import engine, weights
from d3gd.algorithms.base import Algorithm
from d3gd.algorithms.didgd import DiDGD
from d3gd.algorithms.perron import PerronD3GD
from d3gd.algorithms.push_pull import PushPull
from d3gd.arrays import CSR, Floats
from d3gd.digraph import Digraph
from d3gd.runs.files import write_atomically
from d3gd.topologies import fast_mixing
from studies.plan import DATA, ITERATIONS, NETWORKS

STEPS = (0.1, 0.5)
BATCHES = (None, 16)
METRICS = ("stationarity", "disagreement")
TABLE = Path("docs/results/study/ablation.md")


def variants(graph: Digraph, step: float) -> Mapping[str, tuple[Algorithm[Any], CSR | None]]:
    """Return the methods of a cell, each with its initial weights."""
    return {
        "Di-DGD, Metropolis": (DiDGD(step_size=step), None),
        "correction, Metropolis": (PerronD3GD(step_size=step, rule="fixed"), None),
        "correction, balanced": (PerronD3GD(step_size=step, rule="fixed"), weights.balanced(graph)),
        "correction, planned for mixing": (PerronD3GD(step_size=step), None),
        "correction, planned from data": (PerronD3GD(step_size=step, rule="planned"), None),
        "no correction, planned for mixing": (PerronD3GD(step_size=step, correct=False), None),
        "no correction, planned from data": (PerronD3GD(step_size=step, rule="planned", correct=False), None),
        "Push-Pull, planned for mixing": (PushPull(step_size=step), fast_mixing(graph)),
    }


def cell(network: str, batch: int | None, step: float, seed: int) -> dict[str, Floats]:
    """Return the last stationarity and disagreement of every method, as geometric means of the last three records."""
    graph = NETWORKS[network](seed)
    problem = DATA["digits"](graph.n, seed, batch)
    found = {}
    for name, (method, A) in variants(graph, step).items():
        result = engine.run(
            method, graph, problem, iterations=ITERATIONS, every=100, seed=seed, weights=A, metrics=METRICS
        )
        ends = [np.exp(np.mean(np.log(result.metrics[metric][-3:]))) for metric in METRICS]
        found[name] = np.array(ends) if result.status == "completed" else np.full(2, np.inf)
    return found


def table(seeds: int, jobs: int) -> str:
    """Run all cells, and return the table in Markdown."""
    keys = list(product(NETWORKS, BATCHES, STEPS))
    tasks = (delayed(cell)(*key, seed) for key in keys for seed in range(seeds))
    runs = Parallel(n_jobs=jobs)(tasks)
    lines = [
        "# What the weights bring to the correction",
        "",
        f"Digits with label skew, {len(NETWORKS)} networks, step sizes {STEPS[0]} and {STEPS[1]}, {seeds} seeds:",
        "geometric means over cells of the ratio to Di-DGD on Metropolis weights; in brackets the worst cell's median.",
        "Stationarity, then disagreement, after 1,000 iterations. `python -m studies.ablation` makes this table.",
        "",
        "| method, weights | full batch | mini-batches of 16 |",
        "|---|---|---|",
    ]
    base, *names = runs[0]
    for name in names:
        columns = []
        for batch in BATCHES:
            medians = []
            for number, (_, found, _) in enumerate(keys):
                if found == batch:
                    own = runs[number * seeds : (number + 1) * seeds]
                    medians.append(np.median([one[name] / one[base] for one in own], axis=0))
            mean, worst = np.exp(np.mean(np.log(medians), axis=0)), np.max(medians, axis=0)
            columns.append(", ".join(f"{m:.2g} ({w:.2g})" for m, w in zip(mean, worst, strict=True)))
        lines.append(f"| {name} | {' | '.join(columns)} |")
    return "\n".join([*lines, ""])


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=TABLE)
    options = parser.parse_args()
    text = table(options.seeds, options.jobs)
    write_atomically(options.out, text.encode())
    print(text)


if __name__ == "__main__":
    main()
