"""The tables of docs/results/topologies.md: python -m docs.scripts.topologies_table (ten minutes or so)."""

from collections.abc import Iterator

import networkx as nx
import numpy as np

import d3gd
from d3gd.topologies import Topology, ac_gt, fastest_mixing, refined, stl_fw
from docs.scripts import between

AGENTS, DEGREE, STEP_SIZE, ITERATIONS, SEEDS = 20, 4, 0.1, 1000, range(10)
METHOD = d3gd.PerronD3GD(step_size=STEP_SIZE, rule="fixed", correct=False)


def undirected(degree: int, seed: int) -> d3gd.Digraph:
    """Return the first connected one of a seed's random regular graphs."""
    draws = (nx.random_regular_graph(degree, AGENTS, seed=1000 * seed + draw) for draw in range(100))
    return d3gd.Digraph.from_networkx(next(graph for graph in draws if nx.is_connected(graph)))


def arms(problem: d3gd.problems.SoftmaxRegression, seed: int) -> Iterator[tuple[str, Topology]]:
    """Every way to choose links and weights, with about DEGREE others to hear."""
    graph, sparser, denser = (undirected(degree, seed) for degree in (DEGREE, DEGREE - 1, 2 * DEGREE))
    classes = problem.class_proportions()
    short = d3gd.run(METHOD, graph, problem, iterations=50).x.mean(axis=0)
    learned = stl_fw(classes, DEGREE)
    yield "metropolis", Topology(graph, d3gd.weights.metropolis(graph))
    yield "fastest mixing", Topology(graph, fastest_mixing(graph))
    yield "refined, gradients at 0", Topology(graph, refined(graph, problem))
    yield "refined, gradients after 50 iterations", Topology(graph, refined(graph, problem, at=short))
    yield "refined, class proportions", Topology(graph, refined(graph, classes - classes.mean(axis=0)))
    yield "metropolis, one link fewer", Topology(sparser, d3gd.weights.metropolis(sparser))
    yield "8 links, half pruned at random", ac_gt(denser, classes, sharpness=0.0, seed=seed)
    yield "8 links, half pruned by AC-GT", ac_gt(denser, classes)
    yield "STL-FW", learned
    yield (
        "STL-FW, then refined after 50 iterations",
        Topology(learned.graph, refined(learned.graph, problem, at=short, start=learned.weights)),
    )


def measured(batch: int | None) -> dict[str, np.ndarray]:
    """Return links heard, gap, stationarity and disagreement of each arm, one row per seed."""
    rows: dict[str, list[list[float]]] = {}
    for seed in SEEDS:
        problem = d3gd.problems.digits_classification(agents=AGENTS, alpha=0.1, seed=seed, batch=batch)
        for name, (graph, weights) in arms(problem, seed):
            result = d3gd.run(METHOD, graph, problem, weights=weights, iterations=ITERATIONS, every=100, seed=seed)
            # The last three records, as in the study: mini-batches make a single one noisy.
            last = [np.exp(np.log(result.metrics[key][-3:]).mean()) for key in ("stationarity", "disagreement")]
            heard = graph.link_count / AGENTS
            rows.setdefault(name, []).append([heard, d3gd.weights.spectral_gap(weights), *last])
    return {name: np.array(values) for name, values in rows.items()}


def table(batch: int | None) -> str:
    """Return a Markdown table: medians, and ratios to Metropolis weights with their range over the seeds."""
    found = measured(batch)
    lines = ["| links and weights | hears | gap | stationarity | disagreement |", "|---|---|---|---|---|"]
    for name, values in found.items():
        ratios = values[:, 2:] / found["metropolis"][:, 2:]
        mean, low, high = np.exp(np.log(ratios).mean(axis=0)), ratios.min(axis=0), ratios.max(axis=0)
        cells = [f"{m:.2g} [{a:.2g}, {b:.2g}]" for m, a, b in zip(mean, low, high, strict=True)]
        heard, gap = values[:, 0].mean(), np.median(values[:, 1])
        lines.append(f"| {name} | {heard:.1f} | {gap:.2f} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    for name, batch in {"all data": None, "mini-batches": 16}.items():
        between.write("results/topologies.md", name, table(batch))
