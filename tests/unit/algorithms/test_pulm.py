"""PULM-DGD: averages under weights that change, and cycles."""

import numpy as np
import pytest

import d3gd
from d3gd import Conditions
from d3gd.conditions.network import ConditionedNetwork
from tests.helpers.methods import advance
from tests.helpers.stepping import random_network

CHANGING = Conditions(links=0.7)


def cycle(method, graph, weights, problem, x0, iterations):
    """The states of a method on a network that changes in every round."""
    net = ConditionedNetwork(graph, weights, CHANGING)
    s, post = method.init(net, x0), net.close()
    for k in range(iterations):
        net.open(k, post)
        s = advance(method, net, problem, s, k)
        post = net.close()
        yield s


def test_one_long_cycle_is_a_step_along_the_mean_gradient_although_weights_change():
    graph, weights = random_network(3)
    problem = d3gd.problems.quadratic(agents=6, dim=3, seed=1)
    method = d3gd.PULMDGD(step_size=0.5, rounds=1000)
    x0 = np.tile(np.random.default_rng(0).normal(size=3), (6, 1))
    *_, s = cycle(method, graph, weights, problem, x0, 1000)
    np.testing.assert_allclose(s.W, 1 / 6, rtol=0, atol=1e-9)
    np.testing.assert_allclose(s.x, x0 - 0.5 * problem.gradients(x0).mean(axis=0), rtol=0, atol=1e-9)


def test_models_are_mixed_as_shares_say():
    """Z = Phi X - gamma W G with rows of Phi that sum to one: from equal models only W is left, in every round."""
    graph, weights = random_network(4)
    problem = d3gd.problems.quadratic(agents=6, dim=3, seed=2)
    x0 = np.ones((6, 3))
    for s in cycle(d3gd.PULMDGD(step_size=0.5, rounds=60), graph, weights, problem, x0, 60):
        np.testing.assert_allclose(s.z, x0 - 0.5 * s.W @ problem.gradients(x0), rtol=0, atol=1e-12)
        np.testing.assert_allclose(np.diag(s.W), 1 / 6)


def test_models_move_and_gradients_are_evaluated_once_per_cycle():
    graph, problem = d3gd.graphs.exponential(6), d3gd.problems.quadratic(agents=6, dim=3)
    seen = []
    fixed = d3gd.run(
        d3gd.PULMDGD(step_size=0.5, rounds=4, growing=False),
        graph,
        problem,
        iterations=12,
        every=1,
        metrics=["gradients"],
        callbacks=[lambda snapshot: seen.append(snapshot.x.copy())],
    )
    assert fixed.metrics["gradients"].tolist() == [0, *[1] * 4, *[2] * 4, *[3] * 4]
    moved = [k for k in range(12) if not np.array_equal(seen[k], seen[k + 1])]
    assert moved == [3, 7, 11]
    grown = d3gd.run(d3gd.PULMDGD(step_size=0.5, rounds=4), graph, problem, iterations=12, metrics=["gradients"])
    assert grown.metrics["gradients"][-1] == 3  # cycles of 4, 7 and 9 rounds


def test_growing_rounds_remove_the_bias_of_fixed_ones():
    graph, problem = d3gd.graphs.exponential(6), d3gd.problems.quadratic(agents=6, dim=3)

    def error(iterations, **settings):
        method = d3gd.PULMDGD(step_size=1.0, **settings)
        result = d3gd.run(method, graph, problem, iterations=iterations, metrics={})
        return np.abs(result.x - problem.optimum).max()

    assert error(4000, growing=False) > 0.5 * error(1000, growing=False)
    assert error(4000) < 0.2 * error(500)
    assert error(4000) < 0.05 * error(4000, growing=False)


@pytest.mark.parametrize("rounds", [0, 2.5, "many"])
def test_rounds_that_are_no_number_of_rounds_are_refused(rounds):
    with pytest.raises(d3gd.D3GDError, match="rounds"):
        d3gd.PULMDGD(step_size=0.1, rounds=rounds)
