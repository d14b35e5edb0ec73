"""The limit of quasi-global Adam: near a stationary point, the nearer the longer scales are averaged."""

import numpy as np
import pytest

import d3gd
from d3gd.rules.gain import gain_under

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


def test_local_steps_make_a_direction_of_every_gradient():
    """Local steps along scaled gradients, weight decay and the momentum, then one exchange along all of them."""
    method = d3gd.QGAdam(step_size=0.02, second=0.9, weight_decay=0.1)
    local = d3gd.Local(method=method, every=3, steered=False)
    result = d3gd.run(local, GRAPH, PROBLEM, iterations=6, metrics=[])
    A, (gamma, mu, b) = result.weights.toarray(), (method.step_size, method.momentum, method.second)
    factor = 1 / (8 * d3gd.weights.perron(result.weights)[:, None])
    gain = gain_under(result.weights, mu)
    x, v, q, r = (np.zeros((8, 3)) for _ in range(4))
    for k in range(6):
        y = x
        for h in range(3):
            g = factor * PROBLEM.gradients(y)
            r = np.sqrt(b * r**2 + (1 - b) * g**2)
            scaled = g / (r / np.sqrt(1 - b ** (3 * k + h + 1)) + method.eps)
            y = y - gamma * ((1 - mu) * (scaled + 0.1 * x) + mu * q)
        m = y - 3 * gamma * v
        before, x, r = x, A @ m, A @ r
        v = v + gain.at(k) / (3 * gamma) * (m - x)
        q = (q + (before - x) / (3 * gamma)) / 2
    np.testing.assert_allclose(result.x, x, rtol=0, atol=1e-12)


@pytest.mark.parametrize("compress", [None, "int8"])
def test_one_local_step_per_exchange_is_the_method_itself(compress):
    method = d3gd.QGAdam(step_size=0.02)
    pair = [method, d3gd.Local(method=method, steered=False)]
    if compress:
        pair = [d3gd.Compressed(method=each, compress=compress) for each in pair]
    own, local = (d3gd.run(each, GRAPH, PROBLEM, iterations=20, metrics=[]).x for each in pair)
    assert np.array_equal(own, local)


@pytest.mark.parametrize("compress", ["int8", "int4", "bf16"])
def test_compressed_scales_keep_the_limit(compress):
    """Squares of the scales would vanish beside the largest of them, and their agents take endless steps."""
    problem = d3gd.problems.quadratic(agents=8, dim=40, seed=1, conditioning=100)
    method = d3gd.QGAdam(step_size=0.02, second=0.9)
    ends = [
        d3gd.run(each, GRAPH, problem, iterations=4000, metrics=[]).x
        for each in (method, d3gd.Compressed(method=method, compress=compress))
    ]
    np.testing.assert_allclose(*ends, rtol=0, atol=1e-10)


def test_scales_travel_as_often_as_asked():
    method = d3gd.QGAdam(step_size=0.02, scales_every=3, perron="known")
    sent = d3gd.run(method, GRAPH, PROBLEM, iterations=6, every=1, metrics=["bytes"]).metrics["bytes"]
    models = GRAPH.link_count * 3 * 8
    assert np.diff(sent).tolist() == [2 * models, models, models] * 2


def test_it_takes_no_optimizer():
    with pytest.raises(d3gd.errors.SettingsError, match="makes directions of gradients itself"):
        d3gd.Local(method=d3gd.QGAdam(step_size=0.01), optimizer=d3gd.Momentum())
