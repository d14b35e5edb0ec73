"""Runs on an unreliable network: what they cost, what survives an interruption, and what is refused."""

from typing import NamedTuple

import numpy as np
import pytest

import d3gd
from d3gd import Conditions
from d3gd.conditions import Hardship
from d3gd.errors import D3GDError, GraphError, SettingsError
from d3gd.state import PerAgent, PerEdge
from tests.helpers.failing import AVERAGED, GRAPH, HALVES, PROBLEM, N, runs
from tests.unit.runs.test_files import same


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


def test_a_state_that_does_not_say_what_it_follows_is_refused_before_the_first_pause():
    class Silent(NamedTuple):
        x: np.ndarray

    class Method(Counting):
        def init(self, net, x0):
            return Silent(x0)

    with pytest.raises(D3GDError, match="field 'x' of Silent has no declared kind"):
        runs(Conditions(pause=0.1), Method())


def test_lost_and_late_messages_are_paid_for_and_absent_links_are_not():
    ideal = runs(None).metrics["bytes"]
    assert np.array_equal(runs(Conditions(loss=0.5)).metrics["bytes"], ideal)
    assert np.array_equal(runs(Conditions(delay=3)).metrics["bytes"], ideal)
    half = runs(Conditions(graphs=HALVES)).metrics["bytes"]
    assert np.array_equal(2 * half[::2], ideal[::2])  # after an even number of iterations, each link had half of them


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


# Agent 3 hears the others, who form a ring; agent 4 alone hears it.
HEARD_BY_ONE = d3gd.Digraph.from_edges(5, [(0, 1), (1, 2), (2, 0), (0, 3), (3, 4), (4, 1)])


def _averaged(conditions, method=AVERAGED):
    problem = d3gd.problems.quadratic(agents=5, dim=2, seed=0)
    return d3gd.run(method, HEARD_BY_ONE, problem, iterations=50, conditions=conditions, metrics={})


def test_graphs_that_leave_an_agent_unheard_are_refused_where_its_steps_would_grow():
    """The list never has the links (4, 1): 3 and 4 hear the ring, and are heard by themselves only."""
    lists = [d3gd.Digraph.from_edges(5, HEARD_BY_ONE.edges[HEARD_BY_ONE.edges[:, 0] != j]) for j in (4, 4)]
    with pytest.raises(SettingsError, match=r"agent 3, agent 4 would hear others, but nobody else .* out of agent 3"):
        _averaged(Conditions(graphs=lists))
    assert _averaged(Conditions(graphs=lists), d3gd.PerronD3GD(step_size=0.05)).status == "completed"
    with pytest.raises(SettingsError, match="out of agent 3"):  # an absence at first changes nothing
        _averaged(Conditions(graphs=lists, absences=[(1, 0, 2)]))
    halves = [d3gd.Digraph.from_edges(5, HEARD_BY_ONE.edges[i::2]) for i in range(2)]
    assert _averaged(Conditions(graphs=halves)).status == "completed"  # together they have all links


def test_absences_that_leave_an_agent_unheard_are_warned_of():
    with pytest.warns(UserWarning, match=r"without agent 4, from iteration 20 to 40, agent 3 would hear .* 4-fold"):
        _averaged(Conditions(absences=[(4, 20, 40)]))
    # The long part of an interval that another absence cuts, and the longer one of two.
    for absences in ([(4, 20, 40), (3, 20, 25)], [(4, 20, 40), (4, 20, 21)]):
        with pytest.warns(UserWarning, match=r"to 40, agent 3 would hear"):
            _averaged(Conditions(absences=absences))
    # Steps do not grow much; the others still hear each other.
    for harmless in ([(4, 1, 10)], [(3, 20, 40), (4, 20, 40)]):
        assert _averaged(Conditions(absences=harmless)).status == "completed"
