"""The planning problem: its cost, its derivative, and the constraints of a plan."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import d3gd
from d3gd import theory
from d3gd.spectrum import perron, spectral_gap
from d3gd.steady.planner import Planner
from tests.helpers.stepping import random_network
from tests.helpers.strategies import digraphs, examples, row_stochastic

ORDERS = ["before", "after"]


def planner(graph, A, **options):
    return Planner(graph.n, graph.targets, graph.sources, A.data, **options)


def a_case(seed, n=6, p=0.3, dim=4):
    """A network, gradients, variances, and the logarithms of some other weights on it."""
    graph, A = random_network(seed, n=n, p=p)
    rng = np.random.default_rng(seed)
    theta = np.log(A.data) + 0.3 * rng.normal(size=A.data.size)
    return graph, A, rng.normal(size=(n, dim)), rng.uniform(0.2, 2.0, n), theta, rng.normal(size=theta.size)


def textbook_cost(A, G, variance, gamma, least, after, terms=4000):
    """The formulas of the module's docstring, term by term."""
    n = len(A)
    pi = perron(A)
    D = np.linalg.solve(np.eye(n) - A + pi, gamma / n * (G / pi[:, None] - G.sum(axis=0)))
    D = A @ D if after else D
    D = D - D.mean(axis=0)
    J, B = np.eye(n) - 1 / n, A - pi
    term, noise = np.diag((gamma / (n * pi)) ** 2 * variance), 0.0
    for k in range(terms):
        noise += 0.0 if after and k == 0 else np.trace(J @ term)
        term = B @ term @ B.T
    return np.log(np.sum(D**2) + noise) + np.sum(np.maximum(least / (n * pi) - 1, 0) ** 2)


def difference(plan, theta, direction, G, variance, eps=1e-6):
    ahead, behind = (plan.cost(theta + by * direction, G, variance, 0.2)[0] for by in (eps, -eps))
    return (ahead - behind) / (2 * eps)


# The cost ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [False, True])
@examples(25)
@given(graph=digraphs(min_n=2, max_n=8), data=st.data(), seed=st.integers(0, 10**6))
def test_without_noise_or_guard_it_is_the_steady_disagreement(after, graph, data, seed):
    first, second = data.draw(row_stochastic(graph)), data.draw(row_stochastic(graph))
    G = np.random.default_rng(seed).normal(size=(graph.n, 9))
    plan = planner(graph, first, after=after, least=0.0)
    costs = [plan.network_cost(A.data, G, np.zeros(graph.n), 0.3)[0] for A in (first, second)]
    order = "after" if after else "before"
    steady = [theory.steady_disagreement(A, G, 0.3, order) for A in (first, second)]
    if min(steady) > 1e-12:
        assert costs[1] - costs[0] == pytest.approx(np.log(steady[1] / steady[0]), abs=1e-7)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("least", [0.0, 0.8, 1.5])
@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_formula_of_the_docstring_but_for_the_tail_of_the_noise(after, least, seed):
    graph, A, G, variance, theta, _ = a_case(seed)
    plan = planner(graph, A, after=after, least=least)
    weights = graph.matrix(plan.weights(theta))
    # The noise sum stops after 2^doublings rounds, chosen so that the *initial* weights leave 3 % of a deviation.
    left = (1 - spectral_gap(weights)) ** (2 * 2**plan.depth)
    assert plan.cost(theta, G, variance, 0.2)[0] == pytest.approx(
        textbook_cost(weights.toarray(), G, variance, 0.2, least, after), abs=10 * left + 1e-9
    )
    exact = planner(graph, A, after=after, least=least, doublings=10)
    assert exact.cost(theta, G, variance, 0.2)[0] == pytest.approx(
        textbook_cost(weights.toarray(), G, variance, 0.2, least, after), abs=1e-9
    )


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize(("least", "anchor"), [(0.0, 0.0), (0.8, 0.05), (2.0, 0.3)])
def test_its_derivative_is_the_finite_difference(after, noisy, least, anchor):
    for seed in range(4):
        graph, A, G, variance, theta, direction = a_case(seed)
        # The derivative is that of the whole noise sum; with ten doublings nothing is cut off.
        plan = planner(graph, A, after=after, least=least, anchor=anchor, doublings=10)
        variance = variance * noisy
        slope = plan.cost(theta, G, variance, 0.2)[1]
        found = difference(plan, theta, direction, G, variance)
        assert abs(found - slope @ direction) <= 1e-7 * np.linalg.norm(slope) * np.linalg.norm(direction)


@pytest.mark.parametrize("after", [False, True])
def test_where_the_noise_sum_is_cut_off_its_derivative_is_off_by_no_more_than_the_tail(after):
    for seed in range(6):
        graph, A, G, variance, theta, direction = a_case(seed)
        plan = planner(graph, A, after=after)
        slope = plan.cost(theta, G, variance, 0.2)[1]
        found = difference(plan, theta, direction, G, variance)
        rounds = 2**plan.depth
        left = (1 - spectral_gap(graph.matrix(plan.weights(theta)))) ** (2 * rounds)
        size = np.linalg.norm(slope) * np.linalg.norm(direction)
        assert abs(found - slope @ direction) <= (10 * rounds * left + 1e-7) * size


def test_the_guard_counts_only_where_someone_is_starved():
    graph, A, G, variance, theta, _ = a_case(0)
    share = graph.n * perron(graph.matrix(planner(graph, A).weights(theta))).min()
    costs = [planner(graph, A, least=k).cost(theta, G, variance, 0.2)[0] for k in (0.0, 0.99 * share, 1.01 * share)]
    assert costs[0] == costs[1] < costs[2]


def test_weights_under_which_somebody_is_not_heard_cost_more_than_any_others():
    graph = d3gd.graphs.ring(4)
    A, G = d3gd.weights.uniform(graph), np.random.default_rng(0).normal(size=(4, 3))
    plan, alone = planner(graph, A), (graph.sources == graph.targets).astype(float)
    deaf_to_0 = np.where((graph.sources == 0) & (graph.targets != 0), 0.0, A.data)
    deaf_to_0 /= np.add.reduceat(deaf_to_0, graph.indptr[:-1])[graph.targets]
    connected = plan.network_cost(A.data, G, np.ones(4), 0.1)[0]
    for weights in (alone, deaf_to_0):
        cost, slope = plan.network_cost(weights, G, np.ones(4), 0.1)
        assert connected < cost < np.inf
        assert np.isfinite(slope).all()


@examples(20)
@given(seed=st.integers(0, 10**6), scale=st.floats(1e-6, 1e6))
def test_its_minimiser_does_not_depend_on_units(seed, scale):
    graph, A, G, variance, theta, _ = a_case(seed % 50)
    plan = planner(graph, A)
    one, other = plan.cost(theta, G, variance, 0.2), plan.cost(theta, scale * G, scale**2 * variance, 0.2)
    assert other[0] - one[0] == pytest.approx(2 * np.log(scale), abs=1e-8)
    assert np.allclose(one[1], other[1], rtol=1e-9, atol=1e-12)


# Plans ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [False, True])
@examples(20)
@given(graph=digraphs(min_n=1, max_n=10), data=st.data(), seed=st.integers(0, 10**6), dim=st.sampled_from([1, 3, 15]))
def test_a_plan_lies_on_the_graph_keeps_its_anchor_and_lowers_the_cost(after, graph, data, seed, dim):
    A = data.draw(row_stochastic(graph))
    rng = np.random.default_rng(seed)
    G, variance = rng.normal(size=(graph.n, dim)), rng.uniform(0, 1, graph.n)
    plan = planner(graph, A, after=after)
    a = plan.plan(A.data, G, variance, 0.1)
    assert a.shape == A.data.shape
    assert np.abs(np.add.reduceat(a, graph.indptr[:-1]) - 1).max() <= 1e-12
    assert (a >= plan.anchor * A.data * (1 - 1e-12)).all()
    assert (a > 0).all()
    if graph.n > 1:
        before, now = (plan.network_cost(weights, G, variance, 0.1)[0] for weights in (A.data, a))
        assert now <= before + 1e-9
    again = planner(graph, A, after=after).plan(A.data.copy(), G.copy(), variance.copy(), 0.1)
    assert np.array_equal(a, again)  # every agent finds the same bits


@pytest.mark.parametrize("after", [False, True])
def test_a_plan_can_be_improved_again(after):
    graph, A, G, variance, _, _ = a_case(3, n=10, p=0.1)
    plan = planner(graph, A, after=after)
    weights, costs = A.data, [plan.network_cost(A.data, G, variance, 0.1)[0]]
    for _ in range(3):
        weights = plan.plan(weights, G, variance, 0.1)
        costs.append(plan.network_cost(weights, G, variance, 0.1)[0])
    assert costs[1] < costs[0]
    assert all(later <= sooner + 1e-3 for sooner, later in pairwise(costs[1:]))


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("after", [False, True])
def test_the_smallest_networks(n, after):
    graph = d3gd.graphs.ring(n)
    A = d3gd.weights.uniform(graph)
    rng = np.random.default_rng(n)
    a = planner(graph, A, after=after).plan(A.data, rng.normal(size=(n, 3)), np.ones(n), 0.1)
    assert np.isfinite(a).all()
    assert np.add.reduceat(a, graph.indptr[:-1]) == pytest.approx(1)


@pytest.mark.parametrize("after", [False, True])
def test_nothing_to_plan_for_leaves_the_weights_alone(after):
    graph, A, G, variance, _, _ = a_case(1)
    assert np.allclose(planner(graph, A, after=after).plan(A.data, 0 * G, 0 * variance, 0.1), A.data, rtol=1e-12)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("n", [2, 3, 5])
def test_where_weights_can_cancel_everything_a_plan_is_still_made_of_numbers(n, after):
    # On a complete graph one round may average all, and then nothing is left to take a logarithm of.
    graph = d3gd.graphs.complete(n)
    rng = np.random.default_rng(n)
    for trial in range(6):
        raw = rng.uniform(0.05, 1.0, (n, n)) if trial else np.ones((n, n))
        A = graph.matrix((raw / raw.sum(axis=1, keepdims=True)).ravel())
        for G in (np.zeros((n, 1)), rng.normal(size=(n, 3))):
            for variance in (np.ones(n), np.zeros(n)):
                a = planner(graph, A, after=after, least=0.95).plan(A.data, G, variance, 1.0, evaluations=150)
                assert np.add.reduceat(a, graph.indptr[:-1]) == pytest.approx(1)
                assert (a > 0).all()


def test_long_sketches_and_their_inner_products_give_the_same_plan():
    graph, A, _, variance, _, _ = a_case(2)
    G = np.random.default_rng(0).normal(size=(graph.n, 64))
    sizes, directions = np.linalg.eigh(G @ G.T)
    plan = planner(graph, A)
    short = plan.plan(A.data, directions * np.sqrt(sizes), variance, 0.1)
    assert np.allclose(plan.plan(A.data, G, variance, 0.1), short, atol=1e-6)


def test_a_plan_collects_most_of_what_the_oracle_could():
    graph = d3gd.graphs.erdos_renyi(12, 0.3, seed=0)
    G = np.random.default_rng(0).normal(size=(12, 30))
    best = theory.optimal_weights(graph, G, combine="before")
    A = d3gd.weights.metropolis(graph)
    planned = planner(graph, A, after=False).plan(A.data, G, np.zeros(12), 1.0)
    assert best.share(theory.steady_disagreement(graph.matrix(planned), G, 1.0)) >= 0.9
