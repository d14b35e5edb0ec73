"""A comparison: what its numbers mean on methods and curves whose results are known, and that it keeps its runs."""

import csv
import itertools
import json
import math
import runpy
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, get_args

import numpy as np
import pytest

import d3gd
from d3gd.algorithms.base import Hardship
from d3gd.algorithms.catalogue import methods as catalogue
from d3gd.errors import D3GDError, GraphError, ProblemError, RecordError, SettingsError
from d3gd.experiments import compare_figure, compare_text
from d3gd.experiments.compare import TUNING
from d3gd.experiments.compare_methods import HARDENED, VARIANTS, chosen, named, usual
from d3gd.experiments.compare_runs import Run, between
from d3gd.experiments.compare_scenario import Budget, Case, Given
from d3gd.experiments.compare_summary import Row, alike, coverage, interval, places, ranked, row_of, target_of
from d3gd.experiments.compare_tuning import QUICK, USUAL, Grid, grid_of, tune
from d3gd.problems import Problem

RING = d3gd.graphs.ring(4)
BUDGET = Budget(100)


class Distance(Problem):
    """Half the squared distance of each agent's model from its own point: gradient descent shrinks by 1 - gamma."""

    def __init__(self, agents=4, seed=0):
        self.targets = np.random.default_rng(seed).standard_normal((agents, 3))
        self.agents, self.dim = self.targets.shape

    def gradients(self, x, k=None):
        return x - self.targets


@dataclass(frozen=True, kw_only=True)
class Idle:
    """A method that stands still, and counts how often it is started."""

    step_size: float
    fault: str = ""
    needs: ClassVar[str] = "in-neighbours"
    survives: ClassVar[frozenset] = frozenset()
    relies_on: ClassVar[str] = "nothing"
    exact: ClassVar[bool] = False
    started: ClassVar[list] = []

    def init(self, net, x0):
        self.started.append(self.step_size)
        return x0

    def point(self, s):
        return s

    def step(self, net, gradient, s, k):
        if self.fault:
            raise ValueError(self.fault)
        net.exchange(x=s)
        return s

    def weights(self, net, s):
        return net.a0

    def scale(self, net, s):
        return None


def compared(**changes):
    options = {"only": ["Centralized", "PerronD3GD"], "iterations": 40, "seeds": 2, "steps": [0.1, 0.5], "jobs": 1}
    options |= changes
    return d3gd.compare(options.pop("graph", RING), options.pop("problem", lambda seed: Distance(seed=seed)), **options)


def run(method="a", step=0.1, seed=0, *, level=1.0, status="completed", budget=BUDGET, sent=10.0):
    """A curve that falls exponentially from 1 to a level within a hundred iterations."""
    k = np.arange(0.0, 101.0, 10.0)
    curve = level ** (k / 100)
    curves = {"iterations": k, "bytes": k * sent, "seconds": k * 0.001, "stationarity": curve, "disagreement": curve}
    return Run(method, step, seed, status, "", 4, 8, curves, budget)


def row(method, values):
    return row_of(method, "in-neighbours", [run(method, seed=i, level=v) for i, v in enumerate(values)], "stationarity")


# --- intervals, ranks and ties ---


@pytest.mark.parametrize(("n", "k"), [(1, 1), (3, 1), (5, 1), (5, 2), (8, 2), (9, 3)])
def test_the_coverage_of_an_interval_counts_the_ways_values_fall_around_their_median(n, k):
    below = [sum(way) for way in itertools.product((0, 1), repeat=n)]
    assert coverage(n, k) == np.mean([k <= count <= n - k for count in below])


@pytest.mark.parametrize("n", range(1, 30))
def test_intervals_are_the_narrowest_that_hold_the_median_with_90_percent(n):
    k = places(n)
    assert k == 1 or coverage(n, k) >= 0.9
    assert coverage(n, k + 1) < 0.9


def test_an_interval_bears_a_seed_that_diverged():
    assert interval([1.0, math.inf, 2.0]) == (1.0, 2.0, math.inf)


def test_ranks_follow_the_medians_and_the_unmeasured_come_last():
    rows = [
        row("c", [3e-1] * 3),
        Row("x", "", "failed"),
        row("a", [1e-3] * 3),
        Row("r", "", "refused"),
        row("b", [0.1] * 3),
    ]
    found = ranked([*rows, Row("d", "", "diverged")])
    assert [(one.method, one.rank) for one in found] == [
        ("a", 1), ("b", 2), ("c", 3), ("d", None), ("r", None), ("x", None)
    ]  # fmt: skip


def test_methods_tie_where_intervals_overlap_and_neither_always_wins():
    a, always, mixed, far = (
        row("a", [0.1, 0.2, 0.4]),
        row("b", [0.11, 0.21, 0.41]),
        row("c", [0.2, 0.1, 0.3]),
        row("d", [0.9] * 3),
    )
    assert not alike(a, always)
    assert alike(a, mixed)
    assert not alike(a, far)
    assert {one.method: one.ties for one in ranked([a, mixed, far])} == {"a": (2,), "c": (1,), "d": ()}


def test_a_yardstick_is_shown_in_its_place_without_a_rank():
    all_seeing = row_of("best", "all agents", [run(level=1e-6)], "stationarity")
    found = ranked([row("a", [0.1]), all_seeing])
    assert [(one.method, one.rank, one.status) for one in found] == [("best", None, "yardstick"), ("a", 1, "ranked")]


def test_a_method_that_diverged_in_most_seeds_has_no_rank_and_in_some_is_told():
    def lost(*statuses):
        runs = [run(seed=i, status=status) for i, status in enumerate(statuses)]
        return row_of("a", "in-neighbours", runs, "stationarity")

    assert lost("diverged", "diverged", "completed").status == "diverged"
    assert "diverged in 1 of 3 seeds" in lost("diverged", "completed", "completed").note


def test_half_of_the_methods_end_at_or_below_the_target():
    rows = [row(name, [value]) for name, value in zip("abcd", (0.1, 0.2, 0.3, 0.4), strict=True)]
    assert target_of(rows) == pytest.approx(0.2)
    assert target_of(rows[:3]) == pytest.approx(0.2)
    assert math.isnan(target_of([]))


# --- the budget ---


def test_a_value_is_taken_where_the_bytes_are_used_up():
    within = run(level=1e-4, budget=Budget(bytes=500))  # of 1,000 bytes: at half of the exponential
    assert within.value("stationarity") == pytest.approx(1e-2)
    assert run(level=1e-4, budget=Budget(bytes=5000)).value("stationarity") == pytest.approx(1e-4)
    assert run(status="diverged").value("stationarity") == math.inf


def test_a_curve_through_zero_is_interpolated_linearly():
    assert between(1.0, np.array([0.0, 2.0]), np.array([0.0, 4.0])) == 2.0


def test_the_byte_budget_buys_what_models_along_all_links_cost():
    case = Case(RING, None, Distance())
    assert Budget(bytes=10 * 8 * 3 * 4 + 1).most(case) == 10
    assert Budget(7, bytes=10 * 8 * 3 * 4).most(case) == 7


def test_half_the_precision_buys_twice_the_iterations():
    case = Case(RING, None, Distance(), dtype="float32")
    assert Budget(bytes=10 * 8 * 3 * 4).most(case) == 20


def test_every_method_spends_the_same_bytes():
    spent = 30 * 8 * 3 * 4
    found = compared(only=["DiDGD", "PerronD3GD rule=fixed"], iterations=None, budget_bytes=spent, graph=RING)
    for one in found.rows:
        ends = [run.curves["bytes"][-1] for run in found.runs[one.method]]
        assert all(spent <= end < 1.3 * spent for end in ends)
    assert found.row("DiDGD").numbers == 3 + 4  # a model and a Perron tracker
    assert found.row("PerronD3GD rule=fixed").numbers == 3
    assert found.runs["PerronD3GD rule=fixed"][0].curves["iterations"][-1] == 30


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"iterations": 0}, "a budget of 0 iterations buys nothing"),
        ({"iterations": None}, "give iterations, or bytes"),
        ({"budget_bytes": -1}, "a budget of -1 bytes"),
        ({"budget_bytes": 10}, "does not buy one iteration: a model along each of the 4 links takes 96 bytes"),
    ],
)
def test_a_budget_that_buys_nothing_is_refused(options, told):
    with pytest.raises(SettingsError, match=told):
        compared(**options)


# --- tuning ---


def tuned(value, grid, *, lost=lambda step: False):
    tried = []

    def made(keys, what):
        tried.extend(step for _, step, _ in keys)
        return {key: run(*key, level=value(key[1]), status="diverged" if lost(key[1]) else "completed") for key in keys}

    return tune(["a"], made, seeds=[0, 1], grid=grid, metric="stationarity")["a"], sorted(set(tried))


@pytest.mark.parametrize("best", [1e-4, 0.01, 0.215, 10.0, 1000.0])
def test_the_grid_grows_until_the_best_step_is_inside(best):
    found, tried = tuned(lambda step: 1e-3 + min(0.9, abs(math.log(step / best)) / 100), USUAL)
    assert found.step == best
    assert not found.at_the_edge
    assert min(tried) < best < max(tried)
    assert set(USUAL.start) <= set(tried)


@pytest.mark.parametrize("bad", [{"status": "diverged"}, {"level": 0.8}])
def test_a_step_that_fails_on_one_seed_is_not_chosen(bad):
    def made(keys, what):
        level = {0.1: 0.5, 1.0: 0.001, 2.0: 0.9}
        return {
            (m, step, seed): run(m, step, seed, **({"level": level[step]} | (bad if (step, seed) == (1.0, 3) else {})))
            for m, step, seed in keys
        }

    found = tune(["a"], made, seeds=[1, 2, 3], grid=grid_of([0.1, 1.0, 2.0]), metric="stationarity")["a"]
    assert (found.step, found.at_the_edge) == (0.1, True)


def test_divergence_everywhere_is_found_out_and_ends_at_the_least_step():
    found, tried = tuned(lambda step: 0.5, QUICK, lost=lambda step: True)
    assert found.diverged
    assert found.step == min(tried) == min(QUICK.steps)
    assert max(tried) == max(QUICK.start)


def test_a_users_grid_does_not_grow():
    found, tried = tuned(lambda step: 1 / (2 + step), grid_of([1, 0.1, 0.5]))
    assert (found.step, found.at_the_edge, tried) == (1.0, True, [0.1, 0.5, 1.0])
    assert grid_of([0.3]) == Grid((0.3,), 0, 0)


@pytest.mark.parametrize("steps", [[], [0.0], [-1.0], [math.nan]])
def test_steps_are_positive_numbers(steps):
    with pytest.raises(SettingsError, match="give positive numbers"):
        compared(steps=steps)


def test_the_tuned_step_is_the_best_of_the_grid_where_the_answer_is_known():
    # Gradient descent shrinks the gradient by |1 - gamma|: 0.8 beats 1.6 and 0.5, and 3 diverges.
    found = compared(only=["Centralized"], steps=[0.1, 0.5, 0.8, 1.6, 3.0], iterations=10)
    best = found.row("Centralized")
    assert best.step == 0.8
    start = [float(run.curves["stationarity"][0]) for run in found.runs["Centralized"]]
    assert best.values == pytest.approx([0.2**20 * value for value in start], rel=1e-6)


def test_seeds_of_tuning_and_reporting_are_apart():
    found = compared()
    assert found.seeds == (0, 1)
    assert found.tuning_seeds[0] == TUNING


# --- whole comparisons ---


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


# --- files ---


@pytest.fixture
def blank(monkeypatch):
    """Write empty figures, where drawing them would take longer than all else."""
    monkeypatch.setattr(compare_figure, "draw", lambda comparison, suffixes: dict.fromkeys(suffixes, b""))


def test_finished_runs_are_kept_and_only_what_is_missing_is_run(tmp_path, blank):
    own = {"idle": lambda gamma: Idle(step_size=gamma)}
    Idle.started.clear()
    first = compared(methods=own, only=["idle"], out=tmp_path)
    count = len(Idle.started)
    assert count == 2 * 3 + 2  # two steps on the seeds of tuning, and the best on two
    again = compared(methods=own, only=["idle"], out=tmp_path)
    assert len(Idle.started) == count
    assert again.rows == first.rows
    compared(methods=own, only=["idle"], out=tmp_path, seeds=4)
    assert len(Idle.started) == count + 2
    for path in tmp_path.glob("runs/idle*/*seed-1.json"):
        path.write_text("{")  # a damaged file is no run
    compared(methods=own, only=["idle"], out=tmp_path)
    assert len(Idle.started) == count + 3


def test_a_method_that_was_changed_is_run_again(tmp_path, blank):
    compared(methods={"mine": lambda gamma: d3gd.DiDGD(step_size=gamma)}, only=["mine"], out=tmp_path)
    Idle.started.clear()
    compared(methods={"mine": lambda gamma: Idle(step_size=gamma)}, only=["mine"], out=tmp_path)
    assert Idle.started


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"iterations": 41}, "another budget"),
        ({"problem": lambda seed: Distance(seed=seed + 1)}, "another network, data or first seed"),
        ({"graph": d3gd.graphs.complete(4)}, "another network or problem"),
    ],
)
def test_a_folder_of_another_comparison_is_left_alone(tmp_path, blank, change, told):
    compared(only=["Centralized"], out=tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(RecordError, match=f"{told}; choose another --out"):
        compared(only=["Centralized"], out=tmp_path, **change)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_names_of_users_cannot_break_tables_or_figures(tmp_path, capsys):
    name = "_a|b <script>$x$ [red]*`"
    found = compared(methods={name: named("PerronD3GD"), "bad": lambda gamma: Idle(step_size=gamma, fault="a|b\nc")},
                     only=[name, "bad", "Centralized"], out=tmp_path)  # fmt: skip
    text = (tmp_path / "compare.md").read_text()
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in table} == {13}
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
    assert "ValueError: a\\|b c" in text
    with (tmp_path / "compare.csv").open() as file:
        assert [line["method"] for line in csv.DictReader(file)] == [one.method for one in found.rows]
    strict = json.loads((tmp_path / "compare.json").read_text(), parse_constant=lambda word: pytest.fail(word))
    assert strict["rows"][0]["method"] == found.rows[0].method
    found.show()
    assert name in capsys.readouterr().out
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    found.plot(tmp_path / "again.svg")
    assert "$x$" in (tmp_path / "again.svg").read_text()
    with pytest.raises(SettingsError, match=r"\.png, \.pdf or \.svg"):
        found.plot(tmp_path / "again.gif")


def test_a_comparison_with_nothing_to_rank_is_told_and_drawn(tmp_path):
    found = compared(only=["DGD"], out=tmp_path)
    assert compare_text.headline(found) == "No method reached the end of the budget."
    assert (tmp_path / "curves.pdf").exists()
    assert repr(found).endswith("nothing ranked)")


def test_the_table_becomes_a_data_frame():
    frame = compared().to_pandas()
    assert frame["method"].tolist() == ["Centralized", "PerronD3GD"]
    assert (frame["value_low"] <= frame["value_high"]).all()


def test_every_methods_page_gets_its_own_rows_and_once(tmp_path, blank):
    compared(only=["PerronD3GD", "PerronD3GD rule=local", "DGD"], out=tmp_path / "compare" / "ring")
    pages = tmp_path / "methods"
    pages.mkdir()
    (pages / "perron_d3gd.md").write_text("# PerronD3GD\n\n<!-- comparison -->\n\nold\n\n<!-- /comparison -->\n\nend\n")
    (pages / "dgd.md").write_text("# DGD\n\n<!-- comparison -->\n")
    (pages / "about.md").write_text("nothing")
    script = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "method_rows.py"))
    for _ in range(2):
        script["main"](pages, [tmp_path / "compare" / "ring" / "compare.json"])
        text = (pages / "perron_d3gd.md").read_text()
        assert text.startswith("# PerronD3GD\n")
        assert text.endswith("\n\nend\n")
        assert "old" not in text
        assert [text.count(word) for word in ("| PerronD3GD |", "| PerronD3GD rule=local |", "| DGD |")] == [1, 1, 0]
        assert "(../compare/ring/compare.md)" in text
        assert (pages / "dgd.md").read_text().count("needs undirected links") == 1
    assert (pages / "about.md").read_text() == "nothing"


# --- names and bad input ---


def test_methods_are_named_with_their_settings():
    assert named("perrond3gd rule=local")(0.3) == d3gd.PerronD3GD(step_size=0.3, rule="local")
    assert set(usual()) == {*catalogue(), *VARIANTS}
    assert list(chosen([" DiDGD ", "mine"], {"mine": named("DiDGD")})) == ["DiDGD", "mine"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"only": ["DiDG"]}, "method 'DiDG' is not known; did you mean 'DiDGD'"),
        ({"only": ["DiDGD warmpu=3"]}, "key 'warmpu' is not known; did you mean 'warmup'"),
        ({"only": ["DiDGD step_size=3"]}, "the comparison chooses the step size"),
        ({"only": ["DiDGD local"]}, "found 'local'; write key=value"),
        ({"only": [""]}, "no method is left"),
        ({"methods": {"mine": 3}}, "found int; give a name and a function"),
        ({"metric": "stationary"}, "did you mean 'stationarity'"),
        ({"seeds": 0}, "seeds = 0"),
        ({"jobs": 0}, "jobs = 0"),
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
