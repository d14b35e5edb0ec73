"""What an unreliable network delivers, stores and counts."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import d3gd
from d3gd import Conditions
from d3gd.conditions import Hardship
from d3gd.conditions.network import ConditionedNetwork
from d3gd.conditions.settings import mask
from d3gd.errors import D3GDError, GraphError, SettingsError
from d3gd.state import PerAgent, PerEdge
from tests.helpers.strategies import examples
from tests.unit.runs.test_files import same

N = 6
GRAPH = d3gd.graphs.erdos_renyi(N, 0.6, seed=1)
WEIGHTS = d3gd.weights.metropolis(GRAPH)
LINKS = GRAPH.sources != GRAPH.targets
PROBLEM = d3gd.problems.quadratic(agents=N, dim=3)
AVERAGED = d3gd.DiDGD(step_size=0.05, averaged=True)


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


def runs(conditions, method=AVERAGED, **options):
    options = {"iterations": 40, "every": 10, "seed": 3} | options
    return d3gd.run(method, GRAPH, PROBLEM, conditions=conditions, **options)


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

HALVES = [d3gd.Digraph.from_edges(N, GRAPH.edges[::2]), d3gd.Digraph.from_edges(N, GRAPH.edges[1::2])]


def test_graphs_are_taken_in_turn_and_last_their_period():
    rounds = Rounds(Conditions(graphs=HALVES, period=3))
    for k in rounds.of(14):
        there = mask(GRAPH, HALVES[k // 3 % 2])
        assert np.array_equal(rounds.arrivals(), there)


def test_a_function_of_the_iteration_chooses_the_same_graphs():
    one = runs(Conditions(graphs=HALVES, period=3))
    other = runs(Conditions(graphs=lambda k: HALVES[k // 3 % 2]))
    assert np.array_equal(one.x, other.x)


def test_all_links_all_the_time_is_a_network_without_conditions():
    ideal = runs(None)
    for conditions in (Conditions(), Conditions(graphs=[GRAPH])):
        result = runs(conditions)
        assert np.array_equal(result.x, ideal.x)
        assert np.array_equal(result.metrics["bytes"], ideal.metrics["bytes"])


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


class Memory(NamedTuple):
    x: PerAgent
    e: PerEdge


class Counting:
    """Counts the iterations of agents and edges, and what arrives."""

    needs, survives, relies_on, exact = "in-neighbours", frozenset(Hardship.__args__), "", True

    def init(self, net, x0):
        return Memory(x0, np.zeros_like(net.a0))

    def point(self, s):
        return s.x

    def step(self, net, gradient, s, k):
        net.exchange(x=s.x)
        return Memory(s.x + 1, s.e + 1)

    def weights(self, net, s):
        return s.e

    def scale(self, net, s):
        return None


def test_who_is_away_keeps_its_memory_sends_nothing_and_comes_back():
    away = Conditions(absences=[(2, 10, 25), (4, 0, 50), (2, 20, 30)])
    result = d3gd.run(Counting(), GRAPH, PROBLEM, iterations=40, conditions=away, metrics=["bytes"])
    worked = np.array([40, 40, 20, 40, 0, 40])
    assert np.array_equal(result.x, np.repeat(worked[:, None], 3, axis=1))
    assert np.array_equal(result.weights.data, worked[GRAPH.targets])
    assert result.metrics["bytes"][-1] == 24 * (GRAPH.out_degrees * worked).sum()


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


def test_a_state_that_does_not_say_what_it_follows_is_refused_before_the_first_pause():
    class Silent(NamedTuple):
        x: np.ndarray

    class Method(Counting):
        def init(self, net, x0):
            return Silent(x0)

    with pytest.raises(D3GDError, match="field 'x' of Silent has no declared kind"):
        runs(Conditions(pause=0.1), Method())


# Traffic ----------------------------------------------------------------------------------------------------------


def test_lost_and_late_messages_are_paid_for_and_absent_links_are_not():
    ideal = runs(None).metrics["bytes"]
    assert np.array_equal(runs(Conditions(loss=0.5)).metrics["bytes"], ideal)
    assert np.array_equal(runs(Conditions(delay=3)).metrics["bytes"], ideal)
    half = runs(Conditions(graphs=HALVES)).metrics["bytes"]
    assert np.array_equal(2 * half[::2], ideal[::2])  # after an even number of iterations, each link had half of them


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


# Agents that join -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delay", [0, 2])
def test_an_agent_that_joins_late_starts_from_the_mean_of_what_it_hears(delay):
    conditions = Conditions(absences=[(2, 0, 9)], delay=delay, delays="all")
    x0 = np.zeros((N, 3))
    x0[2] = 1e6  # of no consequence
    seen = {}
    method = d3gd.PerronD3GD(step_size=0.05)
    d3gd.run(
        method, GRAPH, PROBLEM, iterations=12, every=1, x0=x0, conditions=conditions, metrics={},
        callbacks=[lambda snapshot: seen.update({snapshot.k: snapshot.x})],
    )  # fmt: skip
    assert all(np.array_equal(seen[k][2], x0[2]) for k in range(9))
    others = np.delete(seen[9], 2, axis=0)
    assert np.abs(others).max() < 10
    if delay == 0:
        assert (seen[9][2] >= others.min(axis=0) - 0.1).all()
        assert (seen[9][2] <= others.max(axis=0) + 0.1).all()
    assert np.abs(seen[12]).max() < 10
    # Whoever was there before keeps its model.
    later = Conditions(absences=[(2, 3, 9)])
    kept = []
    d3gd.run(
        method, GRAPH, PROBLEM, iterations=9, every=1, conditions=later, metrics={},
        callbacks=[lambda snapshot: kept.append(snapshot.x[2])],
    )  # fmt: skip
    assert np.array_equal(kept[3], kept[9])


# Resume -----------------------------------------------------------------------------------------------------------

EVERYTHING = Conditions(
    loss=0.2, links=0.8, graphs=HALVES, period=4, pause=0.1, absences=[(1, 15, 25)], delay=3, biased=True
)
METHODS = [
    AVERAGED,
    d3gd.DiDGD(step_size=0.05, warmup=8),
    d3gd.D3GD(step_size=0.02, rule="exact"),
    d3gd.PerronD3GD(step_size=0.02),
    d3gd.FROST(step_size=0.01),
    d3gd.PushPull(step_size=0.01),
]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_a_resumed_run_is_the_same_to_the_bit(method, tmp_path):
    whole = runs(EVERYTHING, method)
    runs(EVERYTHING, method, iterations=17, out=tmp_path, checkpoint_every=17)
    resumed = runs(EVERYTHING, method, out=tmp_path, resume=True)
    same(resumed, whole)
    with pytest.raises(D3GDError, match="holds another experiment"):
        runs(Conditions(loss=0.3, biased=True), method, out=tmp_path, resume=True)


def test_an_interrupted_iteration_may_be_begun_anew(tmp_path):
    class Hasty(d3gd.DiDGD):
        """Interrupted in the middle of a step, after the network has delivered."""

        left = 1

        def step(self, net, gradient, s, k):
            new = super().step(net, gradient, s, k)
            if k == 22 and Hasty.left:
                Hasty.left = 0
                raise KeyboardInterrupt
            return new

    method = Hasty(step_size=0.05, averaged=True)
    with pytest.raises(KeyboardInterrupt):
        runs(EVERYTHING, method, out=tmp_path)
    resumed = runs(EVERYTHING, method, out=tmp_path, resume=True)
    assert np.array_equal(resumed.x, runs(EVERYTHING, AVERAGED).x)


# What is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"loss": 1}, r"loss = 1: it must be a number in \[0, 1\)"),
        ({"loss": -0.1}, "loss = -0.1"),
        ({"links": 0}, r"links = 0: it must be a number in \(0, 1\]"),
        ({"pause": 1.0}, "pause = 1.0"),
        ({"back": 0.0}, "back = 0.0"),
        ({"delay": -1}, "delay = -1: it must be a whole number, 0 or more"),
        ({"delay": 1.5}, "delay = 1.5"),
        ({"period": 0}, "period = 0: it must be a whole number, 1 or more"),
        ({"delays": "some"}, "delays = 'some': choose 'each message' or 'each link' or 'all'"),
        ({"graphs": []}, "graphs is empty"),
        ({"absences": [(1, 5, 5)]}, r"absences holds \(1, 5, 5\)"),
        ({"absences": [(1, 5)]}, r"absences holds \(1, 5\)"),
    ],
)
def test_conditions_out_of_range_are_refused(arguments, message):
    with pytest.raises(SettingsError, match=message):
        Conditions(**arguments)


def test_graphs_and_agents_must_be_the_networks():
    complete = d3gd.graphs.complete(N)
    with pytest.raises(GraphError, match=r"lets agent \d hear agent \d, which the network does not"):
        runs(Conditions(graphs=[complete]))
    with pytest.raises(GraphError, match="has 3 agents, the network has 6"):
        runs(Conditions(graphs=[d3gd.graphs.ring(3)]))
    with pytest.raises(SettingsError, match="absences names agent 6, but agents are 0 to 5"):
        runs(Conditions(absences=[(6, 0, 1)]))


def test_a_method_that_would_be_biased_is_refused_by_name_with_its_reason():
    with pytest.raises(SettingsError, match="PushPull does not survive loss and delay: it relies on columns that sum"):
        runs(Conditions(loss=0.1, delay=2), d3gd.PushPull(step_size=0.01))


def test_a_biased_result_says_so(tmp_path):
    result = runs(Conditions(loss=0.1, biased=True), d3gd.PushPull(step_size=0.01), out=tmp_path)
    assert result.message.startswith("biased: PushPull does not survive loss")
    assert result.settings["biased"] == result.message
    assert result.settings["conditions"] == {"loss": 0.1}
    assert d3gd.Result.load(tmp_path).message == result.message
    unbiased = runs(Conditions(loss=0.1, biased=True))
    assert unbiased.message == ""
    assert "biased" not in unbiased.settings


def test_weights_planned_from_data_are_refused():
    with pytest.raises(SettingsError, match="PerronD3GD does not survive loss: it relies on all agents planning"):
        runs(Conditions(loss=0.1), d3gd.PerronD3GD(step_size=0.05, rule="planned"))
    with pytest.raises(SettingsError, match="planned from data need every message to arrive"):
        runs(Conditions(loss=0.1, biased=True), d3gd.PerronD3GD(step_size=0.05, rule="planned"))
