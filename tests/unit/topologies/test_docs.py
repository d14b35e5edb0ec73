"""The page on topologies keeps its word."""

import re
from pathlib import Path

import numpy as np
import pytest

import d3gd
from d3gd.config.experiment import load

PAGE = (Path(__file__).parents[3] / "docs/howto/topologies.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)


def test_its_code_runs_and_the_files_it_writes_are_the_network_of_its_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for code in blocks("python"):
        exec(compile(code, "topologies.md", "exec"), {"__name__": "page"})
    experiment = tmp_path / "experiment.toml"
    rest = '[problem]\nkind = "digits_classification"\n[algorithm]\nkind = "DiDGD"\nstep_size = 0.1\n'
    experiment.write_text(f"iterations = 5\n{blocks('toml')[-1]}{rest}")
    graph, weights = load(experiment).network()
    problem = d3gd.problems.digits_classification(agents=12, seed=0)
    learned = d3gd.topologies.stl_fw(problem.class_proportions(), budget=3)
    assert np.array_equal(graph.edges, learned.graph.edges)
    assert np.array_equal(weights.toarray(), learned.weights.toarray())
