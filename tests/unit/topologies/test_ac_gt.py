"""AC-GT's pruning."""

import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import d3gd
from d3gd import graphs, weights
from d3gd.digraph import Digraph
from d3gd.errors import D3GDError
from d3gd.random import keyed_uniform
from d3gd.rules.pruning import given_up, order
from d3gd.topologies import ac_gt
from tests.helpers.strategies import examples


def links(graph: Digraph) -> set[tuple[int, int]]:
    return {(i, j) for i, j in graph.edges.tolist()}


@given(st.integers(2, 12), st.floats(0, 0.95), st.sampled_from([0.0, 2.0, math.inf]), st.integers(0, 10**6))
@examples(60)
def test_what_is_left_is_an_undirected_connected_part_of_the_graph(
    n: int, prune: float, sharpness: float, seed: int
) -> None:
    tree = nx.random_labeled_tree(n, seed=seed)
    graph = Digraph.from_networkx(nx.compose(tree, nx.gnp_random_graph(n, 0.5, seed=seed)))
    values = np.random.default_rng(seed).standard_normal((n, 3))
    pruned, A = ac_gt(graph, values, prune=prune, sharpness=sharpness, seed=seed)
    assert links(pruned) <= links(graph)
    assert pruned.is_undirected
    assert pruned.is_strongly_connected
    assert np.array_equal(A.toarray(), weights.metropolis(pruned).toarray())
    np.testing.assert_allclose(A.sum(axis=0), 1, atol=1e-12)
    # Of each agent's links, those it keeps itself may still go by the other end; the tree adds at most n - 1 pairs.
    most = np.sum(graph.in_degrees - np.floor(prune * graph.in_degrees))
    assert pruned.link_count <= most + 2 * (n - 1)


def test_it_prunes_between_the_alike_and_keeps_between_the_different() -> None:
    values = np.repeat([[0.0], [1.0]], 5, axis=0) + 0.01 * np.arange(10)[:, None]
    graph, _ = ac_gt(graphs.complete(10), values, prune=4 / 9)
    assert links(graph) == {(i, j) for i in range(10) for j in range(10) if (i < 5) != (j < 5)}


def test_pruning_nothing_changes_nothing_and_pruning_nearly_all_leaves_the_widest_tree() -> None:
    values = np.array([[0.0], [1.0], [3.0], [7.0]])
    assert links(ac_gt(graphs.complete(4), values, prune=0.0).graph) == links(graphs.complete(4))
    # Everyone is farthest from 3, but 3 itself from 0.
    assert links(ac_gt(graphs.complete(4), values, prune=0.99).graph) == {
        (3, 0), (0, 3), (3, 1), (1, 3), (3, 2), (2, 3)
    }  # fmt: skip


@pytest.mark.parametrize("sharpness", [1.5, math.inf])
def test_only_differences_relative_to_each_other_matter(sharpness: float) -> None:
    graph, values = graphs.complete(8), np.random.default_rng(0).standard_normal((8, 4))
    one = ac_gt(graph, values, sharpness=sharpness, seed=5).graph
    other = ac_gt(graph, 1024 * values - 64, sharpness=sharpness, seed=5).graph
    assert links(one) == links(other)


def test_draws_follow_the_probabilities_one_after_the_other() -> None:
    # Agents with three links at distances 0, 1 and 2, two of which go: the chance that a link stays is the sum over
    # the two orders in which the others go.
    d, beta, agents = np.array([0.0, 1.0, 2.0]), 0.8, 50000
    w = np.exp(-beta * d / d.mean())
    p = w / w.sum()
    chance = np.array([sum(p[a] * p[b] / (1 - p[a]) for a, b in ((x, y), (y, x))) for x, y in ((1, 2), (0, 2), (0, 1))])
    draws = keyed_uniform(0, np.arange(3 * agents), 0, 1)[:, 0]
    race = order(np.tile(d, agents), d.mean(), beta, draws)
    kept = ~given_up(np.repeat(np.arange(agents), 3), race, 0.7).reshape(agents, 3)
    assert np.all(kept.sum(axis=1) == 1)
    error = np.sqrt(chance * (1 - chance) / agents)
    assert np.all(np.abs(kept.mean(axis=0) - chance) < 5 * error)


def test_the_same_seed_prunes_the_same_links() -> None:
    graph, values = graphs.complete(9), np.arange(9.0)[:, None]
    prunings = [links(ac_gt(graph, values, sharpness=0.5, seed=seed).graph) for seed in (1, 1, 2)]
    assert prunings[0] == prunings[1] != prunings[2]


def test_equal_values_leave_a_connected_graph() -> None:
    for sharpness in (0.5, math.inf):
        assert ac_gt(graphs.complete(6), np.ones((6, 2)), sharpness=sharpness).graph.is_strongly_connected


def test_methods_run_with_it_and_labels_stay() -> None:
    square = Digraph.from_edges(4, graphs.complete(4).edges, "ABCD")
    problem = d3gd.problems.quadratic(agents=4, dim=2)
    graph, A = ac_gt(square, problem.gradients(np.zeros((4, 2))))
    assert graph.labels == ("A", "B", "C", "D")
    assert d3gd.run(d3gd.DiDGD(step_size=0.1), graph, problem, weights=A, iterations=5).status == "completed"


@pytest.mark.parametrize(
    ("graph", "values", "arguments", "words"),
    [
        (graphs.ring(3), np.ones((3, 1)), {}, "AC-GT needs undirected links"),
        (graphs.complete(3), np.ones((2, 1)), {}, "shape .2, 1.; give one row for each of the 3 agents"),
        (graphs.complete(2), [[1.0], [np.inf]], {}, "values of agent 1 hold NaN or infinite"),
        (graphs.complete(3), np.ones((3, 1)), {"prune": 1.0}, "prune = 1.0"),
        (graphs.complete(3), np.ones((3, 1)), {"sharpness": -1.0}, "sharpness = -1.0"),
        (graphs.complete(3), np.ones((3, 1)), {"sharpness": math.nan}, "sharpness = nan"),
        (graphs.complete(3), np.ones((3, 1)), {"seed": -1}, "seed = -1"),
    ],
)
def test_bad_input(graph: Digraph, values: np.ndarray, arguments: dict[str, float], words: str) -> None:
    with pytest.raises(D3GDError, match=words):
        ac_gt(graph, values, **arguments)  # type: ignore[arg-type]
