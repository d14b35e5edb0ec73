"""R-FAST loses nothing, whatever the network does."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import d3gd
from d3gd import Conditions
from d3gd.conditions.network import ConditionedNetwork
from tests.helpers.methods import advance
from tests.helpers.stepping import random_network, states
from tests.helpers.strategies import digraphs, examples

EVERYTHING = Conditions(loss=0.2, links=0.8, pause=0.05, back=0.5, delay=1)


def walk(graph, conditions, problem, iterations, dtype=np.float64, seed=0):
    """The network and the states of R-FAST on an unreliable network, stepped as the engine does."""
    method = d3gd.RFAST(step_size=0.05)
    net = ConditionedNetwork(graph, d3gd.weights.metropolis(graph), conditions, seed=seed, dtype=dtype)
    s, post = method.init(net, np.zeros((graph.n, problem.dim), dtype=dtype)), net.close()
    for k in range(iterations):
        net.open(k, post)
        s = net.hold(s, advance(method, net, problem, s, k))
        post = net.close()
        yield net, s


@examples(20)
@given(
    digraphs(min_n=2, max_n=7),
    st.sampled_from([np.float64, np.float32]),
    st.integers(0, 99),
    st.sampled_from([0, 1, 4]),
)
def test_what_agents_hold_and_have_not_read_sums_to_their_gradients(graph, dtype, seed, delay):
    problem = d3gd.problems.quadratic(agents=graph.n, dim=2, seed=seed)
    rough = Conditions(loss=0.4, links=0.7, pause=0.2, delay=delay)
    for net, s in walk(graph, rough, problem, 40, dtype, seed):
        unread = s.sent.total[graph.sources].astype(np.float64) - s.sent.seen
        held = s.tracker.mixed.sum(axis=0) + unread[~net.loops].sum(axis=0)
        np.testing.assert_allclose(held, s.tracker.g.sum(axis=0, dtype=np.float64), rtol=0, atol=1e-11)


def test_where_everything_arrives_it_is_push_pull():
    graph, weights = random_network(2)
    problem = d3gd.problems.quadratic(agents=6, dim=3, seed=1)
    ours = states(d3gd.RFAST(step_size=0.1), graph, weights, problem, 50)
    share = states(d3gd.PushPull(step_size=0.1), graph, weights, problem, 0)[0].share
    theirs = states(d3gd.PushPull(step_size=0.1 * share), graph, weights, problem, 50)
    for s, t in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(s.x, t.x, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "graph", [d3gd.graphs.ring(5), d3gd.graphs.erdos_renyi(8, 0.3, seed=0)], ids=["ring", "random"]
)
def test_everything_at_once_leaves_it_exact(graph):
    problem = d3gd.problems.quadratic(agents=graph.n, dim=3, seed=1)
    result = d3gd.run(d3gd.RFAST(step_size=0.2), graph, problem, iterations=1500, conditions=EVERYTHING, metrics={})
    assert np.abs(result.x - problem.optimum).max() < 1e-9


def test_in_single_precision_nothing_drifts():
    graph = d3gd.graphs.exponential(6)
    problem = d3gd.problems.quadratic(agents=6, dim=3, seed=1)
    found = d3gd.run(
        d3gd.RFAST(step_size=0.2),
        graph,
        problem,
        iterations=4000,
        every=1000,
        conditions=Conditions(loss=0.3),
        dtype="float32",
    ).metrics["stationarity"]
    assert found[1:].max() < 1e-12 * found[0]


def test_pauses_of_one_agent_wait_for_it():
    """While an agent is away its objective still counts, and what was sent to it is there when it returns."""
    graph, problem = d3gd.graphs.exponential(6), d3gd.problems.quadratic(agents=6, dim=3, seed=1)
    away = Conditions(absences=[(2, 50, 400)])
    result = d3gd.run(d3gd.RFAST(step_size=0.1), graph, problem, iterations=1500, conditions=away, metrics={})
    assert np.abs(result.x - problem.optimum).max() < 1e-9
