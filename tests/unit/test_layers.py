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
VOCABULARY = [
    "errors",
    "arrays",
    "random",
    "schedules",
    "validation",
    "digest",
    "reading",
    "state",
    "digraph",
    "graphs",
    "weights",
    "stochastic",
    "spectrum",
    "drawing",
]
RUNNING = {
    "engine",
    "metrics",
    "runs",
    "result",
    "config",
    "comparison",
    "reproduce",
    "cli",
    "plots",
    "report",
    "callbacks",
    "sweeps",
}
ABOVE = RUNNING | {"problems", "data", "theory"}
TOP = {*VOCABULARY, "network", "metrics", "result", "theory", "__init__", "__main__"}
PACKAGES = {
    "algorithms",
    "rules",
    "checks",
    "steady",
    "kernels",
    "distributed",
    "transports",
    "topologies",
    "conditions",
    "problems",
    "privacy",
    "data",
    "config",
    "engine",
    "runs",
    "comparison",
    "report",
    "reproduce",
    "cli",
    "torch",
    "sites",
    "callbacks",
    "plots",
    "sweeps",
}


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


def files_of(name):
    """The files that an import of a dotted name runs, the packages around it included."""
    place = SOURCE
    for part in name.split(".")[1:]:
        place = place / part
        yield from (file for file in (place.with_suffix(".py"), place / "__init__.py") if file.exists())


def reached(path):
    """All parts of d3gd that importing a file brings in, through whatever it imports."""
    known, ahead = set(), [path]
    while ahead:
        for name in imported(ahead.pop()):
            new = set(files_of(name)) - known if name.startswith("d3gd.") else set()
            known |= new
            ahead += new
    return {file.relative_to(SOURCE).parts[0].removesuffix(".py") for file in known}


@pytest.mark.parametrize("path", METHODS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_algorithms_and_rules_know_nothing_of_what_runs_them(path):
    assert not rooms(path) & {"*", "transports"}
    assert not reached(path) & ABOVE


@pytest.mark.parametrize("path", sorted((SOURCE / "transports").glob("*.py")), ids=lambda path: path.name)
def test_transports_know_no_algorithm(path):
    assert not rooms(path) & (ABOVE | {"*", "algorithms", "rules"})


@pytest.mark.parametrize("name", VOCABULARY)
def test_the_vocabulary_knows_nothing_above_it(name):
    assert reached(SOURCE / f"{name}.py") <= set(VOCABULARY)


@pytest.mark.parametrize("path", sorted((SOURCE / "kernels").glob("*.py")), ids=lambda path: path.name)
def test_kernels_know_arrays_only(path):
    assert rooms(path) <= {"arrays", "kernels"}


def test_the_verbs_know_no_method():
    assert not rooms(SOURCE / "network.py") & (ABOVE | {"*", "algorithms", "rules", "conditions"})


@pytest.mark.parametrize("path", sorted((SOURCE / "topologies").glob("*.py")), ids=lambda path: path.name)
def test_topologies_are_made_before_anything_runs(path):
    assert not reached(path) & (RUNNING | {"*", "algorithms", "network", "transports"})


@pytest.mark.parametrize("path", sorted((SOURCE / "problems").rglob("*.py")), ids=lambda path: path.name)
def test_problems_do_not_know_who_solves_them(path):
    assert not rooms(path) & (RUNNING | {"*", "algorithms", "rules", "network"})


@pytest.mark.parametrize("path", sorted((SOURCE / "report").glob("*.py")), ids=lambda path: path.name)
def test_reports_know_results_and_not_who_made_them(path):
    assert rooms(path) <= {*VOCABULARY, "report", "result", "runs"}


def test_the_top_level_holds_what_users_type_and_its_vocabulary():
    assert {path.stem for path in SOURCE.glob("*.py")} == TOP
    assert {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()} == PACKAGES


def test_the_guard_sees_imports_of_every_kind(tmp_path):
    path = tmp_path / "sample.py"
    path.write_text(
        "import d3gd.engine\nfrom d3gd import metrics\ndef f():\n    from d3gd.runs import files\nimport d3gd\n"
    )
    assert rooms(path) == {"engine", "metrics", "runs", "*"}


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
