"""The table of docs/explanation/perron.md on how fast methods converge: python -m docs.scripts.rate_table (seconds).

All methods run on the weights that PerronD3GD plans for mixing.
"""

from typing import Any

import d3gd
from docs.scripts import between

STEPS = (0.1, 0.3, 0.6, 1.0)
MOST = 600
GRAPHS = {
    "Erdős-Rényi 0.6 (20)": d3gd.graphs.erdos_renyi(20, 0.6, seed=0),
    "Erdős-Rényi 0.2 (20)": d3gd.graphs.erdos_renyi(20, 0.2, seed=0),
    "exponential (16)": d3gd.graphs.exponential(16),
}
METHODS = {"PerronD3GD": d3gd.PerronD3GD, "Push-Pull": d3gd.PushPull, "centralized": d3gd.Centralized}


def iterations(method: Any, graph: d3gd.Digraph) -> str:
    """Return the iterations to a stationarity of 1e-12, for every step size."""
    problem, weights = d3gd.problems.quadratic(agents=graph.n, dim=5, seed=0), d3gd.topologies.fast_mixing(graph)
    found = []
    for step in STEPS:
        result = d3gd.run(
            method(step_size=step),
            graph,
            problem,
            iterations=MOST,
            every=1,
            weights=weights,
            metrics=["stationarity"],
            target={"stationarity": 1e-12},
        )
        found.append(str(result.iterations[-1]) if result.status == "target" else "never")
    return ", ".join(found)


def main() -> None:
    """Write the table."""
    rows = [["network", *METHODS], ["---"] * (1 + len(METHODS))]
    rows += [[name, *(iterations(method, graph) for method in METHODS.values())] for name, graph in GRAPHS.items()]
    between.write("explanation/perron.md", "rate", "\n".join(f"| {' | '.join(row)} |" for row in rows))


if __name__ == "__main__":
    main()
