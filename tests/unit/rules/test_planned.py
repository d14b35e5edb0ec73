"""Planned weights: sketches cross each edge once, and all agents compute the same weights."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import d3gd
from d3gd.network import Network
from d3gd.rules import planned
from d3gd.rules.base import Now
from d3gd.rules.flood import no_flood, pass_on, start
from d3gd.rules.planned import Planned
from tests.helpers.stepping import network, random_network, states
from tests.helpers.strategies import digraphs, examples, row_stochastic
from tests.unit.algorithms.test_perron import Diagonal


def plans_at(rounds, until):
    """The iterations at which plans are made, and those at which floods begin."""
    floods = sorted({planned._tellings(k, rounds)[1] for k in range(until)})
    return [k + rounds for k in floods if k + rounds < until], [k for k in floods if k < until]


# Floods -----------------------------------------------------------------------------------------------------------


@examples(40)
@given(graph=digraphs(max_n=10), length=st.integers(1, 5), seed=st.integers(0, 10**6))
def test_after_r_rounds_an_agent_knows_exactly_those_within_r_links(graph, length, seed):
    net = Network(graph, d3gd.weights.uniform(graph), needs="the network")
    rows = np.random.default_rng(seed).normal(size=(graph.n, length))
    hops = np.array([graph.hops_from(agent) for agent in range(graph.n)]).T  # hops[i, l]: from l to i
    flood = start(net, rows)
    for r in range(graph.diameter() + 3):
        assert np.array_equal(flood.known, hops <= r)
        assert np.array_equal(flood.fresh, hops == r)
        assert np.array_equal(flood.table, np.where((hops <= r)[..., None], rows, 0.0))
        flood = pass_on(net, flood)
    assert not flood.fresh.any()
    # Every row has crossed every link once, with the number of the agent it is about.
    assert net.bytes_sent == graph.link_count * graph.n * (8 * length + 8)


@examples(20)
@given(graph=digraphs(max_n=10))
def test_a_flood_of_as_many_rounds_as_the_diameter_is_complete_and_counted(graph):
    net = Network(graph, d3gd.weights.uniform(graph), needs="the network")
    rows = np.arange(3.0 * graph.n).reshape(graph.n, 3)
    flood = start(net, rows)
    rounds = graph.diameter()
    for _ in range(rounds):
        flood = pass_on(net, flood)
    assert flood.known.all()
    assert (flood.table == rows).all()
    # What an agent hears in the last round it need not pass on.
    crossings = sum(int((graph.hops_from(agent)[graph.edges[:, 0]] < rounds).sum()) for agent in range(graph.n))
    assert net.bytes_sent == crossings * (3 * 8 + 8) <= graph.link_count * graph.n * 32


def test_a_flood_that_has_not_begun_sends_nothing():
    graph, A = random_network(0)
    net = Network(graph, A, needs="the network")
    flood = pass_on(net, no_flood(net, 4))
    assert net.bytes_sent == 0
    assert not flood.known.any()


# The calendar -----------------------------------------------------------------------------------------------------


@examples(40)
@given(rounds=st.integers(0, 200))
def test_floods_end_in_a_plan_before_the_next_begins_ever_further_apart(rounds):
    plans, begins = plans_at(rounds, 1500)
    assert begins[0] == 5
    assert plans == [begin + rounds for begin in begins if begin + rounds < 1500]
    apart = np.diff(begins)
    assert (apart >= max(50, rounds + 1)).all()
    assert (np.diff(apart) >= -1).all()


def test_weights_change_at_plans_only():
    graph, A = random_network(1)
    algorithm = d3gd.PerronD3GD(step_size=0.05, rule="planned")
    path = states(algorithm, graph, A, Diagonal(6, 3), 130)
    changes = [k for k in range(130) if not np.array_equal(path[k].rule.now.a, path[k + 1].rule.now.a)]
    assert changes == plans_at(graph.diameter(), 130)[0]


# What is told -----------------------------------------------------------------------------------------------------


class Noisy(Diagonal):
    """Gradients that stay where they are, but for noise of known variance."""

    def __init__(self, agents, dim, deviation):
        super().__init__(agents, dim, seed=5)
        self.deviation = deviation

    def gradients(self, x, k=None):
        noise = np.random.default_rng([1, k]).normal(size=(self.agents, self.dim))
        return self.b + self.deviation[:, None] * noise


def test_what_agents_tell_estimates_mean_and_variance_of_their_gradients():
    graph, A = random_network(2)
    deviation = np.array([0.0, 0.5, 1.0, 1.0, 2.0, 3.0])
    problem = Noisy(6, 60, deviation)  # no longer than a sketch
    algorithm = d3gd.PerronD3GD(step_size=0.01, rule="planned", correct=False)
    begins = plans_at(graph.diameter(), 1500)[1][1:]
    told = []
    for k, s in enumerate(states(algorithm, graph, A, problem, begins[-1] + 1)):
        if k - 1 in begins:
            told.append(s.rule.flood.table[np.arange(6), np.arange(6)])
    mean, variance = np.mean(told, axis=0)[:, :-1], np.mean(told, axis=0)[:, -1]
    assert variance == pytest.approx(60 * deviation**2, rel=0.2)
    # One average has the share (1 - m) / (1 + m) of the variance; these stand far apart, so they average out.
    share = (1 - planned._MEMORY) / (1 + planned._MEMORY) / len(told)
    assert (np.sum((mean - problem.b) ** 2, axis=1) <= 2 * share * 60 * deviation**2 + 1e-20).all()


def test_gradients_that_do_not_change_are_told_exactly_and_without_variance_from_the_start():
    graph, A = random_network(2)
    problem = Noisy(6, 60, np.zeros(6))
    algorithm = d3gd.PerronD3GD(step_size=0.01, rule="planned", correct=False)
    s = states(algorithm, graph, A, problem, 6)[-1]
    told = s.rule.flood.table[np.arange(6), np.arange(6)]
    assert np.allclose(told[:, :-1], problem.b, rtol=1e-12)
    assert (told[:, -1] == 0).all()


def test_averages_begin_anew_before_they_are_told():
    graph, A = random_network(2)
    begin = plans_at(graph.diameter(), 400)[1][-1]

    class Switched(Noisy):
        def gradients(self, x, k=None):
            old = k < begin - planned._WINDOW
            return super().gradients(x, 1000 + k if old else k) + (7.0 if old else 0.0)

    algorithm = d3gd.PerronD3GD(step_size=0.01, rule="planned", correct=False)
    told = []
    for problem in (Noisy(6, 60, np.ones(6)), Switched(6, 60, np.ones(6))):
        told.append(states(algorithm, graph, A, problem, begin + 1)[-1].rule.flood.table)
    assert np.array_equal(told[0], told[1])


# Plans ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("corrected", [True, False])
@examples(8)
@given(graph=digraphs(min_n=2, max_n=8), data=st.data())
def test_every_agent_plans_the_same_bits_from_its_own_table(corrected, graph, data):
    A = data.draw(row_stochastic(graph))
    problem = Diagonal(graph.n, 70, data.draw(st.integers(0, 99)))
    algorithm = d3gd.PerronD3GD(step_size=0.02, rule="planned", correct=corrected)
    rule, net = Planned(corrected), network(algorithm, graph, A)
    k = data.draw(st.sampled_from(plans_at(graph.diameter(), 80)[0]))
    s = states(algorithm, graph, A, problem, k)[-1]
    g, table = problem.gradients(s.x, k), s.rule.flood.table
    plans = []
    for agent in range(graph.n):
        alone = s.rule._replace(flood=s.rule.flood._replace(table=np.repeat(table[agent : agent + 1], graph.n, axis=0)))
        plans.append(rule.begin(net, alone, Now(k=k, gamma=0.02, g=g, v=s.v)).now)
    for plan in plans:
        assert np.array_equal(plan.a, plans[0].a)
        assert np.array_equal(plan.pi, plans[0].pi)
        assert plan.gain == plans[0].gain
    assert np.array_equal(algorithm.step(net, lambda: g, s, k).rule.now.a, plans[0].a)


def test_under_constant_gradients_models_settle_where_the_plan_said():
    class Linear(Diagonal):
        def gradients(self, x, k=None):
            return self.b - self.b.mean(axis=0)

    graph, A = random_network(4, n=8)
    problem = Linear(8, 5)
    algorithm = d3gd.PerronD3GD(step_size=0.1, rule="planned", correct=False)
    s = states(algorithm, graph, A, problem, 1100)[-1]  # the last plan is made before iteration 850
    weights = graph.matrix(s.rule.now.a)
    G = problem.gradients(s.x)
    planned_for = d3gd.theory.steady_disagreement(weights, G, 0.1, "after")
    assert 2 / 8 * np.sum((s.x - s.x.mean(axis=0)) ** 2) == pytest.approx(planned_for, rel=1e-6)
    assert planned_for < 0.5 * d3gd.theory.steady_disagreement(A, G, 0.1, "after")
