"""Information travels one link per iteration, set-up included: no agent knows of anything distant any sooner."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import d3gd
from d3gd.distributed.sets import unpack
from d3gd.distributed.survey import Discovery, Edges, Rows
from d3gd.network import Network
from d3gd.transports.threads import Thread, on_threads
from tests.helpers.methods import every_method
from tests.helpers.stepping import states
from tests.helpers.strategies import digraphs, examples, row_stochastic


def first_changes(algorithm, graph, A, changed, iterations, seed, by=1e6):
    """For every agent the first iteration at which its model differs, bit by bit, once one agent's data change.

    An agent that never differs has -1. By not a number, no rounding on the way can swallow the change.
    """
    problem = d3gd.problems.quadratic(agents=graph.n, dim=3, seed=seed)
    other = d3gd.problems.Quadratic(problem.Q, problem.b.copy())
    other.b[changed] += by
    x0 = np.random.default_rng(seed).normal(size=(graph.n, 3))
    first = np.full(graph.n, -1)
    pair = (states(algorithm, graph, A, p, iterations, x0) for p in (problem, other))
    for k, (s, t) in enumerate(zip(*pair, strict=True)):
        differs = (s.x != t.x).any(axis=1)
        first[differs & (first < 0)] = k
    return first


DECENTRALIZED = [
    d3gd.DiDGD(step_size=0.02),
    d3gd.D3GD(step_size=0.02, rule="decentralized"),
    d3gd.D3GD(step_size=0.02, rule="decentralized", chain_rule=True, participation=0.5),
]


@pytest.mark.parametrize("algorithm", DECENTRALIZED, ids=["DiDGD", "D3GD", "D3GD-chain-partial"])
@examples(20)
@given(graph=digraphs(min_n=2, max_n=9), seed=st.integers(0, 10_000), data=st.data())
def test_an_agent_h_links_away_changes_no_sooner_than_iteration_h_plus_1(algorithm, graph, seed, data):
    A = data.draw(row_stochastic(graph))
    changed = data.draw(st.integers(0, graph.n - 1))
    hops = graph.hops_from(changed)
    first = first_changes(algorithm, graph, A, changed, hops.max() + 1, seed)
    assert first[changed] == 1
    assert ((first < 0) | (first >= hops + 1)).all()


@examples(20)
@given(graph=digraphs(min_n=2, max_n=9), seed=st.integers(0, 10_000), data=st.data())
def test_with_fixed_weights_it_changes_just_then(graph, seed, data):
    A = data.draw(row_stochastic(graph))
    changed = data.draw(st.integers(0, graph.n - 1))
    hops = graph.hops_from(changed)
    first = first_changes(DECENTRALIZED[0], graph, A, changed, hops.max() + 1, seed, by=np.nan)
    assert first.tolist() == (hops + 1).tolist()


def test_the_cone_is_as_long_as_a_ring():
    graph = d3gd.graphs.ring(12)
    first = first_changes(DECENTRALIZED[1], graph, d3gd.weights.uniform(graph), 0, 12, seed=0)
    assert first.tolist() == list(range(1, 13))


@pytest.mark.parametrize("rule", ["global", "exact"])
def test_rules_with_global_knowledge_break_the_cone(rule):
    graph = d3gd.graphs.ring(12)
    algorithm = d3gd.D3GD(step_size=0.02, rule=rule)
    first = first_changes(algorithm, graph, d3gd.weights.uniform(graph), 0, 4, seed=0)
    # At the latest the second iteration feels it, however far the agent.
    assert np.count_nonzero((first >= 1) & (first <= 2)) > 3
    assert (first[first > 0] < graph.hops_from(0)[first > 0] + 1).any()


@examples(40)
@given(graph=digraphs(max_n=9))
def test_after_r_rounds_a_survey_has_told_of_everyone_at_most_r_links_away(graph):
    net = Network(graph, d3gd.weights.uniform(graph))
    rows = Rows(graph.n, net.agents, graph.indptr, graph.sources, net.a0)
    flood = Discovery(net.halo, rows, Edges(graph.indptr, graph.sources))
    hops = np.stack([graph.hops_from(agent) for agent in range(graph.n)], axis=1)  # of agent i from agent l
    for r in range(graph.n + 1):
        assert np.array_equal(unpack(flood.known, graph.n), hops <= r)
        assert np.array_equal(flood.complete(), hops.max(axis=1) <= r)
        flood.advance()


def messages(graph, A):
    """What every agent sends in every round of a survey, one agent per rank, to each of those that hear it."""
    sent = [[] for _ in range(graph.n)]

    class Overheard(Thread):
        def swap(self, sends, receives, what):
            if what == "rows to pass on":
                sent[self.rank].append({peer: array.tobytes() for peer, array in sends.items()})
            super().swap(sends, receives, what)

    def work(transport):
        transport.__class__ = Overheard
        return Network(graph, A, needs="in-neighbours", transport=transport).survey()

    on_threads(graph.n, work)
    return sent


@examples(20)
@given(graph=digraphs(min_n=2, max_n=7), data=st.data())
def test_a_row_h_links_away_changes_what_an_agent_sends_in_round_h_plus_1_of_a_survey(graph, data):
    changed = data.draw(st.integers(0, graph.n - 1))
    A = d3gd.weights.uniform(graph)
    before = messages(graph, A)
    A.data[graph.targets == changed] += 1
    after = messages(graph, A)
    for agent, h in enumerate(graph.hops_from(changed)):
        rounds = zip(before[agent], after[agent], strict=True)
        assert [one != other for one, other in rounds] == [r == h for r in range(graph.diameter())]


@examples(20)
@given(graph=digraphs(min_n=2, max_n=7), data=st.data())
def test_a_new_link_is_no_news_to_distant_agents_either(graph, data):
    """Whom an agent hears decides what it passes on, but those h links away send the same until round h + 1."""
    changed, source = data.draw(st.permutations(range(graph.n)))[:2]
    other = d3gd.Digraph.from_edges(graph.n, [*graph.edges.tolist(), (source, changed)])
    one, two = (messages(g, d3gd.weights.uniform(g)) for g in (graph, other))
    for agent, h in enumerate(graph.hops_from(changed)):
        for r in range(min(h, len(one[agent]), len(two[agent]))):
            # The source now sends to one more; to the others, the same.
            assert {*one[agent][r].values()} == {*two[agent][r].values()}


NEAR = "in-neighbours", "out-degrees", "undirected links"
LOCAL = {name: method for name, method in every_method(0.05).items() if method.needs in NEAR}


@pytest.mark.parametrize("name", LOCAL)
def test_agents_need_no_more_than_their_method_says(name):
    """Each rank is given its own agent's row and who listens to it, and of the rest of the network nothing."""
    algorithm, iterations = LOCAL[name], 40
    undirected = algorithm.needs == "undirected links"
    graph = d3gd.graphs.grid(2, 3) if undirected else d3gd.graphs.erdos_renyi(5, 0.4, seed=1)
    A, target = d3gd.weights.metropolis(graph), np.random.default_rng(0).normal(size=(graph.n, 70))

    def stepped(net):
        own = target[net.agents]
        s = algorithm.init(net, np.zeros_like(own))
        for k in range(iterations):
            here = algorithm.point(s)
            s = algorithm.step(net, lambda x=None, *, draw="new", here=here: (here if x is None else x) - own, s, k)
        return algorithm.point(s), algorithm.weights(net, s), net.bytes_sent

    def work(transport):
        near = d3gd.Digraph.from_edges(graph.n, graph.edges[(graph.edges == transport.rank).any(axis=1)])
        weights = near.matrix(A[near.targets, near.sources])
        weights.data[near.targets != transport.rank] = np.nan
        return stepped(Network(near, weights, needs=algorithm.needs, transport=transport))

    x, a, sent = stepped(Network(graph, A, needs=algorithm.needs))
    models, weights, each = zip(*on_threads(graph.n, work), strict=True)
    assert np.array_equal(np.concatenate(models), x)
    assert np.array_equal(np.concatenate(weights), a)
    assert sum(each) == sent
