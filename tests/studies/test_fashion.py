"""The study on Fashion-MNIST: its methods and its sentences."""

import csv
from dataclasses import asdict

import numpy as np
import pytest

import d3gd

pytest.importorskip("torch")

import torch

from studies.fashion.__main__ import reported
from studies.fashion.plan import (
    AGENTS,
    CELLS,
    CENTRAL,
    CENTRAL_ADAM,
    EPOCH,
    EPOCHS,
    FEW,
    FEW_ADAM,
    HALF_ADAM,
    METHODS,
    MOMENTUM,
    QG_ADAM,
    STEPS,
    TUNING_EPOCHS,
    Trial,
)
from studies.fashion.report import lines, read, tuned, written


def run(method, step=0.1, end=0.5, *, status="completed", seed=0, sent=1e6, graph="directed"):
    curve = np.linspace(0.1, end, EPOCHS + 1).tolist()
    trial = Trial(method, graph, 0.1, step, seed, EPOCHS, "test")
    curves = dict.fromkeys(("accuracy", "accuracy_worst", "accuracy_of_mean"), curve)
    return {"trial": asdict(trial), "status": status, **curves, "bytes": np.linspace(0, sent, EPOCHS + 1).tolist()}


def test_all_data_in_one_place_is_gradient_descent_with_momentum_on_the_mean():
    problem = d3gd.problems.quadratic(agents=AGENTS, dim=3)
    found = d3gd.run(METHODS[CENTRAL].make(0.05), d3gd.graphs.complete(AGENTS), problem, iterations=30).x
    x, m = np.zeros((AGENTS, 3)), 0.0
    for k in range(30):
        m = 0.9 * m + problem.gradients(x, k).mean(axis=0)
        x = x - 0.05 * m
    np.testing.assert_allclose(found, x, atol=1e-12)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_takes_as_many_gradients_per_epoch(name):
    method, problem = METHODS[name], d3gd.problems.quadratic(agents=AGENTS, dim=3)
    result = d3gd.run(
        *(method.make(0.01), d3gd.graphs.complete(AGENTS), problem),
        iterations=EPOCH // method.every,
        metrics=["gradients"],
    )
    assert result.metrics["gradients"][-1] == EPOCH


def test_the_step_with_the_best_accuracy_is_taken_and_divergence_never():
    trials = [run("SGP", 0.1, 0.6), run("SGP", 0.2, 0.7), run("SGP", 0.5, 0.9, status="diverged")]
    assert tuned(trials) == {"SGP": 0.2}
    assert tuned([*trials, run("SGP", 0.1, 0.6, seed=1), run("SGP", 0.2, 0.5, seed=1)]) == {
        "SGP": 0.1
    }  # the worse seed


def test_all_data_in_one_place_with_adam_is_adam_on_the_mean():
    problem = d3gd.problems.quadratic(agents=AGENTS, dim=3)
    found = d3gd.run(METHODS[CENTRAL_ADAM].make(0.05), d3gd.graphs.complete(AGENTS), problem, iterations=30).x
    x = torch.zeros(3, dtype=torch.float64)
    adam = torch.optim.Adam([x], lr=0.05)
    for k in range(30):
        x.grad = torch.tensor(problem.gradients(np.tile(x.detach().numpy(), (AGENTS, 1)), k).mean(axis=0))
        adam.step()
    np.testing.assert_allclose(found, np.tile(x.numpy(), (AGENTS, 1)), atol=1e-12)


def test_the_page_says_what_is_met_and_which_step_is_at_an_end_of_the_grid():
    ends = {CENTRAL: 0.9, CENTRAL_ADAM: 0.9, MOMENTUM: 0.893, QG_ADAM: 0.888, FEW: 0.85, FEW_ADAM: 0.89, HALF_ADAM: 0.8}
    steps = {name: STEPS[0] if name == MOMENTUM else 0.1 for name in ends}
    runs = [run(name, steps[name], ends[name], sent=1e6 if "int" in name else 3e7) for name in ends]
    page = written(runs, runs)
    assert f"At an end of the grid: {MOMENTUM}." in page
    assert "0.7 points behind all data in one place at epochs 3 to 6 (target: 1, met)" in page
    assert "1.2 points behind all data in one place, Adam at epochs 3 to 6 (target: 1, not met)" in page
    assert "ends 5.0 points behind all data in one place (target: 2, not met), with 1/30 of the bytes" in page
    assert f"{FEW_ADAM}, ends 1.0 points behind all data in one place, Adam (target: 2, met)" in page


def test_what_no_graph_restricts_is_trained_once_and_stands_in_both_tables():
    steps = {CENTRAL: 0.1, CENTRAL_ADAM: 0.1, MOMENTUM: 0.1, QG_ADAM: 0.1, FEW: 0.1, FEW_ADAM: 0.1, HALF_ADAM: 0.1}
    trials = reported(steps, CELLS[::2], seeds=1)  # both graphs at one skew
    assert [len([t for t in trials if t.graph == graph]) for graph, _ in CELLS[::2]] == [7, 5]
    page = written(*[[run(t.method, graph=t.graph, end=0.9 if t.method == CENTRAL else 0.8) for t in trials]] * 2)
    assert page.count("| all data in one place | 0.1 | 90.0 (90.0-90.0)") == 2


def test_other_tools_can_read_all_runs():
    table = list(csv.DictReader(lines([run("SGP", end=0.8), run("SGP", seed=1, status="diverged")]).splitlines()))
    assert len(table) == 2 * (EPOCHS + 1)
    assert table[EPOCHS]["epoch"] == str(EPOCHS)
    assert float(table[EPOCHS]["accuracy"]) == 0.8
    assert [row["status"] for row in table[:: EPOCHS + 1]] == ["completed", "diverged"]


def test_a_run_in_the_table_of_runs_need_not_be_repeated():
    tuning = run("SGP", seed=100)
    tuning |= {name: tuning[name][:: len(tuning[name]) - 1] for name in tuning if name not in ("trial", "status")}
    tuning["trial"] |= {"on": "validation", "epochs": TUNING_EPOCHS}
    runs = [run("SGP", end=0.8), tuning, run("SGP", seed=1, status="diverged")]
    assert read(lines(runs)) == runs
