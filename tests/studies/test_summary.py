"""The numbers of a study: values, ratios and means."""

import math

import numpy as np
import pytest

from d3gd.comparison.numbers import quantile, reached
from studies.settings import AVERAGED, BASELINE, CONTROL, DEFAULT, FROST_
from studies.summary import FLOOR, Cell, against, among, mean_of, ratio_of, runs_of, summary
from tests.helpers.studying import RING, TORUS, K, part, row_of, rows, trials_of


def test_a_value_is_the_geometric_mean_of_the_records_at_800_900_and_1000():
    one = part([BASELINE])
    trials = trials_of(one, {})
    (content,) = trials.values()
    content["stationarity"] = [{800: 1.0, 900: 10.0, 1000: 100.0}.get(k, 1e6) for k in K.tolist()]
    (found,) = runs_of(trials, one)
    assert found.value("stationarity") == pytest.approx(10)


@pytest.mark.parametrize("bad", [None, math.nan])
def test_a_run_that_diverged_is_infinitely_bad(bad):
    one = part([BASELINE])
    (found,) = runs_of(trials_of(one, {BASELINE: bad}), one)
    assert found.value("stationarity") == math.inf


def test_a_cells_ratio_is_the_median_over_seeds_at_the_same_seed():
    def level(trial):
        return (trial.seed + 1.0) * ((0.1, 0.4, 0.2)[trial.seed] if trial.method == DEFAULT else 1.0)

    ratio = row_of(rows(part(seeds=3), level), DEFAULT).ratio["stationarity"]
    assert ratio.median == pytest.approx(0.2)
    assert ratio.low == pytest.approx(math.sqrt(0.1 * 0.2))
    assert ratio.high == pytest.approx(math.sqrt(0.4 * 0.2))


def test_both_references_are_compared_with():
    ratios = row_of(rows(part(), {CONTROL: 2, DEFAULT: 0.5}), DEFAULT).ratios
    assert ratios[BASELINE]["stationarity"].median == pytest.approx(0.5)
    assert ratios[CONTROL]["stationarity"].median == pytest.approx(0.25)


def test_under_hardships_the_reference_survives_them():
    one = part([BASELINE, AVERAGED, DEFAULT], hardships=("loss 0.3",))
    row = row_of(rows(one, {BASELINE: 10, AVERAGED: 4, DEFAULT: 1}), DEFAULT)
    assert row.ratio["stationarity"].median == pytest.approx(0.25)
    assert row.cell.group == ""


def test_seeds_where_the_reference_diverged_have_no_ratio_and_are_counted():
    levels = {BASELINE: (1, None, 1), DEFAULT: (0.3, 7, None)}
    row = row_of(rows(part([BASELINE, DEFAULT], seeds=3), lambda t: levels[t.method][t.seed]), DEFAULT)
    assert (row.completed, row.diverged, row.lost, row.won) == (2, 1, 1, 1)
    assert row.ratio["stationarity"].median == math.inf  # of 0.3 and inf
    assert math.isnan(ratio_of({1: 7.0}, {1: math.inf}).median)


@pytest.mark.parametrize(
    ("values", "q", "expected"),
    [([3, 1, 2], 0.5, 2), ([1, 2], 0.5, 1.5), ([1, math.inf, math.inf], 0.5, math.inf), ([1, 1, math.inf], 0.5, 1)],
)
def test_quantiles_bear_infinity(values, q, expected):
    assert quantile(values, q) == expected


def test_groups_and_batch_sizes_are_kept_apart_and_means_are_geometric():
    levels = {(RING, None): {0.1: 0.01, 0.5: 0.04}, (RING, 16): {0.1: 0.5, 0.5: 0.5}}

    def level(trial):
        where = ((trial.data, trial.network), trial.batch)
        return 1.0 if trial.method == BASELINE else levels.get(where, {}).get(trial.step, 3.0)

    found = rows(part([BASELINE, DEFAULT], places=(RING, TORUS), steps=(0.1, 0.5), batches=(None, 16)), level)
    full, noisy, held_out = (
        summary(among(found, group, batch), DEFAULT)
        for group, batch in (("developed", None), ("developed", 16), ("held out", None))
    )
    assert (full.cells, noisy.cells, held_out.cells) == (2, 2, 2)
    assert full.mean["stationarity"] == pytest.approx(0.02)
    assert noisy.mean["stationarity"] == pytest.approx(0.5)
    assert full.worst["stationarity"].cell == Cell(*RING, None, "none", 0.5)
    assert full.above == {"stationarity": 0, "disagreement": 0}
    assert held_out.mean["disagreement"] == pytest.approx(3)
    assert held_out.above == {"stationarity": 2, "disagreement": 2}


def test_a_mean_counts_what_is_below_the_floor_as_the_floor():
    assert mean_of([0.0, FLOOR / 10]) == pytest.approx(FLOOR)
    assert mean_of([1e-3, 1e-1]) == pytest.approx(1e-2)


def test_divergence_makes_a_mean_infinite_and_the_rest_is_told_beside_it():
    one = part([BASELINE, DEFAULT], steps=(0.1, 0.5))
    found = rows(one, lambda t: 1.0 if t.method == BASELINE else {0.1: None, 0.5: 0.2}[t.step])
    total = summary(found, DEFAULT)
    assert (total.mean["stationarity"], total.infinite) == (math.inf, 1)
    assert total.finite_mean["stationarity"] == pytest.approx(0.2)


def test_a_cell_where_the_reference_diverged_is_left_out_of_means():
    one = part([BASELINE, DEFAULT], steps=(0.1, 0.5))
    found = rows(one, lambda t: {0.1: None, 0.5: 1.0}[t.step] if t.method == BASELINE else 0.2)
    assert summary(found, DEFAULT).cells == 1
    assert summary(among(found, "held out", None), DEFAULT) is None


def test_two_methods_are_compared_by_cell_unless_both_diverged():
    one = part([BASELINE, DEFAULT, FROST_], steps=(0.1, 0.3, 0.5))
    levels = {DEFAULT: {0.1: 1.0, 0.3: 1.0, 0.5: None}, FROST_: {0.1: 4.0, 0.3: None, 0.5: None}}
    found = rows(one, lambda t: levels.get(t.method, {}).get(t.step, 1.0))
    ratios = against(found, DEFAULT, FROST_, "stationarity")
    assert {cell.step: ratio for cell, ratio in ratios.items()} == {0.1: 0.25, 0.3: 0.0}


@pytest.mark.parametrize("when", [0.0, 25.0, 123.4, 999.0, 1000.0])
def test_an_exponential_is_met_exactly_between_records(when):
    assert reached(K.astype(float), np.exp(-0.01 * K), math.exp(-0.01 * when)) == pytest.approx(when)


def test_what_counts_is_from_when_a_curve_stays_below():
    k, curve = np.array([0.0, 1, 2, 3, 4]), np.array([4.0, 0.5, 2.0, 0.5, 0.25])
    assert reached(k, curve, 1.0) == pytest.approx(2.5)
    assert reached(k, curve[::-1].copy(), 1.0) == math.inf
    assert reached(k, curve, 5.0) == 0
    assert reached(k, np.array([np.inf, np.nan, 2.0, 0.0, 0.0]), 1.0) == 3
