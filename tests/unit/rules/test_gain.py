"""The gain of a correction: where it becomes unstable, and how much noise passes."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.linalg import solve_discrete_lyapunov

import d3gd
from d3gd.rules.gain import Gain, bound, gain_under, passed
from d3gd.spectrum import modes
from tests.battery.textbook.perron import gains
from tests.helpers.stepping import network
from tests.helpers.strategies import digraphs, examples, row_stochastic

in_the_disc = st.builds(
    lambda radius, angle: np.array([radius * np.exp(1j * angle)]), st.floats(0, 0.999), st.floats(0, 2 * np.pi)
)


def matrix(mu, beta):
    """What an iteration does to a mode of models and corrections."""
    return np.array([[mu, -mu], [beta * (1 - mu), 1 - beta * (1 - mu)]])


@given(mu=in_the_disc, share=st.floats(0.001, 3.0))
def test_a_mode_is_stable_exactly_below_its_bound(mu, share):
    assume(abs(share - 1) > 1e-3)
    beta = share * bound(mu)[0]
    M = matrix(mu[0], beta)
    roots = np.roots([1, -(1 + mu[0] - beta * (1 - mu[0])), mu[0]])
    assert np.poly(M) == pytest.approx(np.poly(roots))  # the polynomial of the docstring is that of the recurrence
    assert (np.abs(roots).max() < 1) == (share < 1)


@given(mu=st.floats(-0.999, 0.999))
def test_for_real_modes_the_bound_has_a_closed_form(mu):
    assert bound(np.array([mu + 0j]))[0] == pytest.approx(2 * (1 + mu) / (1 - mu))


@given(mu=in_the_disc, share=st.floats(0.01, 0.95))
def test_what_passes_is_the_covariance_of_a_mode_under_white_noise(mu, share):
    beta = share * bound(mu)[0]
    M = matrix(mu[0], beta)
    covariance = solve_discrete_lyapunov(M, np.outer(M[:, 0], M[:, 0].conj()), method="direct")
    assert passed(mu, beta)[0] == pytest.approx(covariance[0, 0].real, rel=1e-5)


@given(mu=st.floats(-0.99, 0.99).filter(lambda mu: abs(mu) > 1e-3), share=st.floats(0.01, 0.95))
def test_for_real_modes_what_passes_has_a_closed_form(mu, share):
    beta = share * 2 * (1 + mu) / (1 - mu)
    alone = mu**2 / (1 - mu**2)  # without a correction
    expected = alone / (1 - beta * (1 - mu) / (2 * (1 + mu)))
    assert passed(np.array([mu + 0j]), beta)[0] == pytest.approx(expected, rel=1e-6)


def test_what_passes_is_seen_in_a_long_simulation():
    mu, beta = np.array([0.5 + 0.3j, -0.4 + 0j, 0.8 + 0j]), 0.2
    rng = np.random.default_rng(0)
    x, u, total = np.zeros(3, dtype=complex), np.zeros(3, dtype=complex), np.zeros(3)
    for eta in rng.normal(size=(200_000, 1)):
        message = x - u - eta
        x, u = mu * message, u + beta * (1 - mu) * message
        total += np.abs(x) ** 2
    # Samples are correlated over about 1 / beta iterations, so that 40,000 are as good as independent.
    assert total / 200_000 == pytest.approx(passed(mu, beta), rel=0.03)


@examples(40)
@given(graph=digraphs(min_n=2, max_n=10), data=st.data())
def test_gains_are_positive_stable_for_all_modes_and_as_defined(graph, data):
    A = data.draw(row_stochastic(graph))
    gain = gain_under(A)
    assert 0 < gain.last <= gain.first <= 1
    limit = float(bound(modes(A)).min())
    assert gain.first <= 0.8 * limit * 1.005  # rounded to three digits
    assert np.allclose((gain.first, gain.last), gains(A.toarray()), rtol=0.011)  # both rounded


@examples(20)
@given(graph=digraphs(min_n=2, max_n=8), data=st.data(), momentum=st.floats(0.1, 0.9))
def test_under_momentum_gains_are_as_defined_too(graph, data, momentum):
    A = data.draw(row_stochastic(graph))
    assert np.allclose(gain_under(A, momentum), gains(A.toarray(), momentum), rtol=0.011)


@given(first=st.floats(0.01, 1), share=st.floats(0.01, 1), k=st.integers(0, 10**6))
def test_a_gain_falls_from_its_first_value_to_its_last(first, share, k):
    gain = Gain(first, share * first)
    assert gain.at(0) == pytest.approx(first)
    assert gain.at(k + 1) <= gain.at(k) * (1 + 1e-12)
    assert gain.at(10**9) == pytest.approx(gain.last, rel=1e-6)


def test_one_agent_needs_no_gain():
    assert gain_under(d3gd.weights.uniform(d3gd.graphs.ring(1))) == (0.0, 0.0)


@pytest.mark.parametrize("graph", [d3gd.graphs.grid(6, 7), d3gd.graphs.ring(41), d3gd.graphs.regular(60, 5)], ids=str)
def test_where_modes_are_not_computed_the_gain_is_safe_for_all_of_them(graph, monkeypatch):
    monkeypatch.setattr("d3gd.rules.gain._MODES_UP_TO", 40)
    A = d3gd.weights.metropolis(graph)
    assert 0 < gain_under(A).first <= 0.8 * float(bound(modes(A)).min()) * 1.005


def test_a_gap_is_computed_only_where_rounds_of_mixing_do_not_bound_it(monkeypatch):
    def refuse(A):
        raise AssertionError("minutes, for a large network")

    monkeypatch.setattr("d3gd.rules.gain.spectral_gap", refuse)
    A = d3gd.weights.metropolis(d3gd.graphs.regular(5000, 10))
    assert gain_under(A).first > 0
    slow = d3gd.graphs.ring(700)
    algorithm = d3gd.PerronD3GD(step_size=0.1, rule="fixed", correct=False)  # has no use for a gain
    net = network(algorithm, slow, d3gd.weights.metropolis(slow))
    assert algorithm.init(net, np.zeros((700, 1))).rule.gain == (0.0, 0.0)


@pytest.mark.parametrize(("momentum", "agents"), [(0.9, 4), (0.5, 7)])
@pytest.mark.parametrize("kind", [d3gd.PerronD3GD, d3gd.QGAdam])
def test_on_one_way_rings_momentum_is_refused_from_some_length_on(kind, momentum, agents):
    def run(n):
        problem = d3gd.problems.quadratic(agents=n, dim=2)
        d3gd.run(kind(step_size=0.01, momentum=momentum), d3gd.graphs.ring(n), problem, iterations=1)

    run(agents - 1)
    with pytest.raises(d3gd.errors.SettingsError, match="use a smaller momentum"):
        run(agents)
