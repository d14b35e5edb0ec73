"""The cost of a step beyond its gradients."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import plain
from cases import Steps, fair, figure1, interleaved, quiet, regular

import d3gd

TARGETS = {"Di-DGD": 0.15, "D3GD decentralized": 0.4, "PerronD3GD": 0.25}


def small(quick):
    """Figure 1's problem in the engine, in seconds of one core: everything runs on a single core.

    The plain version runs in a separate process, as rivals do: in this one the C library has adapted to retain freed
    memory, which saves the plain version most page faults of its large temporary arrays. Both are reported.

    Returns:
        For the plain version in its own process and in this one: the overhead of each method, iterations per second
        against it, and gradients against its gradients.
    """
    case, iterations = figure1(), 300 if quick else 1000
    marks, folder = [], tempfile.TemporaryDirectory()

    algorithms = {
        "Di-DGD": d3gd.DiDGD(step_size=0.1),
        "D3GD decentralized": d3gd.D3GD(step_size=0.1),
        "PerronD3GD": d3gd.PerronD3GD(step_size=0.1),
    }
    for algorithm in algorithms.values():
        x = d3gd.run(algorithm, case.graph, case.problem, iterations=100, every=100).x
    rows = {name: [] for name in [*algorithms, "gradients", "kept gradients", "kept iteration"]}
    rows |= {"plain gradients": [], "plain iteration": []}
    A, some = case.weights.toarray(), iterations // 3
    file = Path(folder.name) / "figure1.npz"
    np.savez(file, A=A, X=case.problem.X, y=case.problem.y, classes=10, iterations=some)

    def mark(_):
        marks.append(time.process_time())

    def note(name, work, times):
        began = time.process_time()
        for _ in range(times):
            work()
        rows[name].append((time.process_time() - began) / times)

    with quiet():
        for _ in range(5 if quick else 15):
            for name, algorithm in algorithms.items():
                marks.clear()
                d3gd.run(
                    *(algorithm, case.graph, case.problem),
                    iterations=iterations,
                    every=iterations,
                    metrics=["bytes"],
                    callbacks=[mark],
                )
                rows[name].append((marks[-1] - marks[0]) / iterations)
                note("gradients", lambda: case.problem.gradients(x, 0), iterations // 5)
                note("kept gradients", lambda: plain.gradients(x, case.problem.X, case.onehot, 1e-4), some // 2)
            note("kept iteration", lambda: plain.didgd(A, case.problem.X, case.problem.y, 10, 0.1, some), 1)
            rows["kept iteration"][-1] /= some
            answer = json.loads(alone(file))
            rows["plain iteration"].append(answer["core"])
            rows["plain gradients"].append(answer["gradient"])
    folder.cleanup()
    rows = {name: float(np.median(values)) for name, values in rows.items()}
    return [
        (
            {name: (rows[name] - rows["gradients"]) / rows[f"{which} gradients"] for name in algorithms},
            rows[f"{which} iteration"] / rows["Di-DGD"],
            rows["gradients"] / rows[f"{which} gradients"],
        )
        for which in ("plain", "kept")
    ]


def alone(file):
    """The output of the plain version in a separate process, with BLAS on one thread."""
    command = [sys.executable, plain.__file__, str(file)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=True)
    return done.stdout.strip().splitlines()[-1]


def large(n, classes, features, samples, quick):
    """Steps without the engine, with known Perron weights, and mixing against a copy."""
    case = regular(n, classes, features, samples)
    steps = {
        "Di-DGD": Steps(case, d3gd.DiDGD(step_size=0.1, perron="known")),
        "D3GD decentralized": Steps(case, d3gd.D3GD(step_size=0.1, perron="known")),
        "PerronD3GD": Steps(case, d3gd.PerronD3GD(step_size=0.1, rule="fixed", perron="known")),
    }
    if n <= 2000:
        steps["Di-DGD, tracked"] = Steps(case, d3gd.DiDGD(step_size=0.1))
    x = np.random.default_rng(1).normal(size=(n, case.problem.dim))
    works = dict(steps) | {
        "gradients": lambda: case.problem.gradients(x, 0),
        "plain gradients": lambda: plain.gradients(x, case.problem.X, case.onehot, 1e-4),
    }
    with quiet():
        taken = interleaved(works, times=1 if n > 10_000 else 10, repeats=3 if quick else 9)
    found = {name: float(np.median((taken[name] - taken["gradients"]) / taken["plain gradients"])) for name in steps}
    return found, float(np.median(taken["PerronD3GD"] / taken["Di-DGD"]))


if __name__ == "__main__":
    fair()
    print(small(True))
    print(large(1000, 10, 10, 100, True))
