"""Rounds of mixing per iteration: the same as one round of a power of the weights, at as many times the bytes."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

import d3gd
from d3gd.conditions import Conditions
from d3gd.errors import SettingsError
from d3gd.rules.gain import gain_under
from d3gd.rules.mixing import mixing_weights
from d3gd.spectrum import modes
from tests.helpers.stepping import random_network

PLAIN = d3gd.PerronD3GD(step_size=0.1, rule="fixed", perron="known")


def _power(A, rounds):
    """The network on which one round does as much, and its weights."""
    W = np.linalg.matrix_power(A.toarray(), rounds)
    edges = [(j, i) for i, j in zip(*np.nonzero(W), strict=True) if i != j]
    return d3gd.Digraph.from_edges(len(W), edges), csr_array(W)


@pytest.mark.parametrize("rounds", [2, 3])
@pytest.mark.parametrize("correct", [True, False])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_rounds_are_one_round_of_a_power_of_the_weights(rounds, correct, momentum):
    graph, A = random_network(2)
    problem = d3gd.problems.quadratic(agents=graph.n, dim=3, seed=1)
    method = replace(PLAIN, correct=correct, momentum=momentum)
    several = d3gd.run(replace(method, rounds=rounds), graph, problem, iterations=60, weights=A)
    wider, W = _power(A, rounds)
    once = d3gd.run(method, wider, problem, iterations=60, weights=W)
    np.testing.assert_allclose(several.x, once.x, rtol=0, atol=1e-12)
    assert several.metrics["bytes"][-1] == rounds * 60 * graph.link_count * 3 * 8


def test_modes_are_those_of_the_power():
    A = random_network(2)[1]
    W = _power(A, 2)[1]
    np.testing.assert_allclose(np.sort_complex(modes(A) ** 2), np.sort_complex(modes(W)), atol=1e-12)
    assert gain_under(A, 0.9, rounds=2) == pytest.approx(gain_under(W, 0.9), rel=2e-3)  # three digits are kept


def test_where_modes_alternate_two_rounds_need_no_laziness():
    torus = d3gd.graphs.grid(4, 4, torus=True)  # modes in [-0.6, 0.6], whose squares do not alternate
    plain, once, twice = (mixing_weights(torus, *given) for given in [(0.0, 1.0), (0.9, 1.0), (0.9, 1.0, 1.0, 2)])
    assert np.array_equal(twice, plain)
    assert not np.array_equal(once, plain)


@pytest.mark.parametrize("compress", ["int8", "int4", "bf16"])
def test_under_compression_the_limit_is_still_the_optimum(compress):
    graph = d3gd.graphs.grid(3, 3, torus=True)
    problem = d3gd.problems.quadratic(agents=9, dim=100, seed=0)
    method = d3gd.Compressed(method=d3gd.PerronD3GD(step_size=0.4, rounds=2), compress=compress)
    result = d3gd.run(method, graph, problem, iterations=400)
    assert np.abs(result.x - problem.optimum).max() < 1e-9


def test_what_needs_other_weights_or_may_miss_a_message_is_refused():
    for choice in ({"rule": "planned"}, {"rule": "fixed", "perron": "tracked"}):
        with pytest.raises(SettingsError, match="rounds = 2"):
            d3gd.PerronD3GD(step_size=0.1, rounds=2, **choice)
    for rounds in (0, 101):
        with pytest.raises(SettingsError, match="rounds"):
            d3gd.QGAdam(step_size=0.1, rounds=rounds)
    graph, problem = d3gd.graphs.ring(4), d3gd.problems.quadratic(agents=4, dim=2)
    method = d3gd.PerronD3GD(step_size=0.1, rounds=2)
    for conditions, says in [
        (Conditions(loss=0.3), "relies on every message arriving at once, as rounds = 2 needs"),
        (Conditions(loss=0.3, biased=True), "every message to arrive at once; use rounds = 1"),
    ]:
        with pytest.raises(SettingsError, match=says):
            d3gd.run(method, graph, problem, iterations=3, conditions=conditions)
