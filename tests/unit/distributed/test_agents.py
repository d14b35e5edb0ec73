"""What agents know, may read and send."""

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import d3gd
from d3gd.distributed.knowledge import Needs
from d3gd.network import Network
from tests.helpers.stepping import seven_agents
from tests.helpers.strategies import digraphs, examples


@examples(20)
@given(digraphs(min_n=7, max_n=7), st.integers(1, 9), st.integers(1, 9))
def test_exchange_counts_eight_bytes_a_number_and_link(graph, d, m):
    net = Network(graph, d3gd.weights.metropolis(graph))
    net.exchange(x=np.zeros((7, d)), Y=np.zeros((7, m)))
    assert net.bytes_sent == 8 * (d + m) * graph.link_count
    net.exchange(t=np.zeros(7))
    assert net.bytes_sent == 8 * (d + m + 1) * graph.link_count


def test_an_agent_alone_sends_nothing():
    graph = d3gd.Digraph.from_edges(1, [])
    net = Network(graph, d3gd.weights.uniform(graph))
    assert net.along(net.exchange(x=np.ones((1, 5))).x).tolist() == [[1.0] * 5]
    assert net.bytes_sent == 0


def test_an_inbox_holds_only_what_was_sent():
    _, net = seven_agents(0)
    with pytest.raises(AttributeError, match="'y' was sent"):
        _ = net.exchange(x=np.zeros((7, 1))).y


READS = {
    "out-degrees": [lambda net: net.out_degrees],
    "all agents": [lambda net: net.everyone(net.a0), lambda net: net.perron(net.a0)],
}


@pytest.mark.parametrize("needs", get_args(Needs))
def test_agents_read_what_their_method_needs_and_nothing_else(needs):
    order = get_args(Needs)
    _, net = seven_agents(0, needs=needs)
    for least, reads in READS.items():
        for read in reads:
            if order.index(needs) >= order.index(least):
                read(net)
                continue
            with pytest.raises(d3gd.D3GDError, match=f"needs = '{needs}' requested .* or declare it with .*'{least}'"):
                read(net)


def test_out_degrees_are_those_of_the_block():
    graph, net = seven_agents(0, needs="out-degrees")
    assert np.array_equal(net.out_degrees, graph.out_degrees[net.agents])


def test_permission_is_given_and_not_taken():
    _, net = seven_agents(0, needs="in-neighbours")
    for needs, then in (("the network", "the network"), ("out-degrees", "the network"), ("all agents", "all agents")):
        net.permit(needs)
        assert net.needs == then


def test_a_method_that_peeks_is_stopped_in_its_first_step():
    class Peeking(d3gd.DiDGD):
        def step(self, net, gradient, s, k):
            return s._replace(x=net.everyone(s.x) - gradient())

    problem = d3gd.problems.quadratic(agents=5, dim=2)
    with pytest.raises(d3gd.D3GDError, match="decentralized"):
        d3gd.run(Peeking(step_size=0.1), d3gd.graphs.ring(5), problem, iterations=3)


def test_everyone_sees_all_where_allowed():
    graph, net = seven_agents(3)
    x = np.arange(14.0).reshape(7, 2)
    assert np.array_equal(net.everyone(x), x)
    np.testing.assert_allclose(net.perron(net.a0), d3gd.weights.perron(graph.matrix(net.a0)))


def test_draws_depend_on_seed_agent_and_iteration_alone():
    _, net = seven_agents(1, seed=4)
    _, same = seven_agents(2, seed=4)
    _, other = seven_agents(1, seed=5)
    assert np.array_equal(net.draw(3), same.draw(3))
    assert not np.array_equal(net.draw(3), net.draw(4))
    assert not np.array_equal(net.draw(3), other.draw(3))
