"""What an unreliable network delivers and stores."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import d3gd
from d3gd import Conditions
from d3gd.conditions.network import ConditionedNetwork
from d3gd.conditions.settings import mask
from d3gd.errors import SettingsError
from tests.helpers.failing import GRAPH, HALVES, N
from tests.helpers.strategies import examples

WEIGHTS = d3gd.weights.metropolis(GRAPH)
LINKS = GRAPH.sources != GRAPH.targets


class Rounds:
    """Iterations of a network, opened and closed as the engine does."""

    def __init__(self, conditions, graph=GRAPH, seed=0):
        self.graph = graph
        self.net = ConditionedNetwork(graph, d3gd.weights.metropolis(graph), conditions, seed=seed)
        self.post = self.net.close()

    def of(self, count):
        for k in range(count):
            self.net.open(k, self.post)
            yield k
            self.post = self.net.close()

    def arrivals(self):
        """Which edges arrived, as the verbs show it: an agent hears from others at least 1, from itself 0."""
        net = self.net
        rows = net.exchange(x=np.arange(1.0, net.n + 1)[:, None])
        heard = net.dot(np.ones((net.n, 1)), rows.x)
        return np.isclose(heard, self.graph.sources + 1)


# Rows and rates ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delay", [0, 2])
def test_what_comes_along_edges_is_what_agents_hear(delay):
    rounds = Rounds(Conditions(loss=0.4, delay=delay))
    for k in rounds.of(6):
        rows = rounds.net.exchange(x=np.arange(N)[:, None] + 10.0 * k).x
        heard = np.concatenate([values for _, values in rounds.net.heard(rows)])
        assert np.array_equal(rounds.net.along(rows), heard)
        assert np.array_equal(rounds.net.along(rows, slice(3, 7)), heard[3:7])
        theirs = rounds.net.along(rounds.net.exchange(i=np.arange(N)[:, None] + 0.0).i)[:, 0] == GRAPH.sources
        assert np.array_equal(rounds.net.arrived(), theirs)  # along the others comes the agent's own row
        assert not rounds.net.arrived().all()


def test_silence_that_two_ends_agree_on_is_refused():
    net = Rounds(Conditions(loss=0.4)).net
    with pytest.raises(SettingsError, match="every message to arrive at once"):
        net.exchange(over=~net.loops, x=np.ones((N, 1)))


@examples(25)
@given(
    loss=st.floats(0, 0.95),
    links=st.floats(0.05, 1),
    pause=st.floats(0, 0.9),
    delay=st.integers(0, 3),
    seed=st.integers(0, 99),
)
def test_rows_sum_to_one_over_whatever_arrives(loss, links, pause, delay, seed):
    rounds = Rounds(Conditions(loss=loss, links=links, pause=pause, delay=delay), seed=seed)
    net, weights = rounds.net, np.random.default_rng(seed).dirichlet(np.ones(N), size=N)
    a = weights[GRAPH.targets, GRAPH.sources]
    a /= net.spread(net.reduce(a))
    for _ in rounds.of(4):
        ones = net.mix(a, net.exchange(x=np.ones((N, 1))).x)
        assert np.abs(ones - 1).max() < 1e-14


def test_what_arrives_keeps_its_proportions_and_what_is_missing_counts_nothing():
    rounds = Rounds(Conditions(loss=0.5))
    for _ in rounds.of(20):
        eye = rounds.net.exchange(x=np.eye(N)).x
        arrived = rounds.arrivals()
        expected = np.where(arrived, WEIGHTS.data, 0.0)
        dense = GRAPH.matrix(expected).toarray()
        np.testing.assert_allclose(
            rounds.net.mix(WEIGHTS.data, eye), dense / dense.sum(axis=1, keepdims=True), atol=1e-15
        )


def test_an_agent_with_no_weight_on_itself_that_hears_nobody_keeps_its_own():
    graph = d3gd.graphs.ring(3)
    absent = Conditions(graphs=[d3gd.Digraph.from_edges(3, [])])
    rounds = Rounds(absent, graph)
    for _ in rounds.of(1):
        a = (graph.sources != graph.targets).astype(float)
        x = np.array([[1.0], [2.0], [4.0]])
        assert np.array_equal(rounds.net.mix(a, rounds.net.exchange(x=x).x), x)


@pytest.mark.parametrize("name", ["loss", "links"])
@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_every_edge_delivers_at_the_rate_asked_for(name, rate):
    conditions = Conditions(loss=1 - rate) if name == "loss" else Conditions(links=rate)
    rounds, count = Rounds(conditions), 1000
    mean = sum(rounds.arrivals().astype(float) for _ in rounds.of(count)) / count
    assert np.all(mean[~LINKS] == 1)
    # Five standard deviations of the mean of independent draws.
    assert np.abs(mean[LINKS] - rate).max() < 5 * np.sqrt(rate * (1 - rate) / count)


def test_edges_and_iterations_are_drawn_independently():
    rounds, count = Rounds(Conditions(loss=0.5)), 1000
    draws = np.array([rounds.arrivals()[LINKS] for _ in rounds.of(count)], dtype=float) - 0.5
    bound = 5 * 0.25 / np.sqrt(count)
    between = draws.T @ draws / count
    assert np.abs(between - np.diag(np.diag(between))).max() < bound
    assert np.abs((draws[1:] * draws[:-1]).mean(axis=0)).max() < bound


# Changing graphs --------------------------------------------------------------------------------------------------


def test_graphs_are_taken_in_turn_and_last_their_period():
    rounds = Rounds(Conditions(graphs=HALVES, period=3))
    for k in rounds.of(14):
        there = mask(GRAPH, HALVES[k // 3 % 2])
        assert np.array_equal(rounds.arrivals(), there)


# Delay ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delay", [1, 4])
def test_messages_that_are_all_late_arrive_as_they_were_sent_then(delay):
    rounds = Rounds(Conditions(delay=delay, delays="all"))
    sent = np.random.default_rng(0).normal(size=(15, N, 2))
    for k in rounds.of(15):
        inbox = rounds.net.exchange(x=sent[k])
        for agent, (places, rows) in enumerate(rounds.net.heard(inbox.x)):
            for source, row in zip(GRAPH.sources[places], rows, strict=True):
                then = k if source == agent or k < delay else k - delay  # nothing is there yet: one's own
                whose = agent if k < delay else source
                assert np.array_equal(row, sent[then, whose])


@pytest.mark.parametrize("kind", ["each message", "each link"])
def test_what_is_read_is_never_older_than_the_delay_nor_than_what_was_read_before(kind):
    delay, last = 3, np.full(len(GRAPH.sources), -1.0)
    rounds = Rounds(Conditions(delay=delay, delays=kind))
    ages = []
    for k in rounds.of(300):
        inbox = rounds.net.exchange(time=np.full((N, 1), float(k)))
        read = rounds.net.dot(np.ones((N, 1)), inbox.time)
        if k >= delay:
            assert np.all(read >= k - delay)
            assert np.all(read >= last)
            assert np.all(read[~LINKS] == k)
            ages.append(k - read)
            last = read
    fixed = np.ptp(np.array(ages), axis=0) == 0
    assert fixed.all() if kind == "each link" else not fixed[LINKS].any()
    assert {0, 1, 2, 3} == set(np.unique(ages))


def test_two_exchanges_of_one_iteration_travel_apart_under_one_name():
    rounds = Rounds(Conditions(delay=2, delays="all"))
    for k in rounds.of(6):
        first, second = (rounds.net.exchange(x=np.full((N, 1), value)).x for value in (k + 0.0, k + 100.0))
        if k >= 2:
            assert np.all(rounds.net.along(first)[LINKS] == k - 2)
            assert np.all(rounds.net.along(second)[LINKS] == k + 98)


def test_a_name_that_is_sent_now_and_then_is_not_read_once_it_is_too_old():
    rounds = Rounds(Conditions(delay=2, delays="all"))
    for k in rounds.of(12):
        rounds.net.exchange(always=np.zeros((N, 1)))
        if k in (0, 2, 10):
            seldom = rounds.net.exchange(seldom=np.full((N, 1), float(k))).seldom
            assert np.all(rounds.net.along(seldom)[LINKS] == (0 if k == 2 else k))


# Pauses -----------------------------------------------------------------------------------------------------------


def test_nothing_arrives_from_who_is_away():
    rounds = Rounds(Conditions(absences=[(2, 3, 6)]))
    for k in rounds.of(8):
        expected = np.ones_like(LINKS) if not 3 <= k < 6 else (GRAPH.sources != 2) | ~LINKS
        assert np.array_equal(rounds.arrivals(), expected)


def test_pauses_begin_and_end_at_their_rates():
    pause, back, count = 0.1, 0.3, 4000
    rounds = Rounds(Conditions(pause=pause, back=back))
    away = np.array([rounds.net.close().away for _ in rounds.of(count)])
    begins = (away[1:] & ~away[:-1]).sum() / (~away[:-1]).sum()
    ends = (~away[1:] & away[:-1]).sum() / away[:-1].sum()
    assert abs(begins - pause) < 5 * np.sqrt(pause * (1 - pause) / (~away).sum())
    assert abs(ends - back) < 5 * np.sqrt(back * (1 - back) / away.sum())


# Echoes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delays", ["each message", "each link", "all"])
def test_an_echo_is_the_own_message_of_the_same_age(delays):
    rounds = Rounds(Conditions(loss=0.2, delay=3, delays=delays))
    rng, told = np.random.default_rng(0), []
    for k in rounds.of(12):
        net = rounds.net
        # A model and, as a second message, the iteration at which it was sent.
        told.append(rng.normal(size=(N, 2)))
        received = net.exchange(m=told[-1], k=np.full((N, 1), float(k)))
        age = net.along(received.k)[:, 0].astype(int)
        own = np.array([told[when][agent] for when, agent in zip(age, GRAPH.targets, strict=True)])
        a = np.where(net.arrived(), net.a0, 0.0)
        a /= net.spread(net.reduce(a))
        expected = np.add.reduceat(a[:, None] * own, GRAPH.indptr[:-1])
        np.testing.assert_allclose(net.echo(net.a0, received.m, told[-1]), expected, rtol=0, atol=1e-13)
    assert (age < k)[LINKS].any()


@examples(20)
@given(
    delay=st.integers(0, 4),
    loss=st.floats(0, 0.8),
    links=st.floats(0.3, 1),
    delays=st.sampled_from(["each message", "all"]),
)
def test_agents_that_move_in_step_see_no_disagreement_however_late_messages_are(delay, loss, links, delays):
    rounds = Rounds(Conditions(loss=loss, links=links, delay=delay, delays=delays))
    for k in rounds.of(10):
        m = np.tile([np.sin(k), 0.5 * k], (N, 1))
        received = rounds.net.exchange(m=m).m
        apart = rounds.net.echo(rounds.net.a0, received, m) - rounds.net.mix(rounds.net.a0, received, double=True)
        assert np.abs(apart).max() <= 1e-14
