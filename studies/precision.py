"""Exact methods in single precision for 100,000 iterations: ``python -m studies.precision``.

What such a method conserves (corrections, trackers of gradients) must not drift, or the models leave the optimum for
good. Quadratics, small networks, a constant step. The floor of single precision is where centralized gradient descent
ends; a method should end within ten times of it, and no further off than after a tenth of the iterations.
"""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

import d3gd
from d3gd import Digraph, graphs
from d3gd.algorithms.base import Algorithm
from d3gd.runs.files import write_atomically

STEP, DIM, ITERATIONS, WITHIN = 0.05, 3, 100_000, 10.0
PAGE = Path("docs/results/precision.md")

_PATH = [pair for i in range(5) for pair in ((i, i + 1), (i + 1, i))]
DIRECTED: Mapping[str, Digraph] = {
    "one-way ring (6)": graphs.ring(6),
    "ring with chords (6)": Digraph.from_edges(6, [*((i, (i + 1) % 6) for i in range(6)), (0, 3), (0, 2), (4, 1)]),
    "Erdos-Renyi 0.4 (6)": graphs.erdos_renyi(6, 0.4, seed=0),
    "exponential (8)": graphs.exponential(8),
    "geometric (8)": graphs.random_geometric(8, radius=0.6, seed=0),
}
UNDIRECTED: Mapping[str, Digraph] = {
    "two-way path (6)": Digraph.from_edges(6, _PATH),
    "star (6)": graphs.star(6),
    "grid (6)": graphs.grid(2, 3),
    "complete (6)": graphs.complete(6),
    "geometric, two-way (8)": graphs.random_geometric(8, radius=0.6, spread=0.0, seed=0),
}
METHODS: Mapping[str, Callable[[], Algorithm[Any]]] = {
    "PerronD3GD": lambda: d3gd.PerronD3GD(step_size=STEP),
    "FRSD": lambda: d3gd.FRSD(step_size=STEP),
    "FROST": lambda: d3gd.FROST(step_size=STEP),
    "Push-Pull": lambda: d3gd.PushPull(step_size=STEP),
    "Push-Pull, combine before (AB)": lambda: d3gd.PushPull(step_size=STEP, combine="before"),
    "Push-DIGing": lambda: d3gd.PushDIGing(step_size=STEP),
    "R-FAST": lambda: d3gd.RFAST(step_size=STEP),
    "EXTRA": lambda: d3gd.EXTRA(step_size=STEP),
    "exact diffusion": lambda: d3gd.ExactDiffusion(step_size=STEP),
    "DIGing": lambda: d3gd.DIGing(step_size=STEP),
    "AC-GT": lambda: d3gd.ACGT(step_size=STEP),
}


def ends(method: Algorithm[Any], graph: Digraph, iterations: int) -> tuple[float, float]:
    """Return the stationarity at a tenth of the iterations and at their end, as means of ten of 100 records."""
    problem = d3gd.problems.quadratic(agents=graph.n, dim=DIM, seed=0)
    result = d3gd.run(
        method,
        graph,
        problem,
        iterations=iterations,
        every=iterations // 100,
        metrics=("stationarity",),
        dtype="float32",
        progress=False,
    )
    curve = result.metrics["stationarity"]
    return (
        (float(np.mean(curve[6:16])), float(np.mean(curve[-10:]))) if result.status == "completed" else (np.inf, np.inf)
    )


def places(name: str) -> Mapping[str, Digraph]:
    """Return the networks of a method."""
    return UNDIRECTED if METHODS[name]().needs == "undirected links" else DIRECTED


def page(names: list[str], iterations: int, jobs: int) -> str:
    """Run everything, and return the page."""
    networks = {**DIRECTED, **UNDIRECTED}
    central = {graph.n: graph for graph in networks.values()}
    floors = {n: ends(d3gd.Centralized(step_size=STEP), graph, iterations)[1] for n, graph in central.items()}
    keys = [(name, network) for name in names for network in places(name)]
    runs = Parallel(n_jobs=jobs)(delayed(ends)(METHODS[name](), networks[place], iterations) for name, place in keys)
    found = dict(zip(keys, runs, strict=True))
    floor = ", ".join(f"{floor:.1e} with {n} agents" for n, floor in sorted(floors.items()))
    lines = [
        "# Single precision",
        "",
        "Whether exact methods stay exact in float32 over many iterations: what they conserve (corrections, gradient",
        "trackers) must not drift, or models leave the optimum for good.",
        "",
        f"{iterations:,} iterations on quadratics (step {STEP}, d = {DIM}), on five networks of 6 or 8 agents each.",
        "Values are stationarity in multiples of the floor, where centralized gradient descent ends in float32:",
        f"{floor}. There steps of this size round to nothing: no method",
        "reaches the optimum rounded to float32 (below 1e-15), and float64 ends at about 1e-29. Of the networks, the",
        "largest value at a tenth of the iterations, then the smallest and the largest at the end.",
        "`python -m studies.precision` makes this page.",
        "",
        f"| method | networks | after {iterations // 10:,} | after {iterations:,} | within {WITHIN:g} of the floor |",
        "|---|---|---|---|---|",
    ]
    for name in names:
        ratios = np.array([np.array(found[name, place]) / floors[graph.n] for place, graph in places(name).items()])
        early, late = ratios.max(axis=0)
        verdict = "yes" if late <= WITHIN else "no"
        kind = "two-way" if places(name) is UNDIRECTED else "one-way"
        lines.append(f"| {name} | {kind} | {early:.2g} | {ratios[:, 1].min():.2g} to {late:.2g} | {verdict} |")
    return "\n".join([*lines, ""])


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(prog="python -m studies.precision", description=__doc__)
    parser.add_argument("--iterations", type=int, default=ITERATIONS)
    parser.add_argument("--only", help="methods, separated by semicolons")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=PAGE)
    options = parser.parse_args()
    names = [name for name in METHODS if options.only is None or name in options.only.split(";")]
    text = page(names, options.iterations, options.jobs)
    write_atomically(options.out, text.encode())
    print(text)


if __name__ == "__main__":
    main()
