"""Row-stochastic gradient tracking."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import d3gd
from d3gd.spectrum import perron, spectral_gap
from d3gd.steady.planner import Planner
from tests.helpers.stepping import network, random_network, states
from tests.helpers.strategies import digraphs, examples, row_stochastic
from tests.unit.algorithms.test_perron import Diagonal

RULES, ORDERS = ["mixing", "fixed"], ["after", "before"]


@examples(30)
@given(graph=digraphs(max_n=8), data=st.data(), rule=st.sampled_from(RULES), order=st.sampled_from(ORDERS))
def test_the_tracked_sum_is_conserved(graph, data, rule, order):
    A = data.draw(row_stochastic(graph))
    algorithm = d3gd.FROST(step_size=0.01, rule=rule, combine=order)
    problem = Diagonal(graph.n, 3, data.draw(st.integers(0, 99)))
    path = states(algorithm, graph, A, problem, 40)
    pi = perron(graph.matrix(path[0].a))
    for s, after in pairwise(path):
        # A state keeps A s^k, and pi A = pi.
        total = problem.gradients(s.x).sum(axis=0)
        assert np.allclose(pi @ after.tracker.mixed, total, rtol=1e-11, atol=1e-11 * np.abs(after.tracker.mixed).max())


@examples(12)
@given(graph=digraphs(min_n=2, max_n=10), data=st.data())
def test_weights_planned_for_mixing_come_from_the_network_alone_and_cost_less(graph, data):
    A = data.draw(row_stochastic(graph))
    algorithm = d3gd.FROST(step_size=0.05)
    net = network(algorithm, graph, A)
    one, other = (algorithm.init(net, x0) for x0 in (np.zeros((graph.n, 2)), np.ones((graph.n, 5))))
    assert np.array_equal(one.a, other.a)
    assert np.array_equal(one.Y[:, 0], perron(graph.matrix(one.a)))
    # Not that all are heard better: where weights can cancel all noise, as between two agents, that may cost balance.
    planner = Planner(graph.n, graph.targets, graph.sources, A.data, least=0.95)
    planned, initial = (
        planner.network_cost(a, np.zeros((graph.n, 1)), np.ones(graph.n), 1.0)[0] for a in (one.a, A.data)
    )
    assert planned <= initial + 1e-9


@pytest.mark.parametrize("graph", [d3gd.graphs.grid(3, 4), d3gd.graphs.erdos_renyi(20, 0.2), d3gd.graphs.star(8)])
def test_weights_planned_for_mixing_let_less_noise_pass(graph):
    A = d3gd.weights.metropolis(graph)
    algorithm = d3gd.FROST(step_size=0.05)
    a = algorithm.init(network(algorithm, graph, A), np.zeros((graph.n, 1))).a
    assert passed(graph.matrix(a)) < passed(A)


def passed(A):
    """Noise of variance pi^-2 at every agent, as steps scale it, summed over all rounds of mixing."""
    pi, A = perron(A), A.toarray()
    B, total = A - pi, 0.0
    term = np.diag(pi**-2.0)
    for _ in range(3000):
        term = B @ term @ B.T
        total += np.trace(term) - term.mean() * len(A)
    return total


def test_combining_before_keeps_half_of_every_weight_at_home():
    graph, A = random_network(2)
    before, after = (d3gd.FROST(step_size=0.1, combine=order) for order in ("before", "after"))
    lazy, plain = (graph.matrix(a.init(network(a, graph, A), np.zeros((6, 1))).a).toarray() for a in (before, after))
    assert np.allclose(lazy, (np.eye(6) + plain) / 2)
    assert np.allclose(perron(lazy), perron(plain))
    assert spectral_gap(lazy) > 0


def test_it_sends_two_vectors_a_link():
    graph, A = random_network(3)
    algorithm = d3gd.FROST(step_size=0.05, perron="known")
    result = d3gd.run(algorithm, graph, Diagonal(6, 11), weights=A, iterations=20, metrics=["bytes"])
    assert result.metrics["bytes"][-1] == 20 * graph.link_count * 2 * 11 * 8


@pytest.mark.parametrize("graph", [d3gd.graphs.erdos_renyi(20, 0.2), d3gd.graphs.random_geometric(24, 0.4)])
def test_weights_planned_for_mixing_let_starved_agents_be_heard(graph):
    A = d3gd.weights.metropolis(graph)
    algorithm = d3gd.FROST(step_size=0.05)
    pi = algorithm.init(network(algorithm, graph, A), np.zeros((graph.n, 1))).Y[:, 0]
    assert graph.n * perron(A).min() < 0.2
    assert graph.n * pi.min() > 0.85
