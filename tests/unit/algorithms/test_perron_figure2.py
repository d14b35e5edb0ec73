"""Figure 2: four agents with A as the outlier; its link to B should lose weight to D's."""

from functools import cache

import numpy as np
import pytest

import d3gd
from d3gd.reproduce import figure2

GRAPH = figure2.network()
METHODS = {
    "Di-DGD": d3gd.DiDGD(step_size=0.1),
    "planned": d3gd.PerronD3GD(step_size=0.1, rule="planned", combine="before", correct=False),
    "default": d3gd.PerronD3GD(step_size=0.1),
}


@cache
def results():
    """For every method and seed the final weights and disagreement."""
    found = {}
    for seed in range(10):
        problem = d3gd.problems.sigmoid_classification(agents=4, alpha=figure2.ALPHA, seed=seed, test_samples=0)
        for name, algorithm in METHODS.items():
            result = d3gd.run(
                algorithm, GRAPH, problem, iterations=1000, every=1000, metrics=["disagreement"], progress=False
            )
            found[name, seed] = result.weights, result.metrics["disagreement"][-1]
    return found


def changes(name, edge):
    source, target = (figure2.LABELS.index(agent) for agent in edge)
    before = d3gd.weights.metropolis(GRAPH)[target, source]
    return np.array([results()[name, seed][0][target, source] - before for seed in range(10)])


def test_the_outlier_s_link_falls_and_the_other_rises():
    falls, rises = changes("planned", "AB"), changes("planned", "DB")
    assert np.median(falls) < -0.1
    assert np.median(rises) > 0.1
    assert np.count_nonzero(falls < 0) >= 8
    assert np.count_nonzero(rises > 0) >= 8


@pytest.mark.parametrize("name", ["planned", "default"])
def test_disagreement_is_at_least_four_times_below_di_dgd_s(name):
    ratios = np.array([results()["Di-DGD", seed][1] / results()[name, seed][1] for seed in range(10)])
    assert np.median(ratios) >= 4
    assert np.count_nonzero(ratios >= 4) >= 8
