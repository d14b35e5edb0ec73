"""Momentum and AdamW at every agent: exactness, bias, and what does not fit."""

import numpy as np
import pytest

import d3gd
from d3gd.errors import SettingsError
from tests.helpers.own_methods import LocalSteps

GRAPH = d3gd.Digraph.from_edges(5, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 2), (1, 4)])
OPTIMIZERS = [
    d3gd.Momentum(momentum=0.7),
    d3gd.Momentum(momentum=0.7, nesterov=True),
    d3gd.AdamW(weight_decay=0.0, eps=0.1),
]


def problem(spread=1.0):
    """Quadratics with optima of their own, or with a common one."""
    draw = np.random.default_rng(0)
    optima = spread * draw.normal(size=(GRAPH.n, 3)) ** 3  # skewed, so that medians are not means

    made = d3gd.problems.from_functions(agents=GRAPH.n, dim=3, gradient=lambda i, x: x - optima[i])
    return made, optima.mean(axis=0)


@pytest.mark.parametrize("optimizer", OPTIMIZERS[:2], ids=str)
@pytest.mark.parametrize("method", [d3gd.PerronD3GD, d3gd.FROST])
def test_with_momentum_an_exact_method_stays_exact(method, optimizer):
    quadratics, optimum = problem()
    local = d3gd.Local(method=method(step_size=0.02), optimizer=optimizer)
    assert local.exact
    result = d3gd.run(local, GRAPH, quadratics, iterations=3000, metrics=[])
    np.testing.assert_allclose(result.x, np.tile(optimum, (GRAPH.n, 1)), rtol=0, atol=1e-9)


def test_adamw_ends_where_directions_sum_to_zero_not_gradients():
    adamw = d3gd.AdamW(betas=(0.9, 0.99), weight_decay=0.0, eps=0.1)
    local = d3gd.Local(method=d3gd.PerronD3GD(step_size=0.005), optimizer=adamw)
    assert not local.exact
    quadratics, optimum = problem()
    result = d3gd.run(local, GRAPH, quadratics, iterations=6000, metrics=[])
    assert np.abs(result.x - result.x[0]).max() < 1e-6
    g = quadratics.gradients(result.x)
    assert abs(g.mean(axis=0)).max() > 0.1
    np.testing.assert_allclose((g / (abs(g) + adamw.eps)).mean(axis=0), 0, atol=1e-9)
    same, optimum = problem(spread=0.0)
    result = d3gd.run(local, GRAPH, same, iterations=6000, x0=np.ones(3), metrics=[])
    np.testing.assert_allclose(result.x, np.tile(optimum, (GRAPH.n, 1)), rtol=0, atol=1e-6)


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=str)
def test_it_is_a_method_like_any_other(optimizer, tmp_path):
    local = d3gd.Local(method=d3gd.PerronD3GD(step_size=0.02), optimizer=optimizer)
    assert d3gd.check_method(local, show=False).passed
    quadratics = d3gd.problems.quadratic(agents=GRAPH.n, dim=3)
    whole = d3gd.run(local, GRAPH, quadratics, iterations=20)
    d3gd.run(local, GRAPH, quadratics, iterations=9, out=tmp_path / "run")
    resumed = d3gd.run(local, GRAPH, quadratics, iterations=20, out=tmp_path / "run", resume=True)
    assert np.array_equal(whole.x, resumed.x)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: d3gd.Local(method=None, optimizer=d3gd.Momentum()), "method is NoneType"),
        (lambda: d3gd.Local(method=d3gd.DGD(step_size=0.1), optimizer="adam"), "optimizer is str"),
        (lambda: d3gd.Momentum(momentum=1.0), "momentum = 1"),
        (lambda: d3gd.Momentum(weight_decay=-0.1), "weight_decay = -0.1"),
        (lambda: d3gd.AdamW(betas=0.9), "betas = 0.9"),
        (lambda: d3gd.AdamW(betas=(0.9, 1.0)), "betas = 1"),
        (lambda: d3gd.AdamW(eps=0.0), "eps = 0"),
    ],
)
def test_mistakes_are_told(make, message):
    with pytest.raises(SettingsError, match=message):
        make()


def test_methods_with_gradients_elsewhere_are_refused():
    local = d3gd.Local(method=LocalSteps(0.1, 2), optimizer=d3gd.Momentum())
    with pytest.raises(SettingsError, match="a local optimizer has no direction"):
        d3gd.run(local, GRAPH, problem()[0], iterations=3)
