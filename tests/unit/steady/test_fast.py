"""Weights for fast mixing: on the graph, without starved agents, quieter than what they start from."""

import numpy as np
import pytest
from hypothesis import given
from scipy.linalg import solve_discrete_lyapunov

import d3gd
from d3gd.spectrum import modes, perron
from d3gd.steady.fast import fast_weights
from d3gd.weights import balanced, metropolis
from tests.helpers.strategies import digraphs, examples


def bridge(side):
    """Two complete networks, joined by a link each way."""
    cliques = [(o + i, o + j) for o in (0, side) for i in range(side) for j in range(side) if i != j]
    return d3gd.Digraph.from_edges(2 * side, [*cliques, (0, side), (side, 0)])


GRAPHS = {
    "star": d3gd.graphs.star(12),
    "bridge": bridge(6),
    "ring": d3gd.graphs.ring(10),
    "random": d3gd.graphs.erdos_renyi(20, 0.2, seed=0),
    "grid": d3gd.graphs.grid(4, 5),
    "exponential": d3gd.graphs.exponential(16),
}


def noise(A):
    """The steady variance of deviations from the mean, under white noise in everyone's gradients."""
    A = A.toarray()
    n, pi = len(A), perron(A)
    B = A - pi
    D = B / (n * pi)
    P = solve_discrete_lyapunov(B, D @ D.T)
    return np.trace(P) - P.sum() / n


@pytest.mark.parametrize("name", GRAPHS)
def test_less_noise_passes_than_under_balanced_and_metropolis_weights(name):
    graph = GRAPHS[name]
    found = noise(graph.matrix(fast_weights(graph)))
    assert found <= noise(balanced(graph)) * (1 + 1e-9)
    assert found <= noise(metropolis(graph)) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("name", "least"),
    [("star", 0.6), ("bridge", 0.7), ("random", 0.75), ("grid", 0.75), ("ring", 1.0), ("exponential", 1)],
)
def test_some_balance_is_given_up_for_it_but_nobody_is_starved(name, least):
    graph = GRAPHS[name]
    assert graph.n * perron(graph.matrix(fast_weights(graph))).min() >= least * (1 - 1e-9)


@pytest.mark.parametrize(("name", "factor"), [("star", 10.0), ("bridge", 3.0)])
def test_where_links_are_scarce_much_less_passes(name, factor):
    graph = GRAPHS[name]
    assert noise(graph.matrix(fast_weights(graph))) <= noise(balanced(graph)) / factor


@examples(25)
@given(graph=digraphs(max_n=10))
def test_rows_sum_to_one_nobody_is_starved_and_no_mode_alternates_much(graph):
    a = fast_weights(graph)
    A = graph.matrix(a)
    assert a.shape == graph.sources.shape
    assert (a > 0).all()
    assert A.sum(axis=1) == pytest.approx(1)
    assert graph.n * perron(A).min() >= 0.5  # the penalty is soft: small stars come closest
    assert modes(A).real.min(initial=0.0) >= -0.6 - 1e-9
    assert noise(A) <= noise(balanced(graph)) * (1 + 1e-6) if graph.n > 1 else True
    assert np.array_equal(fast_weights(graph), a)  # so that all agents choose the same
