"""The worked example: folders that load, with data of their own."""

import importlib.util

import numpy as np
import pytest

from d3gd.sites.settings import load
from tests.helpers.launching import ROOT

NAMES = ["bergen", "oslo", "stavanger", "tromso"]


@pytest.mark.parametrize("hosts", [False, True])
def test_every_site_gets_a_folder_with_its_own_data(hosts, tmp_path):
    spec = importlib.util.spec_from_file_location("sites_example", ROOT / "examples/sites/run.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    folders = example.prepare(tmp_path / "sites", hosts=hosts)
    assert [folder.name for folder in folders] == NAMES
    sizes = []
    for agent, folder in enumerate(folders):
        plan = load(folder / "site.toml")
        assert plan.settings.bind.startswith("tcp://*:7001" if hosts else "tcp://127.0.0.1:731")
        problem = plan.problem(np.array([agent]), 4)
        assert (problem.agents, problem.dim) == (1, 650)
        assert problem.accuracies(np.zeros((1, 650))) is not None
        sizes.append(len(np.unique(problem.y)))
    assert min(sizes) < 10  # classes: sites do not have all of them
    compose = (ROOT / "examples/sites/compose.yml").read_text()
    assert all(f"sites/{name}:/site" in compose for name in NAMES)
