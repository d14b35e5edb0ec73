"""Di-DGD: its Perron trackers, conserved sums, fixed points, and failures."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import d3gd
from d3gd.errors import SettingsError
from tests.helpers.stepping import random_network, states
from tests.helpers.strategies import examples
from tests.paper import textbook


@examples(20)
@given(seed=st.integers(0, 10_000))
def test_perron_trackers_reach_the_perron_vector(seed):
    graph, A = random_network(seed)
    problem = d3gd.problems.quadratic(agents=6, dim=2, seed=seed)
    enough = int(40 / d3gd.weights.spectral_gap(A))  # disagreement falls by exp(-40), but for a transient
    path = states(d3gd.DiDGD(step_size=1e-3), graph, A, problem, enough)
    pi = textbook.perron(A.toarray())
    np.testing.assert_allclose(path[-1].Y, np.tile(pi, (6, 1)), atol=1e-10)
    np.testing.assert_allclose(d3gd.weights.perron(A), pi, atol=1e-12)
    # From unit vectors the trackers are the powers of A, whose pi-average never moves.
    for k in (1, 2, 7):
        np.testing.assert_allclose(path[k].Y, np.linalg.matrix_power(A.toarray(), k), atol=1e-14)
        np.testing.assert_allclose(pi @ path[k].Y, pi, atol=1e-14)


@examples(20)
@given(seed=st.integers(0, 10_000))
def test_weighted_mean_moves_only_by_the_gradients(seed):
    graph, A = random_network(seed)
    problem = d3gd.problems.quadratic(agents=6, dim=3, seed=seed)
    gamma, pi = 0.02, textbook.perron(A.toarray())
    x0 = np.random.default_rng(seed).normal(size=(6, 3))
    path = states(d3gd.DiDGD(step_size=gamma), graph, A, problem, 30, x0)
    for s, after in itertools.pairwise(path):
        g, y = problem.gradients(s.x), np.diag(s.Y)
        expected = pi @ s.x - gamma / 6 * sum(pi[i] / y[i] * g[i] for i in range(6))
        np.testing.assert_allclose(pi @ after.x, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_rests_where_the_stationary_equations_say(seed):
    graph, A = random_network(seed, n=5)
    n, d, gamma = 5, 3, 0.1
    problem = d3gd.problems.quadratic(agents=n, dim=d, seed=seed)
    # x_i = sum_j a_ij x_j - gamma / (n pi_i) Q_i (x_i - b_i), one linear system for all agents.
    dense = A.toarray()
    pi = textbook.perron(dense)
    system, right = np.zeros((n * d, n * d)), np.zeros(n * d)
    for i in range(n):
        here = slice(i * d, (i + 1) * d)
        for j in range(n):
            system[here, j * d : (j + 1) * d] -= dense[i, j] * np.eye(d)
        system[here, here] += np.eye(d) + gamma / (n * pi[i]) * problem.Q[i]
        right[here] = gamma / (n * pi[i]) * problem.Q[i] @ problem.b[i]
    rest = np.linalg.solve(system, right).reshape(n, d)
    result = d3gd.run(d3gd.DiDGD(step_size=gamma), graph, problem, iterations=3000, every=3000, weights=A)
    np.testing.assert_allclose(result.x, rest, atol=1e-10)
    # Every agent counts alike although the weights do not: the gradients at rest sum to zero.
    np.testing.assert_allclose(problem.gradients(result.x).sum(axis=0), 0, atol=1e-10)


@pytest.mark.parametrize("warmup", [0, 7])
@pytest.mark.parametrize("step_size", [0.1, d3gd.schedules.Decay(0.3, power=0.5, over=10)])
@pytest.mark.parametrize("seed", range(3))
def test_equals_the_textbook(seed, step_size, warmup):
    graph, A = random_network(seed)
    problem = d3gd.problems.quadratic(agents=6, dim=4, seed=seed)
    x0 = np.random.default_rng(seed).normal(size=(6, 4))
    gamma = step_size if callable(step_size) else lambda k: step_size
    wanted = textbook.didgd(problem.gradients, A.toarray(), x0, gamma, 50, warmup)
    path = states(d3gd.DiDGD(step_size=step_size, warmup=warmup), graph, A, problem, 50, x0)
    for s, x in zip(path, wanted, strict=True):
        np.testing.assert_allclose(s.x, x, rtol=1e-12, atol=1e-12 * np.abs(x).max())


def test_own_entry_collapses_on_a_one_way_ring():
    n = 12
    graph = d3gd.graphs.ring(n)
    path = states(d3gd.DiDGD(step_size=1e-6), graph, d3gd.weights.uniform(graph), _pulls(n), n - 1)
    assert np.diag(path[-1].Y) == pytest.approx(np.full(n, 2.0 ** -(n - 1)))


def _pulls(n):
    """Quadratics of curvature 1 towards n different points."""
    return d3gd.problems.Quadratic(np.ones((n, 1, 1)), np.linspace(-1, 1, n)[:, None])


def test_long_ring_explodes_and_warmup_mends_it():
    n, graph = 30, d3gd.graphs.ring(30)
    explosion = d3gd.run(d3gd.DiDGD(step_size=0.1), graph, _pulls(n), iterations=300)
    assert explosion.status == "diverged"
    assert explosion.message
    # After 300 rounds of mixing y_ii is within a tenth of 1/30: the models then only ever move by a stable step.
    mended = d3gd.run(d3gd.DiDGD(step_size=0.1, warmup=300), graph, _pulls(n), iterations=1500)
    assert mended.status == "completed"
    assert np.abs(mended.x).max() <= 1
    assert mended.metrics["stationarity"][-1] < 0.2


def test_models_rest_during_warmup():
    problem = _pulls(5)
    x0 = np.arange(5.0)[:, None]
    path = states(d3gd.DiDGD(step_size=0.1, warmup=3), d3gd.graphs.ring(5), _ring_weights(5), problem, 5, x0)
    assert [np.array_equal(s.x, x0) for s in path] == [True, True, True, True, False, False]


def _ring_weights(n):
    return d3gd.weights.uniform(d3gd.graphs.ring(n))


@pytest.mark.parametrize("algorithm", [d3gd.DiDGD(step_size=0.1), d3gd.D3GD(step_size=0.1)])
def test_zero_self_weight_is_refused(algorithm):
    shift = np.roll(np.eye(3), 1, axis=0)
    A = 0.5 * (shift + np.eye(3))
    A[1] = shift[1]
    with pytest.raises(d3gd.D3GDError, match=r"agent 1.*self-weight"):
        d3gd.run(algorithm, d3gd.graphs.ring(3), _pulls(3), iterations=5, weights=A)


@pytest.mark.parametrize("step_size", [0.0, -0.1, float("nan"), float("inf"), "0.1", True])
def test_impossible_step_sizes_are_refused(step_size):
    with pytest.raises(d3gd.D3GDError, match="step_size"):
        d3gd.DiDGD(step_size=step_size)


def test_known_perron_weights_leave_nothing_to_warm_up_or_to_average():
    for choice in ({"warmup": 3}, {"averaged": True}):
        with pytest.raises(SettingsError, match="warmup and averaged"):
            d3gd.DiDGD(step_size=0.1, perron="known", **choice)


def test_trackers_lead_to_the_known_perron_weights():
    graph = d3gd.graphs.erdos_renyi(6, 0.5, seed=2)
    problem = d3gd.problems.quadratic(agents=6, dim=2)
    tracked, known = (
        d3gd.run(d3gd.DiDGD(step_size=0.05, perron=perron), graph, problem, iterations=2000, every=2000).x
        for perron in ("tracked", "known")
    )
    np.testing.assert_allclose(tracked, known, atol=1e-10)
