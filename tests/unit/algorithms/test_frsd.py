"""FRSD: its correction, how large its gain may be, and changes of its step."""

import numpy as np
import pytest

import d3gd
from d3gd.problems import Problem
from d3gd.schedules import Decay
from tests.helpers.stepping import network, states


class Nothing(Problem):
    agents, dim = 10, 1

    def gradients(self, x, k=None):
        return np.zeros_like(x)


def largest_gain(A):
    """The exact bound, mode by mode, without gradients."""
    mu = np.linalg.eigvals(A)
    mu = mu[np.argsort(np.abs(mu - 1))[1:]]
    away = np.abs(1 - mu) ** 2
    return (2 * (1 - np.abs(mu) ** 2) * away / (away**2 + 4 * mu.imag**2)).min()


@pytest.mark.parametrize(("agents", "bound"), [(4, 0.4), (20, 0.012)])
def test_the_bound_that_the_docstring_names(agents, bound):
    found = largest_gain(d3gd.weights.metropolis(d3gd.graphs.ring(agents)).toarray())
    assert found == pytest.approx(bound, rel=0.05)


@pytest.mark.parametrize(("part", "settles"), [(0.9, True), (1.1, False)])
def test_gains_below_the_bound_settle_and_gains_above_do_not(part, settles):
    graph = d3gd.graphs.ring(10)
    weights = d3gd.weights.metropolis(graph)
    method = d3gd.FRSD(step_size=0.1, gain=part * largest_gain(weights.toarray()))
    x0 = np.random.default_rng(0).normal(size=(10, 1))
    path = states(method, graph, weights, Nothing(), 3000, x0=x0)
    assert (np.ptp(path[-1].x) < np.ptp(path[1000].x) / 2) == settles
    assert settles or np.ptp(path[-1].x) > 10 * np.ptp(x0)


@pytest.mark.parametrize("gain", [0.05, 0.2])
def test_the_limit_does_not_depend_on_the_gain(gain):
    graph, problem = d3gd.graphs.erdos_renyi(8, 0.3, seed=0), d3gd.problems.quadratic(agents=8, dim=3, seed=1)
    result = d3gd.run(d3gd.FRSD(step_size=0.05, gain=gain), graph, problem, iterations=6000, metrics={})
    assert np.abs(result.x - problem.optimum).max() < 1e-9


def test_a_change_of_the_step_does_not_drive_agents_apart():
    graph, problem = d3gd.graphs.ring(8), d3gd.problems.quadratic(agents=8, dim=3, seed=1)
    method = d3gd.FRSD(step_size=lambda k: 0.1 if k < 3000 else 0.01, gain=0.03)
    path = states(method, graph, d3gd.weights.metropolis(graph), problem, 3200)
    spread = [np.ptp(s.x, axis=0).max() for s in path]
    assert spread[3000] < 1e-8
    assert max(spread[3000:]) <= 2 * spread[3000]


def test_decaying_steps_work():
    graph, problem = d3gd.graphs.exponential(6), d3gd.problems.quadratic(agents=6, dim=3)
    result = d3gd.run(d3gd.FRSD(step_size=Decay(0.3, over=100)), graph, problem, iterations=3000, metrics={})
    assert np.abs(result.x - problem.optimum).max() < 1e-9


def test_corrections_cancel_under_the_perron_vector_in_single_precision():
    graph = d3gd.graphs.erdos_renyi(8, 0.3, seed=0)
    weights, problem = d3gd.weights.metropolis(graph), d3gd.problems.quadratic(agents=8, dim=3, seed=1)
    method, pi = d3gd.FRSD(step_size=0.1), d3gd.weights.perron(weights)
    last = states(method, graph, weights, problem, 3000, dtype=np.float32)[-1]
    assert np.abs(pi @ last.v).max() < 1e-11
    assert method.scale(network(method, graph, weights), last) == pytest.approx(pi)


def test_gains_that_are_no_gains_are_refused():
    with pytest.raises(d3gd.D3GDError, match="gain = 0: it must be a positive finite number"):
        d3gd.FRSD(step_size=0.1, gain=0)
