"""The limit of quasi-global Adam: near a stationary point, the nearer the longer scales are averaged."""

import numpy as np
import pytest

import d3gd

GRAPH = d3gd.graphs.erdos_renyi(8, 0.3, seed=1)
PROBLEM = d3gd.problems.quadratic(agents=8, dim=3, seed=1)


def distance(method, iterations):
    return abs(d3gd.run(method, GRAPH, PROBLEM, iterations=iterations, metrics=[]).x - PROBLEM.optimum).max()


def test_its_limit_is_at_a_distance_of_the_order_of_one_minus_beta():
    far, near = (distance(d3gd.QGAdam(step_size=0.02, second=second), 4000) for second in (0.96, 0.99))
    own = distance(d3gd.Local(method=d3gd.PerronD3GD(step_size=0.02), optimizer=d3gd.AdamW(weight_decay=0)), 4000)
    assert 3 < far / near < 5
    assert near < 0.03 * own


def test_agents_agree_at_rest():
    result = d3gd.run(d3gd.QGAdam(step_size=0.02, second=0.9), GRAPH, PROBLEM, iterations=2000, metrics=[])
    np.testing.assert_allclose(result.x, np.tile(result.x[0], (8, 1)), rtol=0, atol=1e-10)


def test_it_takes_no_local_steps():
    with pytest.raises(d3gd.errors.SettingsError, match="says nothing of where its agents head"):
        d3gd.Local(method=d3gd.QGAdam(step_size=0.01), every=2)
