"""The table of docs/explanation/corrections.md on momentum and Adam: python -m docs.scripts.local_table (a minute)."""

import numpy as np

import d3gd
from docs.scripts import between

AGENTS, ITERATIONS = 8, 4000
METHODS = {
    "none": d3gd.PerronD3GD(step_size=0.5),
    "momentum": d3gd.Local(method=d3gd.PerronD3GD(step_size=0.5), optimizer=d3gd.Momentum(momentum=0.9)),
    "`PerronD3GD(momentum=0.9)`": d3gd.PerronD3GD(step_size=0.5, momentum=0.9),
    "`QGMomentum`": d3gd.QGMomentum(step_size=0.5, momentum=0.9),
    "AdamW": d3gd.Local(method=d3gd.PerronD3GD(step_size=0.003), optimizer=d3gd.AdamW(weight_decay=0.0)),
    "`QGAdam`": d3gd.QGAdam(step_size=0.003),
}


def main() -> None:
    """Train softmax regression on digits, and evaluate the mean model."""
    train, test = d3gd.data.hold_out(*d3gd.data.digits(constant=False), fraction=0.2)
    rows = ["| local optimizer | Dirichlet alpha | loss | gradient | accuracy |", "|---|---|---|---|---|"]
    for alpha in (0.1, 1.0, 100.0):
        parts = d3gd.data.split_by_label(*train, agents=AGENTS, alpha=alpha)
        problem = d3gd.problems.softmax_regression(parts, regularization=1e-3, test=test, classes=10)
        for name, method in METHODS.items():
            result = d3gd.run(method, d3gd.graphs.exponential(AGENTS), problem, iterations=ITERATIONS, metrics=[])
            x = np.tile(result.x.mean(axis=0), (AGENTS, 1))
            loss, gradient = problem.losses(x).mean(), np.linalg.norm(problem.gradients(x).mean(axis=0))
            rows.append(f"| {name} | {alpha:g} | {loss:.3f} | {gradient:.0e} | {problem.accuracies(x)[0]:.3f} |")
    between.write("explanation/corrections.md", "local", "\n".join(rows))


if __name__ == "__main__":
    main()
