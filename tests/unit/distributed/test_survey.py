"""A survey is the literal flood of rows: the same table, rounds and bytes, on any number of ranks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import d3gd
from d3gd.conditions.network import ConditionedNetwork
from d3gd.errors import GraphError
from d3gd.network import Network
from d3gd.transports.threads import on_threads
from tests.helpers.stepping import hears, random_network
from tests.helpers.strategies import digraphs, examples, row_stochastic


def longest_path(table):
    """The diameter of the network in an agent's table, or None as long as a row that it names is missing."""
    if any(source not in table for sources, _ in table.values() for source in sources):
        return None
    reach, hops = {agent: {agent} for agent in table}, 0
    while any(len(known) < len(table) for known in reach.values()):
        reach = {agent: set().union(*(reach[source] for source in table[agent][0])) for agent in table}
        hops += 1
    return hops


def literal(graph, A):
    """The protocol as agents run it: everyone's table after every round, and the numbers sent along every link.

    Agents decide for themselves when to stop, and must decide alike.
    """
    heard = hears(graph)
    tables = [{i: (heard[i], A[[i]].toarray()[0, heard[i]].tolist())} for i in range(graph.n)]
    fresh, past, sent = [dict(table) for table in tables], [[set(table) for table in tables]], {}
    while True:
        done = [longest_path(table) == len(past) - 1 for table in tables]
        assert len(set(done)) == 1
        if done[0]:
            return tables, past, sent
        arrived = [{} for _ in tables]
        for source, target in graph.edges.tolist():
            for agent, (sources, weights) in fresh[source].items():
                crossing = sent.setdefault((source, target), {})
                assert agent not in crossing
                crossing[agent] = 1 + len(sources) + len(weights)
                arrived[target][agent] = (sources, weights)
        fresh = [
            {a: row for a, row in new.items() if a not in table} for new, table in zip(arrived, tables, strict=True)
        ]
        tables = [table | new for table, new in zip(tables, fresh, strict=True)]
        past.append([set(table) for table in tables])


@examples(60)
@given(graph=digraphs(max_n=9), data=st.data())
def test_a_survey_is_the_literal_flood(graph, data):
    A = data.draw(row_stochastic(graph))
    tables, past, sent = literal(graph, A)
    net = Network(graph, A, needs="in-neighbours")
    found = net.survey()
    assert all(table == tables[0] for table in tables)
    for agent, (sources, weights) in tables[0].items():
        row = slice(found.graph.indptr[agent], found.graph.indptr[agent + 1])
        assert found.graph.sources[row].tolist() == sources
        assert found.a0[row].tolist() == weights
    assert found.rounds == len(past) - 1 == graph.diameter()
    assert net.bytes_sent == 8 * sum(sum(numbers.values()) for numbers in sent.values())


@examples(25)
@given(graph=digraphs(min_n=2, max_n=9), data=st.data())
def test_ranks_learn_by_the_flood_what_one_process_finds(graph, data):
    """Each rank holds the true weights of its own agents only."""
    A = data.draw(row_stochastic(graph))
    ranks = data.draw(st.integers(2, graph.n))
    alone = Network(graph, A, needs="in-neighbours")
    whole = alone.survey()

    def work(transport):
        own = Network(graph, A, transport=transport).halo.block.edges
        partial = A.copy()
        partial.data[:] = np.nan
        partial.data[own] = A.data[own]
        net = Network(graph, partial, needs="in-neighbours", transport=transport)
        found = net.survey()
        assert np.array_equal(found.graph.indptr, graph.indptr)
        assert np.array_equal(found.graph.sources, graph.sources)
        assert found.a0.tobytes() == A.data.tobytes()
        assert found.rounds == whole.rounds
        return net.bytes_sent, net.halo.wire_bytes

    bytes_sent, wire_bytes = np.sum(on_threads(ranks, work), axis=0)
    assert bytes_sent == alone.bytes_sent
    assert wire_bytes == bytes_sent if ranks == graph.n else wire_bytes <= bytes_sent


@examples(25)
@given(graph=digraphs(min_n=2, max_n=8), data=st.data())
def test_a_rank_needs_the_links_of_its_own_agent_alone(graph, data):
    """With one agent per rank, each is told its own row and who listens to it, and of the rest nothing."""
    A = data.draw(row_stochastic(graph))

    def work(transport):
        near = (graph.edges == transport.rank).any(axis=1)
        small = d3gd.Digraph.from_edges(graph.n, graph.edges[near])
        partial = small.matrix(A[small.targets, small.sources])
        partial.data[small.targets != transport.rank] = np.nan
        return Network(small, partial, needs="in-neighbours", transport=transport).survey()

    for found in on_threads(graph.n, work):
        assert np.array_equal(found.graph.keys, graph.keys)
        assert found.a0.tobytes() == A.data.tobytes()


def test_what_is_known_stays_known():
    graph, A = random_network(0)
    net = Network(graph, A, needs="in-neighbours")
    found, sent = net.survey(), net.bytes_sent
    assert net.survey() is found
    assert net.bytes_sent == sent


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_a_network_that_is_not_strongly_connected_is_found_out(ranks):
    graph = d3gd.Digraph.from_edges(4, [(0, 1), (1, 0), (1, 2), (2, 3), (3, 2)], labels="ABCD")
    A = d3gd.weights.metropolis(graph)
    said = r"agent 0 \('A'\) never hears of agent 2 \('C'\), agent 3 \('D'\).*not strongly connected"
    with pytest.raises(GraphError, match=said):
        on_threads(ranks, lambda transport: Network(graph, A, needs="in-neighbours", transport=transport).survey())


def test_conditions_act_on_iterations_and_not_on_the_survey():
    """At set-up, messages are repeated until they arrive."""
    graph, A = random_network(0)
    reliable = Network(graph, A, needs="in-neighbours")
    rough = ConditionedNetwork(graph, A, d3gd.Conditions(loss=0.9, delay=3), needs="in-neighbours")
    found, same = rough.survey(), reliable.survey()
    assert np.array_equal(found.graph.keys, same.graph.keys)
    assert found.a0.tobytes() == same.a0.tobytes()
    assert rough.bytes_sent == reliable.bytes_sent


def test_agents_that_know_the_network_have_nothing_to_discover():
    graph, A = random_network(0)
    net = Network(graph, A, needs="the network")
    assert net.survey().graph is graph
    assert net.bytes_sent == net.survey().rounds == 0


def test_a_run_counts_its_survey_before_iteration_0(tmp_path):
    graph, A = random_network(0)
    net = Network(graph, A, needs="in-neighbours")
    net.survey()
    problem = d3gd.problems.quadratic(agents=graph.n, dim=3)
    method = d3gd.FROST(step_size=0.01, perron="tracked")
    options = {"iterations": 4, "every": 1, "metrics": ["bytes"], "weights": A, "checkpoint_every": 2}
    whole = d3gd.run(method, graph, problem, out=tmp_path / "run", **options).metrics["bytes"]
    step = 8 * graph.link_count * (2 * 3 + graph.n)
    assert whole.tolist() == [net.bytes_sent + k * step for k in range(5)]
    # To go on is to survey again, since nothing outlives a process but its checkpoint; it is counted once.
    more = d3gd.run(method, graph, problem, out=tmp_path / "run", resume=True, **{**options, "iterations": 6})
    assert more.metrics["bytes"].tolist() == [net.bytes_sent + k * step for k in range(7)]


def test_too_large_a_network_is_refused_before_it_is_flooded():
    graph = d3gd.graphs.ring(2001)
    net = Network(graph, d3gd.weights.metropolis(graph), needs="in-neighbours")
    with pytest.raises(d3gd.D3GDError, match='perron="known"'):
        net.survey()
    assert net.bytes_sent == 0
