"""Print the table on AC-GT of docs/topologies.md: python docs/acgt_table.py (half an hour or so).

Bytes until the stationarity has fallen to a share of its start. Every arm has its own step, of one grid for all, that
was best on seeds that are not reported. Name cases to print only theirs.
"""

import sys
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np

import d3gd

SEEDS, TUNING = range(10), range(10_000, 10_006)
STEPS = [3.2 / 2 ** (power / 2) for power in range(16)]
EVERY = 5
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


def quadratic(agents: int, seed: int) -> Any:
    """Return quadratics whose agents disagree on directions as well as on minimisers."""
    return d3gd.problems.quadratic(agents=agents, dim=20, seed=seed, conditioning=20)


def mixture(agents: int, seed: int) -> Any:
    """Return softmax regression on Gaussian classes of which every agent has few."""
    return d3gd.problems.mixture_classification(agents=agents, alpha=0.1, seed=seed)


# Graph, problem, what is to be left of the stationarity at the start, and the most iterations.
CASES: dict[str, tuple[Callable[[int], d3gd.Digraph], Callable[[int, int], Any], float, int]] = {
    "Erdős-Rényi, quadratics": (erdos_renyi, quadratic, 1e-8, 1500),
    "Erdős-Rényi, mixture": (erdos_renyi, mixture, 1e-4, 1500),
    "geometric, quadratics": (geometric, quadratic, 1e-8, 1500),
    "geometric, mixture": (geometric, mixture, 1e-4, 500),
}


def spent(arm: str, step: float, case: str, seed: int) -> tuple[float, float]:
    """Return megabytes and iterations until the target; infinite if it is never met."""
    make_graph, make_problem, share, most = CASES[case]
    graph = make_graph(seed)
    problem = make_problem(graph.n, seed)
    start = np.sum(problem.global_gradients(np.zeros((1, problem.dim))) ** 2)
    result = d3gd.run(
        ARMS[arm](step),
        graph,
        problem,
        iterations=most,
        every=EVERY,
        seed=seed,
        metrics=["stationarity", "bytes"],
        target={"stationarity": share * start},
    )
    met = result.status == "target"
    return (result.metrics["bytes"][-1] / 1e6, result.iterations[-1]) if met else (np.inf, np.inf)


def tuned(arm: str, case: str) -> float:
    """Return the step that spends least on the seeds of tuning: the steps fall until it gets worse again."""
    best, least = STEPS[0], np.inf
    for step in STEPS:
        logs = 0.0
        for seed in TUNING:
            logs += np.log(spent(arm, step, case, seed)[0])
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


def shown(values: np.ndarray, digits: str) -> str:
    """Return the median of some numbers and their range."""
    words = ["never" if np.isinf(value) else format(value, digits) for value in np.quantile(values, (0.5, 0, 1))]
    return f"{words[0]} [{words[1]}, {words[2]}]"


def main(cases: list[str]) -> None:
    """Print a table per case; ratios are to the same tracking on all links, seed by seed."""
    for case in cases:
        print(f"\n{case}:\n\n| | step | iterations | MB | ratio |\n|---|---|---|---|---|", flush=True)
        base = measured(BASE, case)[1][:, 0]
        for arm in ARMS:
            step, values = measured(arm, case)
            median = np.median(values, axis=0)
            cells = [f"{step:.2g}", *("never" if np.isinf(m) else f"{m:.3g}" for m in median[::-1])]
            print(f"| {arm} | {' | '.join(cells)} | {shown(values[:, 0] / base, '.2f')} |", flush=True)


if __name__ == "__main__":
    with np.errstate(all="ignore"):
        main(sys.argv[1:] or list(CASES))
