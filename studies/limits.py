"""The largest stable step of PerronD3GD under several weights: ``python -m studies.limits``.

At the optimum, with exact gradients and before any correction, models follow A (I - gamma D H), where D divides steps
by n pi and H holds the agents' Hessians. The step at which an eigenvalue leaves the unit circle is found by bisection.
"""

import argparse
from collections.abc import Callable, Mapping

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigs

from d3gd import Centralized, Digraph, PerronD3GD, graphs, problems, run, weights
from d3gd.arrays import CSR, Floats
from d3gd.problems import Problem
from d3gd.spectrum import perron
from d3gd.steady.fast import fast_weights
from d3gd.steady.planner import Planner

N, ALPHA, LARGEST, HALVINGS = 20, 0.1, 6.0, 9
NETWORKS: Mapping[str, Callable[[int], Digraph]] = {
    "geometric, two-way": lambda seed: graphs.random_geometric(N, radius=0.4, spread=0.0, seed=seed),
    "geometric": lambda seed: graphs.random_geometric(N, radius=0.4, seed=seed),
    "Erdos-Renyi 0.2": lambda seed: graphs.erdos_renyi(N, 0.2, seed=seed),
}
SEEDS = range(3)


def hessians(problem: Problem, x: Floats) -> Floats:
    """Return every agent's Hessian, by differences of gradients."""
    step = 1e-5
    columns = [
        problem.gradients(np.tile(x + step * e, (N, 1))) - problem.gradients(np.tile(x - step * e, (N, 1)))
        for e in np.eye(len(x))
    ]
    H = np.stack(columns, axis=2) / (2 * step)
    symmetric: Floats = (H + H.transpose(0, 2, 1)) / 2
    return symmetric


def limit(A: CSR, H: Floats) -> float:
    """Return the largest stable step."""
    shape, scale = H.shape[:2], (N * perron(A))[:, None]

    def stable(gamma: float) -> bool:
        def mixed(z: Floats) -> Floats:
            x = z.reshape(shape)
            after: Floats = A @ (x - gamma * np.einsum("nij,nj->ni", H, x) / scale)
            return after.ravel()

        operator = LinearOperator((H[:, :, 0].size, H[:, :, 0].size), matvec=mixed, dtype=np.float64)
        start = np.random.default_rng(0).normal(size=operator.shape[0])
        values = eigs(operator, k=3, which="LM", return_eigenvectors=False, v0=start, tol=1e-4, maxiter=5000)
        # Without curvature a direction of the mean model stays where it is: 1 is no instability.
        return bool(np.abs(values[values.real < 0.9]).max(initial=0) < 1)

    low, high = 0.0, LARGEST
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if stable(middle) else (low, middle)
    return low


def independent(graph: Digraph) -> CSR:
    """Return weights planned against constant, independent gradients and a tenth of noise."""
    a = weights.balanced(graph).data
    planner = Planner(graph.n, graph.targets, graph.sources, a)
    return graph.matrix(planner.plan(a, np.eye(graph.n), np.full(graph.n, 0.1), 1.0, evaluations=150))


def row(name: str, seed: int) -> tuple[float, ...]:
    """Return the limits of one network: 2 / L of the mean objective, then those of the weights."""
    graph = NETWORKS[name](seed)
    problem = problems.mixture_classification(agents=N, alpha=ALPHA, seed=seed)
    best = run(Centralized(step_size=2.0), graph, problem, iterations=2000, every=2000, metrics=(), progress=False)
    H = hessians(problem, best.x[0])
    planned = run(
        PerronD3GD(step_size=1.5, rule="planned"),
        graph,
        problem,
        iterations=400,
        every=400,
        metrics=(),
        progress=False,
    )
    kinds = (
        weights.metropolis(graph),
        weights.balanced(graph),
        graph.matrix(fast_weights(graph)),
        planned.weights,
        independent(graph),
    )
    return 2 / float(np.linalg.eigvalsh(H.mean(axis=0))[-1]), *(limit(A, H) for A in kinds)


def table() -> str:
    """Return the table of all networks."""
    lines = [
        "| network | seed | 2 / L | Metropolis | balanced | mixing | planned from data | independent |",
        "|---|---|---|---|---|---|---|---|",
    ]
    rows = []
    for name in NETWORKS:
        for seed in SEEDS:
            rows.append(row(name, seed))
            lines.append(f"| {name} | {seed} | " + " | ".join(f"{value:.2f}" for value in rows[-1]) + " |")
    ratios = np.exp(np.mean(np.log(rows), axis=0))
    relative = ratios / ratios[3]
    lines.append("| geometric mean, of mixing's | | " + " | ".join(f"{value:.2f}" for value in relative) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    argparse.ArgumentParser(prog="python -m studies.limits", description=__doc__).parse_args()
    print(table())
