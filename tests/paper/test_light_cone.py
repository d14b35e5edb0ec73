"""Information travels one link per iteration: no agent knows of distant data any sooner."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import d3gd
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
