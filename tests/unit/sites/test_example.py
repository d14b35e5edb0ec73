"""The worked example: folders that load, with data of their own."""

import importlib.util
import shlex
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pytest
import typer

from d3gd.cli import app
from d3gd.sites.settings import load
from tests.helpers.launching import ROOT

EXAMPLE = ROOT / "examples/sites"
NAMES = ["bergen", "oslo", "stavanger", "tromso"]


@pytest.fixture
def example():
    spec = importlib.util.spec_from_file_location("sites_example", EXAMPLE / "run.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.mark.parametrize("hosts", [False, True])
def test_every_site_gets_a_folder_with_its_own_data(hosts, example, tmp_path):
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


def test_a_second_run_in_the_same_folder_says_what_to_do(example, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["run.py", "--prepare"])
    monkeypatch.chdir(tmp_path)
    example.main()
    with pytest.raises(SystemExit, match="2"):
        example.main()
    printed = capsys.readouterr().err
    assert "[--out OUT]" in printed
    assert "error: sites is not empty; choose a new folder" in printed


def test_the_containers_run_commands_that_are_there_on_folders_that_are_there(example, tmp_path):
    """No engine runs here: what the file names is compared with what the example writes."""
    services = pytest.importorskip("yaml").safe_load((EXAMPLE / "compose.yml").read_text())["services"]
    assert sorted(services) == NAMES
    out = ROOT / "sites"  # where the commands in its first lines write, from the repository's folder
    assert example.arguments().parse_args(["--prepare", "--hosts"]).out == Path("sites")
    folders = {folder.name: folder for folder in example.prepare(tmp_path / "sites", hosts=True)}
    for name, service in services.items():
        assert set(service) == {"image", "command", "restart", "user", "volumes"}
        ((here, there),) = [volume.split(":") for volume in service["volumes"]]
        assert (EXAMPLE / here).resolve() == out / name
        program, *words = shlex.split(service["command"])
        assert program in entry_points(group="console_scripts").names
        assert words == ["site", "run", f"{there}/site.toml", "--resume"]
        command = typer.main.get_command(app).commands["site"].commands["run"]
        assert command.make_context("run", words[2:]).params["resume"]
        # Inside, only the service's own folder is there, and other services are known by their names.
        plan = load(folders[name] / "site.toml")
        assert plan.settings.bind == "tcp://*:7001"
        assert {contact.address for contact in plan.neighbours.contacts()} <= {
            None,
            *(f"tcp://{other}:7001" for other in services),
        }
        for needed in (plan.settings.key, plan.parts["problem"]["file"], plan.parts["problem"]["test"]):
            assert (folders[name] / needed).is_file()
