"""Without a survey agents find the same gain at the same iteration, within the bound, one link per iteration."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import d3gd
from d3gd.errors import SettingsError
from d3gd.rules.base import Now
from d3gd.rules.gain import bound
from d3gd.rules.nearby import Nearby
from d3gd.spectrum import modes
from tests.helpers.stepping import network, random_network, states
from tests.helpers.strategies import digraphs, examples, row_stochastic

METHOD = d3gd.PerronD3GD(step_size=0.05, rule="fixed", perron="tracked")
MOST = 3000


def settling(graph, A):
    """Yield every agent's answer to when all were settled, before each iteration, until all of them correct."""
    net, rule = network(METHOD, graph, A), Nearby(corrected=True)
    s = rule.init(net, np.zeros((graph.n, 1)))
    for k in range(MOST):
        yield k, s.tau[:, 0], rule.use(net, s, k)
        if (2 * s.tau < k).all():
            return
        sent = net.exchange(**rule.message(net, s, Now(k=k, gamma=0.1))[1])
        s = rule.end(net, s, sent, Now(k=k, gamma=0.1, a=net.a0))


@examples(40)
@given(graph=digraphs(min_n=2, max_n=8), data=st.data())
def test_all_agents_begin_at_once_with_at_most_half_of_the_stable_gain(graph, data):
    A = data.draw(row_stochastic(graph))
    for k, tau, use in settling(graph, A):
        begin = 2 * tau < k
        assert begin.all() or not begin.any()
        assert (use.gain > 0) == (begin.all() and k > 0)
    if k == MOST - 1:
        return  # weights that hardly mix
    assert len(set(tau)) == 1
    assert k == 2 * tau[0] + 1
    assert tau[0] >= graph.diameter()
    mu = modes(A)
    assert np.abs(mu).max() < graph.n ** (-1 / tau[0])
    assert use.gain <= 0.5 * bound(mu).min() * (1 + 1e-12)


@examples(25)
@given(graph=digraphs(min_n=3, max_n=8), seed=st.integers(0, 1000), data=st.data())
def test_a_row_of_weights_changes_models_no_sooner_than_links_carry_it(graph, seed, data):
    """There is no set-up in which agents would learn of it."""
    A, changed = data.draw(row_stochastic(graph)), data.draw(st.integers(0, graph.n - 1))
    other = A.copy()
    own = slice(A.indptr[changed], A.indptr[changed + 1])
    other.data[own] = np.roll(A.data[own], 1)
    problem = d3gd.problems.quadratic(agents=graph.n, dim=2, seed=seed)
    x0, hops = np.random.default_rng(seed).normal(size=(graph.n, 2)), graph.hops_from(changed)
    pair = (states(METHOD, graph, weights, problem, graph.n, x0) for weights in (A, other))
    for k, (one, two) in enumerate(zip(*pair, strict=True)):
        assert np.array_equal(one.x[hops >= k], two.x[hops >= k])
    assert network(METHOD, graph, A).bytes_sent == 0


@examples(25)
@given(graph=digraphs(min_n=3, max_n=8), seed=st.integers(0, 1000), data=st.data())
def test_data_change_models_just_when_links_have_carried_it(graph, seed, data):
    """What an agent sends has its gradient in it already."""
    A, changed = data.draw(row_stochastic(graph)), data.draw(st.integers(0, graph.n - 1))
    problem = d3gd.problems.quadratic(agents=graph.n, dim=2, seed=seed)
    other = d3gd.problems.Quadratic(problem.Q, problem.b.copy())
    other.b[changed] = np.nan
    hops = np.maximum(graph.hops_from(changed), 1)
    pair = (states(METHOD, graph, A, p, graph.n) for p in (problem, other))
    for k, (one, two) in enumerate(zip(*pair, strict=True)):
        assert ((one.x == two.x).all(axis=1) == (hops > k)).all()


def test_shares_do_not_collapse_on_a_long_ring():
    graph = d3gd.graphs.ring(20)
    problem = d3gd.problems.quadratic(agents=20, dim=3)
    net = network(METHOD, graph, d3gd.weights.metropolis(graph))
    path = states(METHOD, graph, d3gd.weights.metropolis(graph), problem, 1500)
    shares = [METHOD._rule(net).use(net, s.rule, k).pi for k, s in enumerate(path)]
    assert min(20 * share.min() for share in shares) > 0.5
    assert min(net.own(s.rule.Y).min() for s in path) == 2.0**-19
    np.testing.assert_allclose(net.own(path[-1].rule.Y), 1 / 20, rtol=1e-6)


@pytest.mark.parametrize(
    "graph", [d3gd.graphs.ring(20), d3gd.graphs.erdos_renyi(20, 0.2), d3gd.graphs.star(8)], ids=str
)
def test_it_is_exact_on_a_ring_a_random_graph_and_a_star(graph):
    problem = d3gd.problems.quadratic(agents=graph.n, dim=3, seed=1)
    result = d3gd.run(METHOD, graph, problem, iterations=8000, metrics=["stationarity"])
    assert result.metrics["stationarity"][-1] < 1e-18


def test_what_it_cannot_do_is_refused():
    with pytest.raises(SettingsError, match='rule = "mixing" chooses weights for the whole network'):
        d3gd.PerronD3GD(step_size=0.1, perron="tracked")
    graph, A = random_network(0)
    problem = d3gd.problems.quadratic(agents=graph.n, dim=2)
    for conditions, said in (
        (d3gd.Conditions(loss=0.1), "all agents correcting with the same gain"),
        (d3gd.Conditions(loss=0.1, biased=True), 'use perron = "discovered"'),
    ):
        with pytest.raises(SettingsError, match=said):
            d3gd.run(METHOD, graph, problem, weights=A, iterations=3, conditions=conditions)
