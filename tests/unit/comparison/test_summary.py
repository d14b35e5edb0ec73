"""Intervals, ranks, ties and budgets of a comparison, on curves whose results are known."""

import itertools
import math

import numpy as np
import pytest

import d3gd
from d3gd.comparison.runs import between
from d3gd.comparison.scenario import Budget, Case
from d3gd.comparison.summary import Row, alike, coverage, interval, places, ranked, row_of, target_of
from d3gd.errors import SettingsError
from tests.helpers.comparing import RING, Distance, Local, compared, row, run


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


def test_a_value_is_taken_where_the_bytes_are_used_up():
    within = run(level=1e-4, budget=Budget(bytes=500))  # of 1,000 bytes: at half of the exponential
    assert within.value("stationarity") == pytest.approx(1e-2)
    assert run(level=1e-4, budget=Budget(bytes=5000)).value("stationarity") == pytest.approx(1e-4)
    assert run(status="diverged").value("stationarity") == math.inf


def test_a_value_is_taken_where_the_first_budget_is_used_up():
    within = run(level=1e-4, gradients=4.0, budget=Budget(gradients=200))  # of 400 gradients
    assert within.value("stationarity") == pytest.approx(1e-2)
    both = run(level=1e-4, gradients=4.0, budget=Budget(bytes=250, gradients=200))
    assert both.value("stationarity") == pytest.approx(1e-1)


def test_a_curve_through_zero_is_interpolated_linearly():
    assert between(1.0, np.array([0.0, 2.0]), np.array([0.0, 4.0])) == 2.0


def test_the_byte_budget_buys_what_models_along_all_links_cost():
    case = Case(RING, None, Distance())
    assert Budget(bytes=10 * 8 * 3 * 4 + 1).most(case) == 10
    assert Budget(7, bytes=10 * 8 * 3 * 4).most(case) == 7
    small = d3gd.Compressed(method=d3gd.PerronD3GD(step_size=0.1), compress="bf16")
    assert Budget(bytes=10 * 8 * 3 * 4).most(case, small) == 40


def test_a_gradient_budget_buys_at_most_as_many_iterations():
    case = Case(RING, None, Distance())
    assert Budget(gradients=12).most(case) == 12
    assert Budget(7, gradients=12).most(case) == 7


def test_half_the_precision_buys_twice_the_iterations():
    case = Case(RING, None, Distance(), dtype="float32")
    assert Budget(bytes=10 * 8 * 3 * 4).most(case) == 20


def test_every_method_spends_the_same_bytes():
    spent = 30 * 8 * 3 * 4
    found = compared(only=["DiDGD", "PerronD3GD perron=known"], iterations=None, budget_bytes=spent, graph=RING)
    for one in found.rows:
        ends = [run.curves["bytes"][-1] for run in found.runs[one.method]]
        assert all(spent <= end < 1.3 * spent for end in ends)
    assert found.row("DiDGD").numbers == 3 + 4  # a model and a Perron tracker
    assert found.row("PerronD3GD perron=known").numbers == 3
    assert found.runs["PerronD3GD perron=known"][0].curves["iterations"][-1] == 30


def test_every_method_evaluates_the_same_gradients():
    own = {"twice": lambda gamma: Local(step_size=gamma, steps=2)}
    found = compared(methods=own, only=["twice", "DiDGD"], iterations=None, budget_gradients=40, target=1.0)
    ends = {name: runs[0].curves for name, runs in found.runs.items()}
    assert {name: curves["gradients"][-1] for name, curves in ends.items()} == {"twice": 40, "DiDGD": 40}
    assert {name: curves["iterations"][-1] for name, curves in ends.items()} == {"twice": 20, "DiDGD": 40}
    cost = found.row("twice").cost
    assert cost.gradients == pytest.approx(2 * cost.iterations)
    assert "40 gradients per agent" in str(found.budget)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"iterations": 0}, "budget of iterations = 0"),
        ({"iterations": None}, "give iterations, budget_bytes or budget_gradients"),
        ({"budget_bytes": -1}, "budget of bytes = -1"),
        ({"budget_gradients": 0}, "budget of gradients = 0"),
        ({"budget_bytes": 10}, "a model along each of the 4 links takes 96 bytes"),
    ],
)
def test_a_budget_that_buys_nothing_is_refused(options, told):
    with pytest.raises(SettingsError, match=told):
        compared(**options)
