"""Other libraries on the same graph, data and iterations, each in a separate process and environment."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import plain
from cases import Case, quiet

import d3gd

HERE = Path(__file__).parent
ENVIRONMENTS = HERE.parent / ".venv-rivals"
STEP = 0.1


def undirected_figure1():
    """Figure 1's problem on an undirected graph, as one rival needs; the methods then coincide."""
    rng, n = np.random.default_rng(0), 20
    pairs = [(i, j) for i in range(n) for j in range(i) if rng.random() < 0.6]
    graph = d3gd.Digraph.from_edges(n, pairs + [(j, i) for i, j in pairs])
    return Case(graph, d3gd.problems.sigmoid_classification(agents=n, alpha=0.1, seed=0))


def python313():
    """A Python 3.13, or None."""
    found = os.environ.get("PYTHON313") or shutil.which("python3.13")
    if found is None:
        return None
    works = subprocess.run([found, "-c", "import venv"], capture_output=True, timeout=60, check=False)
    return found if works.returncode == 0 else None


def environment(name, python, packages):
    """Return the Python of a rival's environment, created at first use, or the reason for its absence."""
    folder = ENVIRONMENTS / name
    ready = folder / "installed"
    if not ready.exists():
        shutil.rmtree(folder, ignore_errors=True)
        made = subprocess.run([python, "-m", "venv", folder], capture_output=True, text=True, timeout=300, check=False)
        if made.returncode == 0:
            install = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", *packages]
            made = subprocess.run(install, capture_output=True, text=True, timeout=900, check=False)
        if made.returncode != 0:
            return None, "not installed: " + ([*made.stderr.strip().splitlines(), "no reason given"])[-1][:200]
        ready.touch()
    return folder / "bin" / "python", ""


def rivals():
    """For each rival the command that runs it on a file, a divisor of the iterations, and the expected result."""
    commands = {"plain NumPy": ([sys.executable, HERE / "plain.py"], 1, didgd, "")}
    commands |= {"one PyTorch module per agent": ([sys.executable, HERE / "torch_loop.py"], 1, didgd, "")}
    newer = python313()
    if newer is None:
        commands["decent-bench, DGD"] = (
            None,
            1,
            dgd,
            "not installed: needs Python 3.13 (on the path, or PYTHON313=...)",
        )
    else:
        python, problem = environment("decent-bench", newer, ["decent-bench"])
        commands["decent-bench, DGD"] = (python and [python, HERE / "rival_decent.py"], 1, dgd, problem)
    python, problem = environment("disropt", sys.executable, ["disropt", "mpi4py", "mpich"])
    launch = python and [python.parent / "mpiexec", "-n", "20", python, HERE / "rival_disropt.py"]
    commands["disropt, SubgradientMethod"] = (launch, 4, combine_then_adapt, problem)
    return commands


def measure(quick):
    """Return rows (rival, version, times as slow as d3gd per iteration or None, remark)."""
    case, iterations = undirected_figure1(), 50 if quick else 200
    A = case.weights.toarray()
    quietly = {"capture_output": True, "text": True, "timeout": 600, "check": False}
    rows, alone = {}, {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder, quiet():
        commands = rivals()
        for _ in range(2 if quick else 5):
            for name, (command, fewer, wanted, problem) in commands.items():
                if command is None:
                    rows[name] = (None, [], problem)
                    continue
                count = max(10, iterations // fewer)
                file = Path(folder) / f"{count}.npz"
                data = {"A": A, "X": case.problem.X, "y": case.problem.y, "classes": 10, "iterations": count}
                np.savez(file, **data)
                run = subprocess.run([*command, file], env=alone, **quietly)
                if run.returncode != 0:
                    reason = ([*run.stderr.strip().splitlines(), "no reason given"])[-1][:200]
                    rows[name] = (None, [], f"did not run: {reason}")
                    continue
                answer = json.loads(run.stdout.strip().splitlines()[-1])
                away = np.abs(np.array(answer["x"]) - wanted(A, case.problem, count)).max()
                if away > 1e-9:
                    rows[name] = (answer["version"], [], f"computes something else, off by {away:.1e}")
                    continue
                mine = didgd_seconds(case, 10 * iterations)
                before = rows.get(name, (None, [], ""))[1]
                rows[name] = (answer["version"], [*before, answer["seconds"] / count / mine], "")
    return [(name, kind, float(np.median(r)) if r else None, why) for name, (kind, r, why) in rows.items()]


def didgd_seconds(case, iterations):
    """Seconds per iteration of Di-DGD in d3gd, in an ordinary run without metrics."""
    result = d3gd.run(
        d3gd.DiDGD(step_size=STEP), case.graph, case.problem, iterations=iterations, every=iterations, metrics=["bytes"]
    )
    return result.seconds / iterations


def didgd(A, problem, iterations):
    """The expected result of the PyTorch modules."""
    return plain.didgd(A, problem.X, problem.y, 10, STEP, iterations)


def dgd(A, problem, iterations):
    """The expected result of DGD: Di-DGD without the scale."""
    x = np.zeros((problem.agents, problem.dim))
    for _ in range(iterations):
        x = A @ x - STEP * problem.gradients(x)
    return x


def combine_then_adapt(A, problem, iterations):
    """The expected result of disropt's method: gradients are evaluated after mixing."""
    x = np.zeros((problem.agents, problem.dim))
    for _ in range(iterations):
        mixed = A @ x
        x = mixed - STEP * problem.gradients(mixed)
    return x


if __name__ == "__main__":
    for row in measure("--quick" in sys.argv):
        print(row)
