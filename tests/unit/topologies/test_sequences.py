import math

import numpy as np
import pytest

import d3gd
from d3gd.errors import GraphError
from d3gd.topologies import base_graph, one_peer_exponential, union
from tests.helpers.mixing import doubly_stochastic, product


@pytest.mark.parametrize("n", [2, 4, 8, 32])
def test_the_one_peer_exponential_graph_averages_powers_of_two_exactly(n):
    steps = one_peer_exponential(n)
    doubly_stochastic(steps)
    assert len(steps) == math.log2(n)
    assert all(step.graph.link_count == n for step in steps)  # one link into each agent
    assert np.allclose(product(steps), 1 / n, atol=1e-14)
    assert set(map(tuple, union(steps).edges.tolist())) == set(map(tuple, d3gd.graphs.exponential(n).edges.tolist()))


def test_the_one_peer_exponential_graph_does_not_average_other_numbers():
    steps = one_peer_exponential(6)
    doubly_stochastic(steps)
    assert not np.allclose(product(steps), 1 / 6, atol=1e-3)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_the_base_graph_averages_any_number_of_agents_exactly(k):
    for n in [*range(2, 40), 64, 100]:
        if k >= n:
            continue
        steps = base_graph(n, k)
        doubly_stochastic(steps)
        assert np.allclose(product(steps), 1 / n, atol=1e-13), n
        assert len(steps) <= 2 * math.log(n, k + 1) + 2 + 1e-9
        for step in steps:
            W = step.weights.toarray()
            assert np.array_equal(W, W.T)
            assert (np.count_nonzero(W - np.diag(np.diag(W)), axis=1) <= k).all()


@pytest.mark.parametrize(
    ("n", "k", "steps"), [(5, 1, 5), (6, 1, 4), (16, 1, 4), (12, 2, 3), (10, 1, 6), (25, 4, 2), (7, 3, 3), (24, 3, 3)]
)
def test_the_base_graph_is_as_short_as_the_papers(n, k, steps):
    assert len(base_graph(n, k)) == steps


@pytest.mark.parametrize("steps", [one_peer_exponential(8), base_graph(12, 2)], ids=["exponential", "base"])
def test_a_run_uses_the_links_in_turn_and_averages_in_one_period(steps):
    graph = union(steps)
    problem = d3gd.problems.from_functions(agents=graph.n, dim=2, gradient=lambda agent, x: 0 * x)  # mixing alone
    start = np.random.default_rng(0).normal(size=(graph.n, 2))
    result = d3gd.run(
        d3gd.DiDGD(step_size=0.1, averaged=True),
        graph,
        problem,
        iterations=3,
        x0=start,
        weights=d3gd.weights.uniform(graph),
        conditions=d3gd.Conditions(graphs=[step.graph for step in steps]),
        metrics=["disagreement"],
    )
    assert np.allclose(result.x, start.mean(axis=0), atol=1e-12)


@pytest.mark.parametrize("call", [lambda: base_graph(4, 4), lambda: one_peer_exponential(1), lambda: union([])])
def test_what_cannot_be_is_refused(call):
    with pytest.raises(GraphError):
        call()
