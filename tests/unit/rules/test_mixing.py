"""Weights for mixing under momentum and compression: no balance is lost, and differences decay faster."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import d3gd
from d3gd.errors import SettingsError
from d3gd.rules.gain import decay, fastest, gain_under
from d3gd.rules.mixing import mixing_weights
from d3gd.spectrum import modes, perron
from d3gd.steady.fast import fast_weights
from tests.helpers.strategies import digraphs, examples

TORUS, STAR = d3gd.graphs.grid(4, 4, torus=True), d3gd.graphs.star(10)


@examples(20)
@given(
    graph=digraphs(min_n=2, max_n=8),
    momentum=st.floats(0.1, 0.9),
    most=st.sampled_from([0.0, 0.02, 1.0]),
    damping=st.sampled_from([0.2, 1.0]),
)
def test_lazier_weights_have_the_same_shares_and_let_no_mode_decay_more_slowly(graph, momentum, most, damping):
    plain, lazier = (graph.matrix(a) for a in (fast_weights(graph), mixing_weights(graph, momentum, most, damping)))
    assert np.allclose(lazier.sum(axis=1), 1)
    assert np.allclose(perron(lazier), perron(plain))

    def slowest(A):
        mu = 1 - damping * (1 - modes(A))
        return decay(mu, fastest(mu, momentum, most) if most else 0.0, momentum).max()

    assert slowest(lazier) <= slowest(plain) + 1e-3 * abs(1 - slowest(plain)) + 1e-9  # equally good ones are lazy last


@pytest.mark.parametrize("graph", [TORUS, STAR], ids=["torus", "star"])
def test_without_momentum_they_are_those_planned_for_mixing(graph):
    assert np.array_equal(mixing_weights(graph, 0.0, 1.0), fast_weights(graph))


@pytest.mark.parametrize("graph", [TORUS, STAR], ids=["torus", "star"])
def test_where_modes_alternate_agents_agree_three_times_as_fast(graph):
    """In a run without gradients, from random models."""

    def rate(A):
        start = np.random.default_rng(0).normal(size=(graph.n, 1))
        still = d3gd.problems.from_functions(agents=graph.n, dim=1, gradient=lambda i, x: 0 * x)
        method = d3gd.PerronD3GD(step_size=0.1, momentum=0.9, rule="mixing" if A is None else "fixed")
        found = d3gd.run(method, graph, still, weights=A, iterations=120, x0=start, metrics=["disagreement"], every=120)
        first, last = found.metrics["disagreement"]
        return np.log(first / last)

    assert rate(None) > 3 * rate(d3gd.topologies.fast_mixing(graph))


@pytest.mark.parametrize(("momentum", "compress"), [(0.9, "int4"), (0.9, "topk:0.5"), (0.5, "topk:0.1")], ids=str)
def test_momentum_and_compression_together_are_exact(momentum, compress):
    graph, quadratic = d3gd.graphs.exponential(8), d3gd.problems.quadratic(agents=8, dim=40)
    method = d3gd.Compressed(method=d3gd.PerronD3GD(step_size=0.05, momentum=momentum), compress=compress)
    result = d3gd.run(method, graph, quadratic, iterations=3000)
    np.testing.assert_allclose(result.x, np.tile(quadratic.optimum, (8, 1)), atol=1e-9)


def test_momentum_that_lagging_copies_would_carry_away_is_refused():
    graph, quadratic = d3gd.graphs.exponential(8), d3gd.problems.quadratic(agents=8, dim=40)
    for method in (d3gd.PerronD3GD(step_size=0.05, momentum=0.9), d3gd.QGAdam(step_size=0.01)):
        with pytest.raises(SettingsError, match=r"is unstable with messages that are damped by 0\.1"):
            d3gd.run(d3gd.Compressed(method=method, compress="topk:0.1"), graph, quadratic, iterations=1)


def test_on_large_networks_the_modes_under_momentum_are_known(monkeypatch):
    """Their circle is unstable under momentum, whatever the gain."""
    monkeypatch.setattr("d3gd.rules.gain._MODES_UP_TO", 10)
    A = d3gd.topologies.fast_mixing(d3gd.graphs.erdos_renyi(40, 0.2, seed=1))
    found = gain_under(A, 0.9)
    assert found.first > 0.05
    assert decay(modes(A), found.first, 0.9).max() < 0.99
