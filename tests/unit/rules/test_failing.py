"""PerronD3GD where messages fail: what it forgets, what it sends, and where it ends."""

import networkx as nx
import numpy as np
import pytest

import d3gd
from d3gd import Conditions
from d3gd.conditions.network import ConditionedNetwork
from d3gd.problems import Problem
from tests.helpers.stepping import random_network

FOR_GOOD = 10**9


class Still(Problem):
    """No gradients."""

    def __init__(self, agents, dim):
        self.agents, self.dim = agents, dim

    def gradients(self, x, k=None):
        return np.zeros_like(x)


@pytest.mark.parametrize(
    "conditions",
    [Conditions(), Conditions(loss=0.5), Conditions(links=0.4)],
    ids=lambda conditions: ", ".join(conditions.hardships) or "ideal",
)
def test_a_sum_that_went_astray_is_forgotten_like_one_over_the_square_of_the_iteration(conditions):
    """If all corrections are off by c, models move in step: nothing counteracts it, but it fades."""
    graph, A = random_network(2)
    algorithm = d3gd.PerronD3GD(step_size=0.1)
    net = ConditionedNetwork(graph, A, conditions, needs=algorithm.needs)
    s, post, first = algorithm.init(net, np.zeros((6, 2))), net.close(), 10
    s = s._replace(v=np.tile([1.0, -3.0], (6, 1)))
    for k in range(first, 60):
        net.open(k, post)
        s = algorithm.step(net, lambda: np.zeros((6, 2)), s, k)
        post = net.close()
        left = first * (first + 1) / ((k + 1) * (k + 2))  # the product of 1 - 2 / (k + 2)
        np.testing.assert_allclose(s.v, np.tile([left, -3 * left], (6, 1)), rtol=1e-9)
        assert np.ptp(s.x, axis=0).max() <= 1e-12


def test_the_walk_of_the_weighted_sum_stays_small_under_loss():
    """What is lost makes the sum of corrections walk; forgetting keeps it far below the corrections themselves."""
    graph, A = random_network(3)
    problem, algorithm = d3gd.problems.quadratic(agents=6, dim=3, seed=3), d3gd.PerronD3GD(step_size=0.1)
    net = ConditionedNetwork(graph, A, Conditions(loss=0.5), needs=algorithm.needs)
    s, post, off = algorithm.init(net, np.zeros((6, 3))), net.close(), []
    for k in range(3000):
        net.open(k, post)
        s = algorithm.step(net, lambda s=s: problem.gradients(s.x), s, k)
        post = net.close()
        if k in (299, 2999):
            y = algorithm.scale(net, s)
            off.append(np.linalg.norm(y @ s.v / y.sum()) / np.sqrt(np.mean(np.sum(s.v**2, axis=1))))
    assert off[1] < off[0]
    assert off[1] < 0.02


def errors(conditions, seed, marks):
    """How far the weighted sum of corrections is from zero, and the mean model from the optimum, at some iterations."""
    graph, algorithm = d3gd.graphs.erdos_renyi(6, 0.4, seed=0), d3gd.PerronD3GD(step_size=0.1)
    problem = d3gd.problems.quadratic(agents=6, dim=3, seed=1)
    net = ConditionedNetwork(graph, d3gd.weights.metropolis(graph), conditions, needs=algorithm.needs, seed=seed)
    s, post, found = algorithm.init(net, np.zeros((6, 3))), net.close(), []
    for k in range(marks[-1] + 1):
        net.open(k, post)
        s = algorithm.step(net, lambda s=s: problem.gradients(s.x), s, k)
        post = net.close()
        if k in marks:
            y = algorithm.scale(net, s)
            found.append([np.linalg.norm(e) for e in (y @ s.v / y.sum(), s.x.mean(axis=0) - problem.optimum)])
    return np.array(found)


def test_the_bias_of_the_leak_falls_like_one_over_k():
    off = errors(Conditions(), 0, (500, 1000, 2000))[:, 1]
    assert off[1:] / off[:-1] == pytest.approx([0.5, 0.5], abs=0.01)


def test_under_independent_failures_walk_and_error_fall_at_least_like_one_over_the_root_of_k():
    """In the mean over seeds; faster while the bias of the leak, which falls like 1/k, is the larger part."""
    squares = [errors(Conditions(loss=0.3), seed, (250, 2000)) ** 2 for seed in range(4)]
    before, after = np.sqrt(np.mean(squares, axis=0))
    assert (after <= before / np.sqrt(2000 / 250)).all()


def test_a_network_that_fails_costs_the_traffic_of_di_dgd_and_a_number():
    graph, A = random_network(4)
    algorithm = d3gd.PerronD3GD(step_size=0.1)
    net = ConditionedNetwork(graph, A, Conditions(loss=0.2), needs=algorithm.needs)
    s, post = algorithm.init(net, np.zeros((6, 3))), net.close()
    before = net.bytes_sent  # a survey is no part of an iteration
    net.open(0, post)
    algorithm.step(net, lambda: np.ones((6, 3)), s, 0)
    assert net.bytes_sent - before == graph.link_count * 8 * (3 + 6 + 1)


def test_steady_gradients_count_as_no_noise_and_white_noise_counts_fully():
    graph, A = random_network(5)
    algorithm = d3gd.PerronD3GD(step_size=1e-9)
    rng = np.random.default_rng(0)
    for noisy in (False, True):
        net = ConditionedNetwork(graph, A, Conditions(loss=0.2), needs=algorithm.needs)
        s, post = algorithm.init(net, np.zeros((6, 50))), net.close()
        for k in range(800):
            g = rng.normal(size=(6, 50)) if noisy else np.ones((6, 50))
            net.open(k, post)
            s = algorithm.step(net, lambda g=g: g, s, k)
            post = net.close()
        assert s.rule.noise[:, 0] == pytest.approx(1.0 if noisy else 0.0, abs=0.05)


# Against averaged Di-DGD; the study (studies.plan) has more networks and iterations, and the targets ------------------

# Both metrics are squares of what falls like 1/k for PerronD3GD and stays for averaged Di-DGD. The targets after 4,000
# iterations are 1/30 and 1/1,000; after 1,000, disagreement may be 4^2 times as large.
SHORT = 1000


HARD = [Conditions(links=0.4), Conditions(loss=0.6), Conditions(pause=0.2, back=0.2), Conditions(delay=5)]


@pytest.mark.parametrize("conditions", HARD, ids=["links", "loss", "pauses", "delay"])
def test_it_ends_far_below_averaged_di_dgd(conditions):
    graph, problem = d3gd.graphs.erdos_renyi(6, 0.4, seed=0), d3gd.problems.quadratic(agents=6, dim=5, seed=0)
    methods = d3gd.PerronD3GD(step_size=0.1), d3gd.DiDGD(step_size=0.1, averaged=True)
    mine, theirs = (d3gd.run(m, graph, problem, iterations=SHORT, conditions=conditions) for m in methods)
    late = mine.iterations >= 0.8 * SHORT
    for metric, most in (("stationarity", 1 / 30), ("disagreement", 16 / 1000)):
        ratio = mine.metrics[metric][late] / theirs.metrics[metric][late]
        assert np.exp(np.mean(np.log(ratio))) <= most


# Agents that leave and join ---------------------------------------------------------------------------------------


def stays_connected(graph, gone):
    rest = graph.to_networkx()
    rest.remove_nodes_from(gone)
    return nx.is_strongly_connected(rest)


def optimum(problem, agents):
    Q, b = problem.Q[agents], problem.b[agents]
    return np.linalg.solve(Q.sum(axis=0), np.einsum("iab,ib->a", Q, b))


GRAPH = d3gd.graphs.erdos_renyi(10, 0.4, seed=1)


def test_once_agents_have_left_for_good_the_others_agree_on_their_own_optimum():
    assert stays_connected(GRAPH, [3, 7])
    problem, here = d3gd.problems.quadratic(agents=10, dim=3, seed=0), [0, 1, 2, 4, 5, 6, 8, 9]
    leave = Conditions(absences=[(3, 200, FOR_GOOD), (7, 400, FOR_GOOD)])
    seen = []
    d3gd.run(
        d3gd.PerronD3GD(step_size=0.1), GRAPH, problem, iterations=3000, every=1000, conditions=leave, metrics={},
        callbacks=[lambda snapshot: seen.append(snapshot.x[here])],
    )  # fmt: skip
    moved = np.abs(optimum(problem, here) - problem.optimum).max()
    off = [np.abs(x - optimum(problem, here)).max() / moved for x in seen]
    assert off[2] < 0.6 * off[1]  # what the others remember of those who left fades at least like 1/k
    assert off[3] < 0.05


# Six agents in a ring with chords, of whom 0 and 1 are heard by agent 6; only 7 hears 6, and only 2 hears 7.
LISTENED = d3gd.Digraph.from_edges(
    8, [*((i, (i + 1) % 6) for i in range(6)), (0, 3), (4, 1), (0, 6), (1, 6), (6, 7), (3, 7), (7, 2)]
)


@pytest.mark.parametrize(("back", "counted"), [(FOR_GOOD, range(6)), (600, range(8))], ids=["for good", "for a while"])
def test_an_agent_whom_nobody_hears_keeps_a_finite_step(back, counted):
    """Agent 7, who alone hears 6, is away from iteration 200 on; 6 follows the others, and counts once it is heard."""
    assert stays_connected(LISTENED, [6, 7])
    problem, seen = d3gd.problems.quadratic(agents=8, dim=3, seed=0), []
    result = d3gd.run(
        d3gd.PerronD3GD(step_size=0.1), LISTENED, problem, iterations=6000, every=3000,
        conditions=Conditions(absences=[(7, 200, back)]), metrics={},
        callbacks=[lambda snapshot: seen.append(snapshot.x[:7])],
    )  # fmt: skip
    assert result.status == "completed"
    best = optimum(problem, list(counted))
    moved = np.abs(optimum(problem, list(range(6))) - problem.optimum).max()
    off = [np.abs(x - best).max() / moved for x in seen]
    assert off[2] < 0.7 * off[1]
    assert off[2] < 0.05


def test_whoever_joins_late_counts_as_much_as_everyone_else():
    assert stays_connected(GRAPH, [3])
    problem = d3gd.problems.quadratic(agents=10, dim=3, seed=0)
    x0 = np.zeros((10, 3))
    x0[3] = 1e6  # it joins with its neighbours' model
    join = Conditions(absences=[(3, 0, 500)])
    seen = []
    d3gd.run(
        d3gd.PerronD3GD(step_size=0.1), GRAPH, problem, iterations=3000, every=500, conditions=join, metrics={}, x0=x0,
        callbacks=[lambda snapshot: seen.append(snapshot.x)],
    )  # fmt: skip
    moved = np.abs(optimum(problem, [0, 1, 2, 4, 5, 6, 7, 8, 9]) - problem.optimum).max()
    off = [np.abs(x - problem.optimum).max() for x in seen]
    assert np.abs(seen[1]).max() < 10  # by iteration 500 it has taken a model over
    assert off[-1] < 0.1 * moved
