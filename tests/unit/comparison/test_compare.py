"""Whole comparisons: results for methods with known ones, and errors."""

import json
from typing import get_args

import numpy as np
import pytest

import d3gd
from d3gd.algorithms.catalogue import methods as catalogue
from d3gd.comparison import text as compare_text
from d3gd.comparison.methods import HARDENED, VARIANTS, chosen, named, usual
from d3gd.comparison.scenario import FromFile, Given
from d3gd.conditions import Hardship
from d3gd.config.experiment import load
from d3gd.errors import D3GDError, GraphError, ProblemError, SettingsError
from tests.helpers.comparing import Distance, Idle, compared


def test_the_cost_of_a_target_is_that_of_a_geometric_sequence():
    problem = Distance()
    start = float(np.square(problem.global_gradients(np.zeros((1, 3)))).sum())
    found = compared(only=["Centralized"], problem=problem, steps=[0.1], target=start * 0.9 ** (2 * 12.5))
    assert found.row("Centralized").cost.iterations == pytest.approx(12.5)
    assert found.row("Centralized").cost.bytes == 0


def test_a_method_that_stands_still_is_last_and_says_so_and_copies_tie():
    own = {"idle": lambda gamma: Idle(step_size=gamma), "copy": named("PerronD3GD")}
    found = compared(methods=own, only=["idle", "PerronD3GD", "copy", "Centralized"])
    assert {one.method: one.rank for one in found.rows} == {"Centralized": None, "PerronD3GD": 1, "copy": 2, "idle": 3}
    assert "no better than the start" in found.row("idle").note
    assert (found.row("PerronD3GD").ties, found.row("copy").ties, found.row("idle").ties) == ((2,), (1,), ())
    assert found.row("idle").step == 0.1  # the smallest among equals
    assert not np.isfinite(found.row("idle").cost.iterations)
    assert found.row("idle").numbers == 3


def test_what_diverges_fails_or_cannot_run_is_listed_and_the_rest_go_on():
    own = {
        "broken": lambda gamma: Idle(step_size=gamma, fault="no such thing"),
        "unmade": lambda gamma: 1 / 0,
        "wild": lambda gamma: d3gd.DiDGD(step_size=1e6 * gamma),
    }
    found = compared(methods=own, only=[*own, "DGD", "PerronD3GD"], iterations=200)
    assert {one.method: one.status for one in found.rows} == {
        "PerronD3GD": "ranked", "wild": "diverged", "DGD": "refused", "broken": "failed", "unmade": "failed"
    }  # fmt: skip
    assert found.row("broken").note == "ValueError: no such thing"
    assert found.row("unmade").note == "ZeroDivisionError: division by zero"
    assert found.row("DGD").note == "needs undirected links"
    assert "every step" in found.row("wild").note


def test_a_method_that_mixes_what_nobody_sent_is_not_ranked():
    class Free(Idle):
        def step(self, net, gradient, s, k):
            return s._replace(x=net.mix(net.a0, s.x) - self.step_size * gradient())

    found = compared(methods={"free": lambda gamma: Free(step_size=gamma)}, only=["free", "PerronD3GD"])
    assert {one.method: one.status for one in found.rows} == {"PerronD3GD": "ranked", "free": "failed"}


def test_an_undirected_graph_admits_every_method():
    grid = d3gd.graphs.grid(2, 2)
    found = compared(graph=grid, only=None, iterations=10, seeds=1, steps=[0.1])
    assert {one.method for one in found.rows} == {*catalogue(), *VARIANTS}
    assert {one.status for one in found.rows} == {"ranked", "yardstick"}
    uneven = d3gd.compare(
        d3gd.graphs.star(4),
        Distance(),
        weights=d3gd.weights.uniform,
        only=["DGD", "DiDGD"],
        iterations=5,
        steps=[0.1],
        seeds=1,
        jobs=1,
    )
    assert uneven.row("DGD").note == "needs symmetric weights"


def test_nobody_who_shares_gradient_descents_step_beats_it_where_it_solves_at_once():
    # With one step gamma = 1 gradient descent is at the optimum of this problem; nobody ends below rounding.
    found = compared(only=None, steps=[1.0], iterations=5, seeds=1)
    best = found.row("Centralized").value.median
    assert best < 1e-20
    assert all(one.value.median >= best for one in found.rows)


def test_disagreement_ranks_but_does_not_tune():
    # It alone would choose the smallest step, with which nobody moves.
    found = compared(only=["DiDGD"], metric="disagreement", iterations=200, steps=[1e-6, 0.1])
    assert (found.metric, found.tuned_by) == ("disagreement", "stationarity")
    assert found.row("DiDGD").step == 0.1
    assert found.row("DiDGD").value.median == found.row("DiDGD").disagreement


def test_what_does_not_survive_the_network_is_shown_as_biased_and_what_does_is_not():
    found = compared(only=["DiDGD", "DiDGD averaged=true", "Centralized"], conditions=d3gd.Conditions(loss=0.3))
    assert "biased by loss" in found.row("DiDGD").note
    assert "biased" not in found.row("DiDGD averaged=true").note + found.row("Centralized").note
    assert found.row("DiDGD").status == "ranked"
    assert set(HARDENED) == set(usual(d3gd.Conditions(delay=1))) - set(usual())
    for words in HARDENED:
        assert named(words)(0.1).survives == set(get_args(Hardship))


def test_seeds_that_draw_the_same_are_told():
    same = compared(problem=Distance())
    assert "Every seed draws the same network" in " ".join(compare_text.reading(same))
    assert same.row("PerronD3GD").value.low == same.row("PerronD3GD").value.high
    assert "Every seed" not in " ".join(compare_text.reading(compared()))


def test_a_network_is_drawn_from_the_seed_and_weights_from_the_network():
    given = Given(lambda seed: d3gd.graphs.ring(3 + seed), lambda seed: Distance(3 + seed), d3gd.weights.uniform)
    assert [given.case(seed).graph.n for seed in (0, 2)] == [3, 5]
    assert given.case(1).weights.shape == (4, 4)


@pytest.mark.parametrize(
    ("conditions", "words"),
    [
        ({}, ""),
        ({"loss": 0.2, "delay": 3, "biased": True}, ", loss=0.2 delay=3"),
        ({"pause": 0.1, "absences": [[0, 1, 2], [1, 1, 2]]}, ", pause=0.1 2 absences"),
        ({"absences": [[0, 1, 2]]}, ", 1 absence"),
    ],
)
def test_what_the_network_does_to_messages_is_named_in_the_title(tmp_path, conditions, words):
    given = Given(d3gd.graphs.ring(4), Distance(4), None, d3gd.Conditions(**conditions))
    assert given.title == "4 agents, 4 links, Distance" + words
    path = tmp_path / "experiment.toml"
    lines = [f"{key} = {json.dumps(value)}" for key, value in conditions.items()]
    graph_and_problem = '[graph]\nkind = "ring"\nn = 4\n[problem]\nkind = "quadratic"\ndim = 3\n[conditions]\n'
    path.write_text(graph_and_problem + "\n".join(lines))
    title = FromFile(load(path, optional=("algorithm", "iterations"))).title
    assert title == "ring n=4, metropolis weights, quadratic dim=3" + words


def test_a_title_names_each_file_once_for_what_it_gives(tmp_path):
    (tmp_path / "links.csv").write_text("source,target,weight\n0,1,0.5\n1,0,0.25\n")
    path = tmp_path / "experiment.toml"
    path.write_text('[graph]\nkind = "edges"\nfile = "links.csv"\n[problem]\nkind = "quadratic"\ndim = 3\n')
    title = FromFile(load(path, optional=("algorithm", "iterations"))).title
    assert title == "edges of links.csv, weights of links.csv, quadratic dim=3"


def test_graphs_that_take_turns_are_counted_in_the_title():
    graph = d3gd.graphs.ring(4)
    turns = d3gd.Conditions(graphs=[graph, graph])
    assert Given(graph, Distance(4), None, turns).title.endswith(", Distance, 2 graphs")


def test_numbers_of_numpy_are_numbers(tmp_path, blank):
    numbers = {"seeds": np.int64(2), "jobs": np.int32(1), "iterations": np.int64(40), "target": np.float64(1.0)}
    ours = {"seeds": 2, "jobs": 1, "iterations": 40, "target": 1.0}
    found = compared(**numbers, steps=np.array([0.1, 0.5]), out=tmp_path)
    assert [one.values for one in found.rows] == [one.values for one in compared(**ours).rows]


def test_methods_are_named_with_their_settings():
    assert named("perrond3gd rule=planned")(0.3) == d3gd.PerronD3GD(step_size=0.3, rule="planned")
    assert set(usual()) == {*catalogue(), *VARIANTS}
    decays = named("DiDGD step_size.power=0.5 step_size.over=20")(0.3)
    assert decays == d3gd.DiDGD(step_size=d3gd.schedules.Decay(0.3, power=0.5, over=20))
    assert list(chosen([" DiDGD ", "mine"], {"mine": named("DiDGD")})) == ["DiDGD", "mine"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"only": ["DiDG"]}, "method 'DiDG' is not known; did you mean 'DiDGD'"),
        ({"only": ["DiDGD warmpu=3"]}, "key 'warmpu' is not known; did you mean 'warmup'"),
        ({"only": ["DiDGD step_size=3"]}, "the comparison chooses the step size"),
        ({"only": ["DiDGD step_size.start=3"]}, "the comparison chooses the step size"),
        ({"only": ["DiDGD step_size.pwer=3"]}, "key 'pwer' is not known; did you mean 'power'"),
        ({"only": ["DiDGD local"]}, "found 'local'; write key=value"),
        ({"only": [""]}, "no method is left"),
        ({"methods": {"mine": 3}}, "found int; give a name and a function"),
        ({"metric": "stationary"}, "did you mean 'stationarity'"),
        ({"seeds": 0}, "seeds = 0"),
        ({"jobs": 0}, "jobs = 0"),
        ({"target": np.nan}, "target = nan"),
        ({"problem": None}, "but no problem"),
    ],
)
def test_bad_input_is_told_in_one_line(options, told):
    with pytest.raises(SettingsError, match=told) as caught:
        compared(**options)
    assert "\n" not in str(caught.value)


def test_what_fits_no_method_is_an_error_and_not_a_row():
    with pytest.raises(ProblemError, match="the problem has 5 agents but the graph has 4"):
        compared(problem=Distance(5))
    with pytest.raises(GraphError, match="strongly connected"):
        compared(graph=d3gd.Digraph.from_edges(4, [(0, 1), (1, 2), (2, 3)]))
    with pytest.raises(SettingsError, match="has its own problem"):
        d3gd.compare("experiment.toml", Distance())

    class Broken(Distance):
        def gradients(self, x, k=None):
            if k is not None:
                raise RuntimeError("no data")
            return super().gradients(x)

    with pytest.raises(D3GDError, match="every method failed: RuntimeError: no data"):
        compared(problem=Broken())
