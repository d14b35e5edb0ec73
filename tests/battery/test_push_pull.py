"""Push-Pull: the sum it conserves, and where it comes to rest."""

import numpy as np
import pytest

import d3gd
from tests.paper.stepping import network, random_network


def test_the_pushed_sum_is_that_of_all_gradients():
    graph, A = random_network(1, n=7)
    problem = d3gd.problems.quadratic(agents=7, dim=3, seed=1)
    algorithm = d3gd.PushPull(step_size=0.05)
    net = network(algorithm, graph, A)
    s = algorithm.init(net, np.zeros((7, 3)))
    for k in range(40):
        g = problem.gradients(algorithm.point(s), k)
        s = algorithm.step(net, g, s, k)
        # What is kept is C s^k, whose columns sum to one.
        np.testing.assert_allclose(s.s.sum(axis=0), g.sum(axis=0), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("graph", [d3gd.graphs.erdos_renyi(8, 0.4, seed=1), d3gd.graphs.star(6)])
def test_it_reaches_the_optimum_of_quadratics(graph):
    problem = d3gd.problems.quadratic(agents=graph.n, dim=3, seed=0)
    result = d3gd.run(d3gd.PushPull(step_size=0.1), graph, problem, iterations=3000, every=3000)
    np.testing.assert_allclose(result.x, np.tile(problem.optimum, (graph.n, 1)), atol=1e-9)
