import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from d3gd import graphs
from d3gd.digraph import Digraph
from d3gd.errors import GraphError
from tests.helpers.strategies import digraphs

GENERATED = {
    "ring": graphs.ring(7),
    "exponential": graphs.exponential(11),
    "grid": graphs.grid(3, 4),
    "torus": graphs.grid(3, 4, torus=True),
    "complete": graphs.complete(6),
    "star": graphs.star(6),
    "erdos_renyi": graphs.erdos_renyi(30, 0.2, seed=3),
    "random_geometric": graphs.random_geometric(60, 0.35, seed=3),
    "regular": graphs.regular(30, 4, seed=3),
    "regular, more than half": graphs.regular(9, 7, seed=3),
}


@pytest.mark.parametrize("graph", GENERATED.values(), ids=GENERATED.keys())
def test_generators_give_strongly_connected_graphs_as_networkx_sees_it(graph: Digraph) -> None:
    assert nx.is_strongly_connected(graph.to_networkx())
    assert graph.is_strongly_connected
    assert graph.link_count == graph.to_networkx().number_of_edges()
    assert graph.diameter() == nx.diameter(graph.to_networkx())


@given(st.integers(1, 8), st.data())
def test_rows_hold_exactly_the_given_sources_and_the_agent_itself(n: int, data: st.DataObject) -> None:
    agent = st.integers(0, n - 1)
    edges = data.draw(st.lists(st.tuples(agent, agent), max_size=30))
    graph = Digraph.from_edges(n, edges)
    for i in range(n):
        row = graph.sources[graph.indptr[i] : graph.indptr[i + 1]].tolist()
        assert row == sorted({source for source, target in edges if target == i} | {i})
        assert graph.sources[graph.self_loops[i]] == graph.targets[graph.self_loops[i]] == i
    links = {(source, target) for source, target in edges if source != target}
    assert {tuple(edge) for edge in graph.edges.tolist()} == links
    assert graph.link_count == len(graph.edges) == len(links)
    assert graph.is_undirected == (links == {(target, source) for source, target in links})
    assert graph.in_degrees.tolist() == [sum(target == i for _, target in links) for i in range(n)]
    assert graph.out_degrees.tolist() == [sum(source == i for source, _ in links) for i in range(n)]
    assert graph.is_strongly_connected == nx.is_strongly_connected(graph.to_networkx())


@given(digraphs(), st.data())
def test_hops_are_the_shortest_directed_distances(graph: Digraph, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, graph.n - 1))
    lengths = nx.single_source_shortest_path_length(graph.to_networkx(), start)
    assert graph.hops_from(start).tolist() == [lengths[i] for i in range(graph.n)]


@given(digraphs())
def test_networkx_round_trip_keeps_everything(graph: Digraph) -> None:
    labelled = Digraph(graph.n, graph.indptr, graph.sources, tuple(f"node {i}" for i in range(graph.n)))
    for original in (graph, labelled):
        back = Digraph.from_networkx(original.to_networkx())
        assert np.array_equal(back.indptr, original.indptr)
        assert np.array_equal(back.sources, original.sources)
        assert back.labels == original.labels


def test_networkx_nodes_become_agents() -> None:
    numbered = Digraph.from_networkx(nx.DiGraph([(2, 0), (0, 1), (1, 2)]))
    assert numbered.labels is None
    assert numbered.hops_from(2).tolist() == [1, 2, 0]
    undirected = Digraph.from_networkx(nx.Graph([("C", "A"), ("A", "B")]))
    assert undirected.labels == ("C", "A", "B")
    assert undirected.edges.tolist() == [[1, 0], [0, 1], [2, 1], [1, 2]]
    with pytest.raises(GraphError, match=r"label '1' is given to two agents"):
        Digraph.from_networkx(nx.DiGraph([("1", 1), (1, "1")]))


def test_information_flows_along_the_links_of_the_named_graphs() -> None:
    assert graphs.ring(5).hops_from(0).tolist() == [0, 1, 2, 3, 4]
    # The number of ones in a binary offset is the number of powers of two needed to cross it.
    assert graphs.exponential(32).hops_from(0).tolist() == [i.bit_count() for i in range(32)]
    assert graphs.star(5).hops_from(1).tolist() == [1, 0, 2, 2, 2]
    assert graphs.grid(4, 6).diameter() == 3 + 5
    assert graphs.grid(4, 6, torus=True).diameter() == 2 + 3
    assert graphs.complete(5).link_count == 20
    for one in (graphs.ring(1), graphs.exponential(1), graphs.grid(1, 1), graphs.star(1), graphs.complete(1)):
        assert (one.n, one.link_count, one.diameter()) == (1, 0, 0)


def test_erdos_renyi_links_each_ordered_pair_with_the_same_probability() -> None:
    n, p, draws = 12, 0.5, 400
    count = np.zeros((n, n))
    for seed in range(draws):
        edges = graphs.erdos_renyi(n, p, seed=seed).edges
        count[edges[:, 0], edges[:, 1]] += 1
    frequency = count[~np.eye(n, dtype=bool)] / draws
    # Five standard deviations; strong connectivity is almost sure here and shifts p by less than that.
    assert np.abs(frequency - p).max() < 5 * np.sqrt(p * (1 - p) / draws)
    assert abs(frequency.mean() - p) < 5 * np.sqrt(p * (1 - p) / (draws * frequency.size))
    assert graphs.erdos_renyi(6, 1.0).link_count == 30


@pytest.mark.parametrize(
    "draw",
    [
        lambda seed: graphs.erdos_renyi(20, 0.3, seed=seed),
        lambda seed: graphs.random_geometric(40, 0.4, seed=seed),
        lambda seed: graphs.regular(20, 3, seed=seed),
    ],
)
def test_a_seed_fixes_the_graph(draw) -> None:
    assert np.array_equal(draw(5).sources, draw(5).sources)
    assert not np.array_equal(draw(5).edges, draw(6).edges)


@given(st.integers(2, 40), st.data())
def test_regular_graphs_have_equal_degrees_both_ways(n: int, data: st.DataObject) -> None:
    degree = data.draw(st.integers(1, n - 1))
    graph = graphs.regular(n, degree, seed=data.draw(st.integers(0, 1000)))
    assert set(graph.in_degrees.tolist()) == set(graph.out_degrees.tolist()) == {degree}
    assert graph.is_strongly_connected


def test_geometric_links_are_mutual_exactly_when_ranges_are_equal() -> None:
    assert graphs.random_geometric(80, 0.3, spread=0.0, seed=1).is_undirected
    assert not graphs.random_geometric(80, 0.3, spread=0.5, seed=1).is_undirected


def test_a_hundred_thousand_agents_of_degree_ten() -> None:
    graph = graphs.regular(100_000, 10)
    assert graph.link_count == 1_000_000
    assert graph.is_strongly_connected


def test_a_graph_that_is_not_strongly_connected_names_who_cannot_be_reached() -> None:
    deaf = Digraph.from_edges(3, [(0, 1), (1, 0), (2, 0)], labels=["A", "B", "C"])
    assert deaf.hops_from(0).tolist() == [0, 1, -1]
    with pytest.raises(GraphError, match=r"^agent 2 \('C'\) cannot be reached from agent 0 \('A'\)"):
        deaf.require_strongly_connected()
    silent = Digraph.from_edges(3, [(0, 1), (1, 0), (0, 2)])
    with pytest.raises(GraphError, match=r"^agent 0 cannot be reached from agent 2:"):
        silent.require_strongly_connected()
    with pytest.raises(GraphError, match=r"agent 1, agent 2, agent 3 and 6 more cannot be reached from agent 0"):
        Digraph.from_edges(10, []).diameter()
    graphs.ring(4).require_strongly_connected()


@pytest.mark.parametrize(
    ("n", "edges", "message"),
    [
        (0, [], r"n = 0: it must be a whole number, 1 or more"),
        (2.0, [], r"n = 2\.0: it must be a whole number"),
        (True, [], r"n = True: it must be a whole number"),
        (3, [(0, 3)], r"edge \(0, 3\) is outside the graph: with n = 3, agents are 0 to 2"),
        (3, [(-1, 0)], r"edge \(-1, 0\)"),
        (3, [(0, 1, 2)], r"edges have shape \(1, 3\)"),
        (3, [(0, 1), (2,)], r"edges are not all pairs"),
        (3, [(0.0, 1.0)], r"edges hold float64 values"),
        (3, 5, r"edges = 5: give a list of \(source, target\)"),
        (3, {}, r"edges = {}: give a list"),
        (3, np.array(3), r"edges have shape \(\)"),
    ],
)
def test_bad_edges_are_refused(n: int, edges: list[tuple[int, int]], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        Digraph.from_edges(n, edges)


def test_bad_labels_and_arrays_are_refused() -> None:
    with pytest.raises(GraphError, match="got 2 labels for 3 agents"):
        Digraph.from_edges(3, [], labels=["A", "B"])
    with pytest.raises(GraphError, match="label 'A' is given to two agents"):
        Digraph.from_edges(2, [], labels=["A", "A"])
    with pytest.raises(GraphError, match="label 1 is not a string"):
        Digraph.from_edges(2, [], labels=[1, 2])
    for indptr, sources in (([0, 1, 2], [1, 0]), ([0, 2, 3], [1, 0, 1]), ([0, 1], [0]), ([0, 2, 3], [0, 5, 1])):
        with pytest.raises(GraphError, match="not the CSR arrays of a graph"):
            Digraph(2, np.array(indptr), np.array(sources))
    with pytest.raises(GraphError, match=r"agent 4 is not in the graph: its agents are 0 to 3"):
        graphs.ring(4).hops_from(4)
    with pytest.raises(GraphError, match=r"values of shape \(3,\) for a graph with 8 entries"):
        graphs.ring(4).matrix(np.ones(3))


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: graphs.erdos_renyi(50, 0.01), r"on average 30\.6 agents hear nobody .* p = 0\.13 or more"),
        (lambda: graphs.erdos_renyi(100_000, 1e-6), r"agents hear nobody"),
        (lambda: graphs.erdos_renyi(10, 0.0), r"p = 0\.0: the probability"),
        (lambda: graphs.erdos_renyi(10, float("nan")), r"p = nan"),
        (lambda: graphs.erdos_renyi(10, 0.5, seed=-1), r"seed = -1: it must be a whole number, 0 or more"),
        (lambda: graphs.random_geometric(50, 0.05), r"heard by nobody; a radius of 0\.42 or more would do"),
        (lambda: graphs.random_geometric(50, -1.0), r"radius = -1\.0"),
        (lambda: graphs.random_geometric(50, 0.5, spread=1.0), r"spread = 1\.0"),
        (lambda: graphs.regular(5, 5), r"degree = 5: with n = 5 the degree must be from 1 to 4"),
        (lambda: graphs.ring(0), r"n = 0"),
        (lambda: graphs.grid(0, 3), r"rows = 0"),
        (lambda: graphs.grid(3, 2.5), r"columns = 2\.5"),
    ],
)
def test_generators_say_why_they_cannot(draw, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        draw()


def test_the_suggested_density_does_connect() -> None:
    assert graphs.erdos_renyi(50, 0.13).is_strongly_connected
    assert graphs.random_geometric(50, 0.42).is_strongly_connected


def test_a_graph_cannot_be_changed_through_its_arrays_or_matrices() -> None:
    graph = graphs.ring(3)
    with pytest.raises(ValueError, match="read-only"):
        graph.sources[0] = 2
    matrix = graph.matrix(np.zeros(6))
    matrix.eliminate_zeros()
    assert graph.link_count == 3
