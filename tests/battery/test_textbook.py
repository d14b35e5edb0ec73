"""Every method is, iteration by iteration, what its paper prints."""

import numpy as np
import pytest

import d3gd
from tests.battery import textbook, theory
from tests.battery.cases import GRAPHS, initial_weights, name_of
from tests.helpers.methods import advance, every_method
from tests.helpers.stepping import network, random_network

METHODS = every_method(0.1)
# Where weights move by rules of their own, those rules have their own tests.
ELSEWHERE = ("D3GD exact", "PerronD3GD planned")


@pytest.mark.parametrize("method", [name for name in METHODS if not name.startswith(ELSEWHERE)])
def test_it_is_what_the_paper_prints(method):
    algorithm = METHODS[method]
    assert name_of(algorithm) in textbook.METHODS, (
        f"tests/battery/textbook has no {name_of(algorithm)}; write its recurrence there, dense, from its paper"
    )
    graph, weights = random_network(1)
    if algorithm.needs == "undirected links":
        graph = GRAPHS["undirected erdos-renyi"]
        weights = d3gd.weights.metropolis(graph)
    problem = d3gd.problems.quadratic(agents=6, dim=3, seed=1)
    x0 = np.random.default_rng(0).normal(size=(6, 3))
    net = network(algorithm, graph, weights)
    s = algorithm.init(net, x0)
    A = initial_weights(algorithm, graph, s, weights)
    path = textbook.METHODS[name_of(algorithm)](algorithm, A, theory.shares(A), problem.gradients, x0, 30)
    for k, expected in enumerate(path):
        np.testing.assert_allclose(algorithm.point(s), expected, rtol=0, atol=1e-12)
        s = advance(algorithm, net, problem, s, k)
