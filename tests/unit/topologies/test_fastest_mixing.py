"""Fastest mixing: closed forms, and a certificate that holds against all other weights."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import d3gd
from d3gd import graphs, topologies, weights
from d3gd.arrays import CSR, Floats
from d3gd.digraph import Digraph
from d3gd.errors import GraphError
from d3gd.topologies import certified_mixing, fastest_mixing
from tests.helpers.strategies import examples


def slem(A: CSR | Floats) -> float:
    W = A if isinstance(A, np.ndarray) else A.toarray()
    return float(np.sort(np.abs(np.linalg.eigvalsh(W)))[-2])


@st.composite
def undirected(draw: st.DrawFn) -> Digraph:
    n = draw(st.integers(2, 9))
    tree = [(draw(st.integers(0, i - 1)), i) for i in range(1, n)]
    more = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=12))
    pairs = [pair for pair in tree + more if pair[0] != pair[1]]
    return Digraph.from_edges(n, pairs + [(j, i) for i, j in pairs])


# A hub with some needless links: centres that are found too roughly leave a poor bound here.
HUB = [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (0, 6), (3, 4), (2, 4)]


@given(undirected(), st.integers(0, 10**6))
@example(Digraph.from_edges(7, HUB + [(j, i) for i, j in HUB]), 0)
@examples(15)
def test_no_other_weights_are_better_by_more_than_the_gap(graph: Digraph, seed: int) -> None:
    best = certified_mixing(graph)
    W = best.weights.toarray()
    assert np.array_equal(W, W.T)
    np.testing.assert_allclose(W.sum(axis=1), 1, atol=1e-12)
    assert best.weights.data.min() > 0
    weights.check(best.weights, graph)
    assert slem(best.weights) == pytest.approx(best.slem, abs=1e-12)
    assert -1e-12 <= best.gap <= 1e-6
    assert best.slem <= slem(weights.metropolis(graph)) + 1e-14
    rng = np.random.default_rng(seed)
    for _ in range(20):
        V = np.triu(rng.exponential(size=W.shape) * (W > 0), 1)
        V += V.T
        V *= rng.uniform(0, 1) / V.sum(axis=1).max()
        V += np.diag(1 - V.sum(axis=1))
        near = W + rng.choice([1e-2, 1e-4]) * (V - W)
        for other in (V, near):
            assert slem(other) >= best.bound - 1e-12


def assert_optimal(graph: Digraph, optimum: float) -> None:
    best = certified_mixing(graph)
    assert best.bound - 1e-12 <= optimum <= best.slem + 1e-12
    assert best.gap <= 1e-6


@pytest.mark.parametrize("n", [2, 3, 8])
def test_on_a_complete_graph_one_round_is_enough(n: int) -> None:
    best = certified_mixing(graphs.complete(n))
    assert best.slem < 1e-12
    assert best.gap < 1e-12


@pytest.mark.parametrize("n", [3, 5, 12])
def test_a_star_can_do_no_better_than_its_hub(n: int) -> None:
    assert_optimal(graphs.star(n), 1 - 1 / (n - 1))


@pytest.mark.parametrize("n", [3, 6, 7, 20])
def test_on_a_path_halves_are_best(n: int) -> None:
    halves = np.diag(np.full(n - 1, 0.5), 1) + np.diag(np.full(n - 1, 0.5), -1)
    halves[0, 0] = halves[-1, -1] = 0.5
    assert slem(halves) == pytest.approx(np.cos(np.pi / n), abs=1e-12)
    assert_optimal(Digraph.from_networkx(nx.path_graph(n)), np.cos(np.pi / n))


EDGE_TRANSITIVE = {
    "cycle of 6": nx.cycle_graph(6),
    "cycle of 9": nx.cycle_graph(9),
    "hypercube": nx.convert_node_labels_to_integers(nx.hypercube_graph(4)),
    "torus": nx.convert_node_labels_to_integers(nx.grid_2d_graph(5, 5, periodic=True)),
    "Petersen": nx.petersen_graph(),
    "three and three": nx.complete_bipartite_graph(3, 3),
    "two and five": nx.complete_bipartite_graph(2, 5),
    "octahedron": nx.octahedral_graph(),
}


@pytest.mark.parametrize("name", EDGE_TRANSITIVE)
def test_where_all_links_are_alike_one_weight_is_best(name: str) -> None:
    network = EDGE_TRANSITIVE[name]
    laplacian = np.linalg.eigvalsh(nx.laplacian_matrix(network).toarray().astype(float))
    slowest, fastest = laplacian[1], laplacian[-1]
    w = min(1 / max(dict(network.degree).values()), 2 / (slowest + fastest))
    assert_optimal(Digraph.from_networkx(network), max(1 - w * slowest, w * fastest - 1))


def test_it_mixes_strictly_faster_than_metropolis_on_an_uneven_graph() -> None:
    graph = Digraph.from_networkx(nx.barbell_graph(5, 0))
    assert certified_mixing(graph).bound < slem(weights.metropolis(graph)) - 0.01


def test_an_agent_alone_needs_no_weights() -> None:
    assert fastest_mixing(graphs.complete(1)).toarray().tolist() == [[1.0]]


def test_labels_and_order_of_agents_do_not_matter() -> None:
    one = Digraph.from_networkx(nx.path_graph(5))
    order = np.array([3, 0, 4, 1, 2])
    other = Digraph.from_edges(5, order[one.edges])
    assert certified_mixing(other).slem == pytest.approx(certified_mixing(one).slem, abs=1e-7)


def test_methods_run_with_them() -> None:
    graph, problem = graphs.grid(3, 3), d3gd.problems.quadratic(agents=9, dim=2)
    result = d3gd.run(
        d3gd.DiDGD(step_size=0.05), graph, problem, weights=topologies.fastest_mixing(graph), iterations=20
    )
    assert result.status == "completed"


def test_bad_input() -> None:
    with pytest.raises(GraphError, match="fastest mixing needs undirected links, but agent 0 hears agent 3 and"):
        fastest_mixing(graphs.ring(4))
    with pytest.raises(GraphError, match="not strongly connected"):
        fastest_mixing(Digraph.from_edges(4, [(0, 1), (1, 0), (2, 3), (3, 2)]))
    with pytest.raises(GraphError, match=r"on 2016 linked pairs.*up to 2000"):
        fastest_mixing(graphs.complete(64))
