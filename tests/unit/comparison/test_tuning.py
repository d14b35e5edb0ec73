"""How a comparison chooses step sizes."""

import math

import pytest

from d3gd.comparison.compare import TUNING
from d3gd.comparison.tuning import QUICK, USUAL, Grid, grid_of, tune
from d3gd.errors import SettingsError
from tests.helpers.comparing import compared, run


def tuned(value, grid, *, lost=lambda step: False):
    tried = []

    def made(keys, what):
        tried.extend(step for _, step, _ in keys)
        return {key: run(*key, level=value(key[1]), status="diverged" if lost(key[1]) else "completed") for key in keys}

    return tune(["a"], made, seeds=[0, 1], grid=grid, metric="stationarity")["a"], sorted(set(tried))


@pytest.mark.parametrize("best", [1e-4, 0.01, 0.215, 10.0, 1000.0])
def test_the_grid_grows_until_the_best_step_is_inside(best):
    found, tried = tuned(lambda step: 1e-3 + min(0.9, abs(math.log(step / best)) / 100), USUAL)
    assert found.step == best
    assert not found.at_the_edge
    assert min(tried) < best < max(tried)
    assert set(USUAL.start) <= set(tried)


@pytest.mark.parametrize("bad", [{"status": "diverged"}, {"level": 0.8}])
def test_a_step_that_fails_on_one_seed_is_not_chosen(bad):
    def made(keys, what):
        level = {0.1: 0.5, 1.0: 0.001, 2.0: 0.9}
        return {
            (m, step, seed): run(m, step, seed, **({"level": level[step]} | (bad if (step, seed) == (1.0, 3) else {})))
            for m, step, seed in keys
        }

    found = tune(["a"], made, seeds=[1, 2, 3], grid=grid_of([0.1, 1.0, 2.0]), metric="stationarity")["a"]
    assert (found.step, found.at_the_edge) == (0.1, True)


def test_divergence_everywhere_is_found_out_and_ends_at_the_least_step():
    found, tried = tuned(lambda step: 0.5, QUICK, lost=lambda step: True)
    assert found.diverged
    assert found.step == min(tried) == min(QUICK.steps)
    assert max(tried) == max(QUICK.start)


def test_a_users_grid_does_not_grow():
    found, tried = tuned(lambda step: 1 / (2 + step), grid_of([1, 0.1, 0.5]))
    assert (found.step, found.at_the_edge, tried) == (1.0, True, [0.1, 0.5, 1.0])
    assert grid_of([0.3]) == Grid((0.3,), 0, 0)


@pytest.mark.parametrize("steps", [[], [0.0], [-1.0], [math.nan], ["large"], 0.1])
def test_steps_are_positive_numbers(steps):
    with pytest.raises(SettingsError, match="positive numbers"):
        compared(steps=steps)


def test_the_tuned_step_is_the_best_of_the_grid_where_the_answer_is_known():
    # Gradient descent shrinks the gradient by |1 - gamma|: 0.8 beats 1.6 and 0.5, and 3 diverges.
    found = compared(only=["Centralized"], steps=[0.1, 0.5, 0.8, 1.6, 3.0], iterations=10)
    best = found.row("Centralized")
    assert best.step == 0.8
    start = [float(run.curves["stationarity"][0]) for run in found.runs["Centralized"]]
    assert best.values == pytest.approx([0.2**20 * value for value in start], rel=1e-6)


def test_seeds_of_tuning_and_reporting_are_apart():
    found = compared()
    assert found.seeds == (0, 1)
    assert found.tuning_seeds[0] == TUNING
