"""Many seeds of one experiment: in one batched run, sequentially, or in parallel processes."""

import time

import numpy as np
from cases import Case, fair, figure1
from joblib import Parallel, delayed

import d3gd

SEEDS = 8


def one(seed, iterations):
    """One seed as an ordinary run without metrics."""
    case = figure1()
    problem = d3gd.problems.sigmoid_classification(agents=20, alpha=0.1, seed=seed)
    algorithm = d3gd.DiDGD(step_size=0.1, perron="known")
    d3gd.run(algorithm, case.graph, problem, iterations=iterations, every=iterations, metrics=["bytes"])


def batch(iterations):
    """All seeds as one disconnected network, with Di-DGD and known Perron weights."""
    from d3gd.network import Network

    base = figure1().graph
    shift = 20 * np.arange(SEEDS)[:, None, None]
    edges = (base.edges[None] + shift).reshape(-1, 2)
    graph = d3gd.Digraph.from_edges(20 * SEEDS, edges)
    problems = [d3gd.problems.sigmoid_classification(agents=20, alpha=0.1, seed=seed) for seed in range(SEEDS)]
    X, y = np.concatenate([p.X for p in problems]), np.concatenate([p.y for p in problems])
    case = Case(graph, d3gd.problems.SigmoidClassification(X, y, classes=10))
    net, x = Network(graph, case.weights), np.zeros((20 * SEEDS, 100))
    pi = np.tile(d3gd.weights.perron(figure1().weights), SEEDS)[:, None]
    for k in range(iterations):
        x = net.mix(net.a0, net.exchange(x=x).x) - 0.1 * case.problem.gradients(x, k) / (20 * pi)
    return x


def measure(quick):
    """Seconds for eight seeds in three ways, over those of the batched run."""
    iterations = 300 if quick else 1000
    one(0, 10)
    batch(10)
    rows = {"one batched run": [], "one after the other": [], "two processes": []}
    with Parallel(n_jobs=2) as pool:
        pool(delayed(one)(seed, 10) for seed in range(2))
        for _ in range(2 if quick else 5):
            for name, work in {
                "one batched run": lambda: batch(iterations),
                "one after the other": lambda: [one(seed, iterations) for seed in range(SEEDS)],
                "two processes": lambda: pool(delayed(one)(seed, iterations) for seed in range(SEEDS)),
            }.items():
                began = time.perf_counter()
                work()
                rows[name].append(time.perf_counter() - began)
    base = np.array(rows["one batched run"])
    return {name: float(np.median(np.array(values) / base)) for name, values in rows.items()}


if __name__ == "__main__":
    fair()
    print(measure(True))
