"""The table on AC-GT of docs/results/topologies.md: python -m docs.scripts.acgt_table (twenty minutes or so).

Bytes until the stationarity has fallen to a share of its start. Every arm has its own step, of one grid for all, that
was best on seeds that are not reported.
"""

from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np

import d3gd
from docs.scripts import between

SEEDS, TUNING = range(10), range(10_000, 10_006)
STEPS = [3.2 / 2 ** (power / 2) for power in range(16)]
EVERY, MOST = 5, 1500
BASE = "DIGing, combined after"

ARMS: dict[str, Callable[[float], Any]] = {
    "ExactDiffusion": lambda gamma: d3gd.ExactDiffusion(step_size=gamma),
    "DIGing": lambda gamma: d3gd.DIGing(step_size=gamma),
    BASE: lambda gamma: d3gd.DIGing(step_size=gamma, combine="after"),
    **{
        f"ACGT, prune {prune:g}, {words}": lambda gamma, prune=prune, sharpness=sharpness: d3gd.ACGT(
            step_size=gamma, prune=prune, sharpness=sharpness
        )
        for prune in (0.5, 0.8)
        for sharpness, words in ((0.0, "at random"), (3.0, "sharpness 3"), (np.inf, "the most similar"))
    },
}


def erdos_renyi(seed: int) -> d3gd.Digraph:
    """Return the first connected one of a seed's random graphs with 8 links an agent."""
    draws = (nx.gnp_random_graph(20, 0.4, seed=1000 * seed + draw) for draw in range(100))
    return d3gd.Digraph.from_networkx(next(graph for graph in draws if nx.is_connected(graph)))


def geometric(seed: int) -> d3gd.Digraph:
    """Return a random geometric graph with 10 links an agent or so."""
    return d3gd.graphs.random_geometric(50, 0.3, spread=0.0, seed=seed)


def small_geometric(seed: int) -> d3gd.Digraph:
    """Return one like those of docs/results/compare."""
    return d3gd.graphs.random_geometric(20, 0.4, spread=0.0, seed=seed)


def quadratic(agents: int, seed: int) -> Any:
    """Return quadratics whose agents disagree on directions as well as on minimisers."""
    return d3gd.problems.quadratic(agents=agents, dim=20, seed=seed, conditioning=20)


def mixture(agents: int, seed: int) -> Any:
    """Return softmax regression on Gaussian classes of which every agent has few."""
    return d3gd.problems.mixture_classification(agents=agents, alpha=0.1, seed=seed)


# Graph, problem, and what is to be left of the stationarity at the start.
CASES: dict[str, tuple[Callable[[int], d3gd.Digraph], Callable[[int, int], Any], float]] = {
    "Erdős-Rényi, 20 agents, quadratics": (erdos_renyi, quadratic, 1e-8),
    "Erdős-Rényi, 20 agents, mixture": (erdos_renyi, mixture, 1e-4),
    "geometric, 50 agents, quadratics": (geometric, quadratic, 1e-8),
    "geometric, 20 agents, mixture": (small_geometric, mixture, 1e-4),
}


def spent(arm: str, step: float, case: str, seed: int) -> float:
    """Return megabytes until the target; infinite if it is never met."""
    make_graph, make_problem, share = CASES[case]
    graph = make_graph(seed)
    problem = make_problem(graph.n, seed)
    start = np.sum(problem.global_gradients(np.zeros((1, problem.dim))) ** 2)
    result = d3gd.run(
        ARMS[arm](step),
        graph,
        problem,
        iterations=MOST,
        every=EVERY,
        seed=seed,
        metrics=["stationarity", "bytes"],
        target={"stationarity": share * start},
    )
    return float(result.metrics["bytes"][-1]) / 1e6 if result.status == "target" else np.inf


def tuned(arm: str, case: str) -> float:
    """Return the step that spends least on the seeds of tuning: the steps fall until it gets worse again."""
    best, least = STEPS[0], np.inf
    for step in STEPS:
        logs = 0.0
        for seed in TUNING:
            logs += float(np.log(spent(arm, step, case, seed)))
            if logs == np.inf:
                break
        if logs < least:
            best, least = step, logs
        elif least < np.inf:
            break
    return best


def measured(arm: str, case: str) -> tuple[float, np.ndarray]:
    """Return the step of an arm, and what every seed spent with it."""
    step = tuned(arm, case)
    return step, np.array([spent(arm, step, case, seed) for seed in SEEDS])


def column(case: str) -> dict[str, str]:
    """Return a cell per arm: the ratio to the same tracking on all links, median and range over seeds, and the step."""
    found = {arm: measured(arm, case) for arm in ARMS}
    base = found[BASE][1]
    cells = {}
    for arm, (step, sent) in found.items():
        ratios = sent / base
        three = np.median(ratios), ratios.min(), ratios.max()
        middle, low, high = ("never" if np.isinf(ratio) else f"{ratio:.2f}" for ratio in three)
        cells[arm] = f"{middle} [{low}, {high}] @ {step:.2g}"
    cells[BASE] = f"{np.median(base):.3g} MB @ {found[BASE][0]:.2g}"
    return cells


def main() -> None:
    """Write the table."""
    columns = {case: column(case) for case in CASES}
    rows = [["", *columns], ["---"] * (1 + len(columns))]
    rows += [[arm, *(cells[arm] for cells in columns.values())] for arm in ARMS]
    between.write("results/topologies.md", "acgt", "\n".join(f"| {' | '.join(row)} |" for row in rows))


if __name__ == "__main__":
    with np.errstate(all="ignore"):
        main()
