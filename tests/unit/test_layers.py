"""Layers only point down, and the core stays light."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import d3gd

SOURCE = Path(d3gd.__file__).parent
METHODS = sorted([*(SOURCE / "algorithms").glob("*.py"), *(SOURCE / "rules").glob("*.py")])
ABOVE = {"engine", "metrics", "records", "runfolder", "result", "problems", "data", "experiments", "cli", "theory"}


def imported(path):
    """The modules that a file imports, anywhere in it, as dotted names."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} has a relative import; write the whole name"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def rooms(path):
    """The parts of d3gd that a file imports; `d3gd` itself stands for everything."""
    return {([*name.split("."), "*"])[1] for name in imported(path) if name.split(".")[0] == "d3gd"}


def reached(path):
    """All parts of d3gd that a file brings in, through whatever it imports."""
    known, ahead = set(), rooms(path)
    while ahead:
        name = ahead.pop()
        known.add(name)
        place = SOURCE / name
        files = place.glob("*.py") if place.is_dir() else [place.with_suffix(".py")]
        for file in files:
            assert file.exists(), f"{path.name} imports {name}, which is no module but a name of the whole package"
            ahead |= rooms(file) - known
    return known


@pytest.mark.parametrize("path", METHODS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_algorithms_and_rules_know_nothing_of_what_runs_them(path):
    assert not rooms(path) & {"*", "transports"}
    assert not reached(path) & ABOVE


@pytest.mark.parametrize("path", sorted((SOURCE / "transports").glob("*.py")), ids=lambda path: path.name)
def test_transports_know_no_algorithm(path):
    assert not rooms(path) & (ABOVE | {"*", "algorithms", "rules"})


@pytest.mark.parametrize(
    "name", ["network", "simplex", "state", "schedules", "digraph", "graphs", "weights", "spectrum"]
)
def test_the_ground_floor_knows_nothing_above_it(name):
    assert not rooms(SOURCE / f"{name}.py") & (ABOVE | {"*", "algorithms", "rules"})


@pytest.mark.parametrize("path", sorted((SOURCE / "topologies").glob("*.py")), ids=lambda path: path.name)
def test_topologies_are_made_before_anything_runs(path):
    assert not reached(path) & {"*", "algorithms", "rules", "engine", "metrics", "network", "records", "transports"}


@pytest.mark.parametrize("path", sorted((SOURCE / "problems").glob("*.py")), ids=lambda path: path.name)
def test_problems_do_not_know_who_solves_them(path):
    assert not rooms(path) & {
        "*",
        "algorithms",
        "rules",
        "engine",
        "metrics",
        "network",
        "records",
        "cli",
        "experiments",
    }


def test_the_guard_sees_imports_of_every_kind(tmp_path):
    path = tmp_path / "sample.py"
    path.write_text(
        "import d3gd.engine\nfrom d3gd import metrics\ndef f():\n    from d3gd.records import x\nimport d3gd\n"
    )
    assert rooms(path) == {"engine", "metrics", "records", "*"}


def test_importing_the_core_brings_in_nothing_heavy():
    heavy = ["matplotlib", "sklearn", "torch", "mpi4py", "pandas", "rich", "networkx", "joblib", "typer", "numba"]
    code = f"import sys, json, d3gd; print(json.dumps([m for m in {heavy} if m in sys.modules]))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(answer.stdout) == []


def test_a_run_brings_in_nothing_heavy_either():
    heavy = ["matplotlib", "sklearn", "torch", "mpi4py", "pandas", "rich", "joblib", "typer", "numba"]
    code = (
        "import sys, json, d3gd\n"
        "problem = d3gd.problems.quadratic(agents=3, dim=2)\n"
        "d3gd.run(d3gd.D3GD(step_size=0.1), d3gd.graphs.ring(3), problem, iterations=3)\n"
        f"print(json.dumps([m for m in {heavy} if m in sys.modules]))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(answer.stdout) == []


def test_help_brings_in_no_library_that_only_runs_need():
    heavy = ["matplotlib", "sklearn", "torch", "mpi4py", "pandas", "networkx", "joblib", "numba"]
    code = (
        "import sys, json, d3gd.cli\n"
        "sys.argv = ['d3gd', '--help']\n"
        "try:\n    d3gd.cli.main()\n"
        f"except SystemExit:\n    pass\nprint(json.dumps([m for m in {heavy} if m in sys.modules]))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(answer.stdout.splitlines()[-1]) == []
