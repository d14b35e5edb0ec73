"""The guide for PyTorch: every change of the tutorial gives a script that trains, and every snippet runs."""

import copy
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

import d3gd
from d3gd.transports.threads import on_threads
from tests.helpers.launching import ROOT

TUTORIAL = (ROOT / "docs/tutorial/pytorch.md").read_text(encoding="utf-8")
PAGES = ("optimizers", "checkpoints", "torch", "evaluating", "communication")


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def changed(script, change):
    """A script after a change, whose parts each fit it in one place."""
    for part in change.split("@@\n"):
        lines = part.splitlines(keepends=True)
        before, after = ("".join(line[1:] for line in lines if line[0] != sign) for sign in "+-")
        assert script.count(before) == 1, part
        script = script.replace(before, after)
    return script


def scripts():
    """The script of the tutorial, and what each of its changes makes of it."""
    made = blocks(TUTORIAL, "python")
    for change in blocks(TUTORIAL, "diff"):
        made.append(changed(made[-1], change))
    return made


SCRIPTS = scripts()


def test_each_change_has_a_heading_of_its_own():
    numbered = re.findall(r"^## (\d)\. .*\n(?:(?!## ).*\n)*?```diff$", TUTORIAL, re.MULTILINE)
    assert numbered == [str(i) for i in range(1, len(SCRIPTS))]


@pytest.mark.parametrize("changes", range(len(SCRIPTS)))
def test_the_script_trains_after_every_change(changes, tmp_path, monkeypatch, capsys):
    """On threads; the last of them is an example, which test_examples starts with torchrun."""
    monkeypatch.setattr("sys.argv", ["train.py", "--epochs", "1", "--folder", str(tmp_path)])
    script = {"__name__": "page"}
    exec(compile(SCRIPTS[changes], "train.py", "exec"), script)
    if changes:
        on_threads(2, script["main"])
    else:
        script["main"]()
    agents = [f"agent {agent}: " for agent in range(2)] if changes else [""]
    assert sorted(re.findall(r"(.*?)test accuracy 0\.\d{3}", capsys.readouterr().out)) == agents
    files = ["agent_0_of_2.pt", "agent_1_of_2.pt"] if changes else ["model.pt"]
    assert sorted(path.name for path in tmp_path.iterdir()) == files


def test_the_last_script_is_the_example():
    example = (ROOT / "examples/optimizer_loop.py").read_text(encoding="utf-8")
    assert example.split('"""', 2)[2].lstrip() == SCRIPTS[-1]


SNIPPETS = [
    pytest.param(code, id=f"{page}-{i}")
    for page in PAGES
    for i, code in enumerate(blocks((ROOT / f"docs/howto/{page}.md").read_text(encoding="utf-8"), "py"))
]


@pytest.fixture
def loop():
    """What the tutorial has made before its loop, in one process."""
    transport, graph = d3gd.transports.connect(), d3gd.graphs.exponential(1)
    network = d3gd.torch.network(graph, transport=transport)
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 2))
    algorithm = d3gd.PerronD3GD(step_size=0.1)
    opt = d3gd.torch.DecentralizedOptimizer(model.parameters(), algorithm=algorithm, network=network)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(opt, gamma=0.9)
    inputs, target = torch.randn(12, 4), torch.arange(12) % 2
    data = TensorDataset(inputs, target)
    loader = DataLoader(data, batch_size=3)
    imported = {"d3gd": d3gd, "torch": torch, "np": np, "Path": Path, "copy": copy, "DataLoader": DataLoader}
    made = {"transport": transport, "graph": graph, "network": network, "model": model, "algorithm": algorithm}
    made |= {"opt": opt, "scheduler": scheduler, "data": data, "loader": loader, "inputs": inputs, "target": target}
    return imported | made | {"loss": cross_entropy, "cross_entropy": cross_entropy, "steps": 4, "epochs": 2}


@pytest.mark.parametrize("code", SNIPPETS)
def test_a_snippet_runs_and_leaves_a_model_that_trains(code, loop, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    loop["checkpoint"] = tmp_path / "agent_0_of_1.pt"
    exec(compile(code, "page", "exec"), loop)
    model, opt = loop["model"].train(), loop["opt"]
    before = opt.iteration
    for inputs, target in loop["loader"]:
        opt.zero_grad()
        cross_entropy(model(inputs), target).backward()
        opt.step()
    assert opt.iteration == before + len(loop["loader"])
    assert opt.status == "running"
