"""The table of docs/explanation/perron.md on agents that never survey the network.

python -m docs.scripts.nearby_table (two minutes).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import d3gd
from docs.scripts import between

SEEDS, ITERATIONS, LATE = range(3), 1000, 3
GRAPHS: dict[str, Callable[[int], d3gd.Digraph]] = {
    "Erdős-Rényi 0.2 (20)": lambda seed: d3gd.graphs.erdos_renyi(20, 0.2, seed=seed),
    "Erdős-Rényi 0.6 (20)": lambda seed: d3gd.graphs.erdos_renyi(20, 0.6, seed=seed),
    "exponential (16)": lambda seed: d3gd.graphs.exponential(16),
    "grid, two-way (20)": lambda seed: d3gd.graphs.grid(4, 5),
    "ring, one-way (10)": lambda seed: d3gd.graphs.ring(10),
}
CASES = [(batch, step) for batch in (None, 16) for step in (0.1, 0.5)]
METHODS: dict[str, Callable[[float], Any]] = {
    "survey": lambda step: d3gd.PerronD3GD(step_size=step, rule="fixed"),
    "tracked": lambda step: d3gd.PerronD3GD(step_size=step, rule="fixed", perron="tracked"),
    "Di-DGD": lambda step: d3gd.DiDGD(step_size=step),
}


def late(algorithm: Any, graph: d3gd.Digraph, batch: int | None, seed: int) -> float:
    """Return the geometric mean of the stationarity at 800, 900 and 1,000 iterations on the digits."""
    problem = d3gd.problems.digits_classification(agents=graph.n, alpha=0.1, seed=seed, batch=batch)
    options: dict[str, Any] = {"iterations": ITERATIONS, "every": 100, "metrics": ["stationarity"], "seed": seed}
    result = d3gd.run(algorithm, graph, problem, progress=False, **options)
    if result.status != "completed":
        return float("inf")
    return float(np.exp(np.log(result.metrics["stationarity"][-LATE:]).mean()))


def row(name: str) -> str:
    """Return the ratios on a kind of network, as a row of the table."""
    cells = [name]
    for batch, step in CASES:
        ends = {
            method: float(np.median([late(make(step), GRAPHS[name](seed), batch, seed) for seed in SEEDS]))
            for method, make in METHODS.items()
        }
        ratios = [ends[method] / ends["survey"] for method in ("tracked", "Di-DGD")]
        cells.append(", ".join(f"{ratio:.2f}" if ratio < 10 else f"{ratio:,.0f}" for ratio in ratios))
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Write the table."""
    titles = [f"{'full batch' if batch is None else f'batch {batch}'}, step {step}" for batch, step in CASES]
    header = [f"| network | {' | '.join(titles)} |", "|" + (1 + len(CASES)) * "---|"]
    between.write("explanation/perron.md", "nearby", "\n".join([*header, *map(row, GRAPHS)]))


if __name__ == "__main__":
    main()
