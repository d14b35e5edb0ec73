"""The numbers of a study: values, ratios, means, and the cost of a target."""

import math

import numpy as np
import pytest

from d3gd.comparison.numbers import quantile, reached
from studies.costs import cost_summaries, costs
from studies.plan import ADAPT, BASELINE, CONTROL, DEFAULT, PLANNED
from studies.summary import (
    FLOOR,
    Cell,
    mean_of,
    ratio_of,
    rows_of,
    runs_of,
    summary,
    tuned,
)
from tests.helpers.studying import RING, TORUS, K, row_of, run, trial


def test_a_value_is_the_geometric_mean_of_the_records_at_800_900_and_1000():
    one = run(BASELINE)
    one["stationarity"] = [{800: 1.0, 900: 10.0, 1000: 100.0}.get(k, 1e6) for k in K.tolist()]
    (found,) = runs_of([trial(one)])
    assert found.value("stationarity") == pytest.approx(10)


@pytest.mark.parametrize("bad", [{"status": "diverged"}, {"level": math.nan}])
def test_a_run_that_diverged_is_infinitely_bad(bad):
    (found,) = runs_of([trial(run(BASELINE, **bad))])
    assert found.value("stationarity") == math.inf


def test_a_cells_ratio_is_the_median_over_seeds_at_the_same_seed():
    trials = [
        trial(run(BASELINE, level=seed + 1.0), run(DEFAULT, level=(seed + 1.0) * ratio), seed=seed)
        for seed, ratio in enumerate((0.1, 0.4, 0.2))
    ]
    ratio = row_of(rows_of(runs_of(trials)), DEFAULT).ratios[BASELINE]["stationarity"]
    assert ratio.median == pytest.approx(0.2)
    assert ratio.low == pytest.approx(math.sqrt(0.1 * 0.2))
    assert ratio.high == pytest.approx(math.sqrt(0.4 * 0.2))


def test_both_references_are_compared_with():
    rows = rows_of(runs_of([trial(run(BASELINE, level=1), run(CONTROL, level=2), run(DEFAULT, level=0.5))]))
    ratios = row_of(rows, DEFAULT).ratios
    assert ratios[BASELINE]["stationarity"].median == pytest.approx(0.5)
    assert ratios[CONTROL]["stationarity"].median == pytest.approx(0.25)


def test_seeds_where_didgd_diverged_have_no_ratio_and_are_counted():
    trials = [
        trial(run(BASELINE, level=1), run(DEFAULT, level=0.3), seed=0),
        trial(run(BASELINE, status="diverged"), run(DEFAULT, level=7), seed=1),
        trial(run(BASELINE, level=1), run(DEFAULT, status="diverged"), seed=2),
    ]
    row = row_of(rows_of(runs_of(trials)), DEFAULT)
    assert (row.completed, row.diverged, row.lost, row.won) == (2, 1, 1, 1)
    assert row.ratios[BASELINE]["stationarity"].median == math.inf  # of 0.3 and inf
    assert math.isnan(ratio_of({1: 7.0}, {1: math.inf}).median)


@pytest.mark.parametrize(
    ("values", "q", "expected"),
    [([3, 1, 2], 0.5, 2), ([1, 2], 0.5, 1.5), ([1, math.inf, math.inf], 0.5, math.inf), ([1, 1, math.inf], 0.5, 1)],
)
def test_quantiles_bear_infinity(values, q, expected):
    assert quantile(values, q) == expected


def test_groups_are_kept_apart_and_means_are_geometric():
    rows = rows_of(
        runs_of(
            [
                trial(run(BASELINE), run(DEFAULT, level=0.01), run(BASELINE, 0.5), run(DEFAULT, 0.5, level=0.04)),
                trial(run(BASELINE), run(DEFAULT, level=3), at=TORUS),
            ]
        )
    )
    developed, held_out = (summary(rows, DEFAULT, group) for group in ("developed", "held out"))
    assert developed.cells == 2
    assert developed.mean["stationarity"] == pytest.approx(0.02)
    assert developed.worst["stationarity"].cell == Cell(RING.data, RING.network, None, 0.5)
    assert developed.above == {"stationarity": 0, "disagreement": 0}
    assert held_out.mean["disagreement"] == pytest.approx(3)
    assert held_out.above == {"stationarity": 1, "disagreement": 1}


def test_a_mean_counts_what_is_below_the_floor_as_the_floor():
    assert mean_of([0.0, FLOOR / 10]) == pytest.approx(FLOOR)
    assert mean_of([1e-3, 1e-1]) == pytest.approx(1e-2)


def test_divergence_makes_a_mean_infinite_and_the_rest_is_told_beside_it():
    rows = rows_of(
        runs_of(
            [
                trial(run(BASELINE), run(DEFAULT, status="diverged")),
                trial(run(BASELINE, 0.5), run(DEFAULT, 0.5, level=0.2)),
            ]
        )
    )
    one = summary(rows, DEFAULT, "developed")
    assert (one.mean["stationarity"], one.infinite, one.lost) == (math.inf, 1, 1)
    assert one.finite_mean["stationarity"] == pytest.approx(0.2)


def test_a_cell_where_didgd_diverged_is_left_out_of_means():
    rows = rows_of(
        runs_of(
            [
                trial(run(BASELINE, status="diverged"), run(DEFAULT, level=9)),
                trial(run(BASELINE, 0.5), run(DEFAULT, 0.5, level=0.2)),
            ]
        )
    )
    one = summary(rows, DEFAULT, "developed")
    assert (one.cells, one.won) == (1, 1)
    assert one.mean["stationarity"] == pytest.approx(0.2)
    assert summary(rows, DEFAULT, "held out") is None


def test_each_method_is_tuned_to_its_least_median_stationarity():
    steps = (0.03, 0.1, 0.5)
    ends = {BASELINE: (2.0, 1.0, 4.0), DEFAULT: (0.9, 0.5, 0.1), PLANNED: (1.0, None, None)}
    trials = [
        trial(
            *(
                run(method, step, status="diverged") if end is None else run(method, step, level=end)
                for method, levels in ends.items()
                for step, end in zip(steps, levels, strict=True)
            ),
            seed=seed,
        )
        for seed in range(3)
    ]
    best = tuned(runs_of(trials))
    assert {run.method: run.step for run in best} == {BASELINE: 0.1, DEFAULT: 0.5, PLANNED: 0.03}
    assert list(dict.fromkeys(run.method for run in best)) == [BASELINE, DEFAULT, PLANNED]
    row = row_of(rows_of(best), DEFAULT)
    assert row.cell.step is None
    assert row.ratios[BASELINE]["stationarity"].median == pytest.approx(0.1)


@pytest.mark.parametrize("when", [0.0, 25.0, 123.4, 999.0, 1000.0])
def test_an_exponential_is_met_exactly_between_records(when):
    assert reached(K.astype(float), np.exp(-0.01 * K), math.exp(-0.01 * when)) == pytest.approx(when)


def test_what_counts_is_from_when_a_curve_stays_below():
    k, curve = np.array([0.0, 1, 2, 3, 4]), np.array([4.0, 0.5, 2.0, 0.5, 0.25])
    assert reached(k, curve, 1.0) == pytest.approx(2.5)
    assert reached(k, curve[::-1].copy(), 1.0) == math.inf
    assert reached(k, curve, 5.0) == 0
    assert reached(k, np.array([np.inf, np.nan, 2.0, 0.0, 0.0]), 1.0) == 3


def test_costs_are_shares_of_tuned_didgds_whole_run():
    # Di-DGD is flat at 1; the other gets there at iteration 400 and sends twice as much.
    trials = [
        trial(
            run(BASELINE),
            run(DEFAULT, level=math.exp(-6), rate=0.01, sent=2000),
            run(PLANNED, level=2),
            run(ADAPT, status="diverged"),
        ),
        trial(run(BASELINE, status="diverged"), run(DEFAULT), run(PLANNED), run(ADAPT), seed=1),
    ]
    best = tuned(runs_of(trials))
    found = {method: value for (_, method, _), value in costs(best).items()}
    assert found[BASELINE] == (0, 0)
    assert found[DEFAULT] == pytest.approx((0.4, 0.8))
    assert found[PLANNED] == found[ADAPT] == (math.inf, math.inf)
    assert {(one.method, one.reached, one.trials) for one in cost_summaries(best)} == {
        (BASELINE, 1, 1),
        (DEFAULT, 1, 1),
        (PLANNED, 0, 1),
        (ADAPT, 0, 1),
    }
