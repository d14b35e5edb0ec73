"""The study: what its numbers mean, on curves whose ratios are known, and that it goes on where it stopped."""

import csv
import json
import math
from dataclasses import asdict

import numpy as np
import pytest

from d3gd.cli import call
from d3gd.errors import RecordError, SettingsError
from d3gd.experiments import study
from d3gd.experiments.numbers import quantile, reached, shown
from d3gd.experiments.study import ADAPT, BASELINE, CONTROL, CORRECTION, DEFAULT, LOCAL, PLANNED, Trial
from d3gd.experiments.study_costs import cost_summaries, costs
from d3gd.experiments.study_report import report
from d3gd.experiments.study_report import study as run_study
from d3gd.experiments.study_summary import (
    FLOOR,
    Cell,
    mean_of,
    ratio_of,
    rows_of,
    runs_of,
    shares,
    summary,
    tuned,
)
from d3gd.experiments.study_targets import targets
from d3gd.experiments.study_text import attribution, headline, markdown, sentences

K = np.arange(0, 1001, 50)
RING = Trial("digits", "one-way ring (10)", None, 0)
TORUS = Trial("digits", "torus (16)", 16, 0)
NAMES = (BASELINE, CONTROL, ADAPT, PLANNED, CORRECTION, LOCAL, DEFAULT)


def run(method, step=0.1, level=1.0, *, disagreement=None, rate=0.0, sent=1000, status="completed"):
    """A curve that falls exponentially to a level at the end; a diverged one stops half-way."""
    k = K[: 10 if status == "diverged" else None]
    curve = level * np.exp(rate * (1000 - k))
    return {
        "method": method,
        "step_size": step,
        "status": status,
        "iterations": k.tolist(),
        "stationarity": curve.tolist(),
        "disagreement": (curve if disagreement is None else np.full(k.shape, disagreement)).tolist(),
        "bytes": (k * sent).tolist(),
    }


def trial(*runs, at=RING, seed=0):
    return {"trial": {**asdict(at), "seed": seed}, "runs": list(runs)}


def row_of(rows, method):
    (row,) = [row for row in rows if row.method == method]
    return row


# --- values and ratios ---


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


# --- summaries ---


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
    ends = {BASELINE: (2.0, 1.0, 4.0), DEFAULT: (0.9, 0.5, 0.1), LOCAL: (1.0, None, None)}
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
    assert {run.method: run.step for run in best} == {BASELINE: 0.1, DEFAULT: 0.5, LOCAL: 0.03}
    assert list(dict.fromkeys(run.method for run in best)) == [BASELINE, DEFAULT, LOCAL]
    row = row_of(rows_of(best), DEFAULT)
    assert row.cell.step is None
    assert row.ratios[BASELINE]["stationarity"].median == pytest.approx(0.1)


# --- cost to a target ---


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
            run(LOCAL, level=2),
            run(ADAPT, status="diverged"),
        ),
        trial(run(BASELINE, status="diverged"), run(DEFAULT), run(LOCAL), run(ADAPT), seed=1),
    ]
    best = tuned(runs_of(trials))
    found = {method: value for (_, method, _), value in costs(best).items()}
    assert found[BASELINE] == (0, 0)
    assert found[DEFAULT] == pytest.approx((0.4, 0.8))
    assert found[LOCAL] == found[ADAPT] == (math.inf, math.inf)
    assert {(one.method, one.reached, one.trials) for one in cost_summaries(best)} == {
        (BASELINE, 1, 1),
        (DEFAULT, 1, 1),
        (LOCAL, 0, 1),
        (ADAPT, 0, 1),
    }


# --- attribution and targets ---


def study_of(levels, at=RING, seeds=1):
    return [
        trial(*(run(method, level=level) for method, level in levels.items()), at=at, seed=seed)
        for seed in range(seeds)
    ]


def test_shares_of_the_gain_are_its_logarithms_and_sum_to_one():
    levels = dict(zip(NAMES, (1, 1e-1, 1e-2, 1e-3, 1e-4, 1, 1e-6), strict=True))
    split, cells = shares(rows_of(runs_of(study_of(levels))), "developed", "stationarity")
    assert cells == 1
    # First or last, the correction brings 2 or 3 decades, and planned weights 1 or 2.
    expected = {"exact pi": 1 / 6, ADAPT: 1 / 6, CORRECTION: 2.5 / 6, PLANNED: 1.5 / 6}
    assert split == pytest.approx(expected)
    assert sum(split.values()) == pytest.approx(1)


@pytest.mark.parametrize("level", [1.0, 2.0])
def test_a_study_that_gains_nothing_has_no_shares(level):
    rows = rows_of(runs_of(study_of({**dict.fromkeys(NAMES, 1.0), DEFAULT: level})))
    assert shares(rows, "developed", "stationarity") is None
    assert shares(rows, "held out", "stationarity") is None
    assert "%" not in attribution(rows)


@pytest.mark.parametrize(("level", "met"), [(0.029, True), (0.031, False)])
def test_targets_on_means(level, met):
    rows = rows_of(runs_of(study_of({BASELINE: 1, CONTROL: 1, LOCAL: 0.01, DEFAULT: level})))
    judged = {target.asked: target.met for target in targets(rows)}
    assert judged["PerronD3GD, developed cells: means at most 0.10 and 0.03 of Di-DGD"] is met
    assert judged["PerronD3GD, local, developed cells: means at most 0.15 and 0.05 of Di-DGD"]
    assert not any("held out" in asked for asked in judged)


@pytest.mark.parametrize(
    ("ratios", "default", "local"),
    [
        ((0.5, 1.1, 1.2), True, True),  # the median is above 1, the lower quartile is not
        ((1.1, 1.15, 1.2), False, True),
        ((0.5, 1.3, 1.3), True, False),  # the local rule's ceiling is on the median alone
        ((0.5, 0.9, 9.0), True, True),
    ],
)
def test_targets_on_single_cells(ratios, default, local):
    trials = [
        trial(run(BASELINE), run(CONTROL), run(DEFAULT, level=ratio), run(LOCAL, level=ratio), seed=seed)
        for seed, ratio in enumerate(ratios)
    ]
    judged = {target.asked: target for target in targets(rows_of(runs_of(trials)))}
    for reference in (BASELINE, CONTROL):
        one = judged[f"PerronD3GD: no cell above 1.0 of {reference} beyond seed noise"]
        assert one.met is default
        assert bool(one.against) is not default
        assert judged[f"PerronD3GD, local: no cell above 1.2 of {reference}"].met is local


def test_divergence_where_didgd_converges_misses_its_target():
    rows = rows_of(runs_of([trial(run(BASELINE), run(DEFAULT, status="diverged"), run(LOCAL))]))
    judged = {target.asked: target.met for target in targets(rows)}
    assert not judged["PerronD3GD: no run diverges where Di-DGD does not"]
    assert judged["PerronD3GD, local: no run diverges where Di-DGD does not"]


# --- what is written ---


def test_sentences_state_the_numbers():
    levels = dict(zip(NAMES, (1, 1, 0.5, 0.25, 0.1, 0.06, 0.03), strict=True))
    rows = rows_of(runs_of(study_of(levels) + study_of(levels, TORUS)))
    assert headline(rows).count("0.03x the stationarity and 0.03x the disagreement on the 1") == 2
    ring, torus = sentences(rows)
    assert ring.startswith("one-way ring (10), digits: PerronD3GD ends at 0.03x the stationarity and 0.03x")
    assert "correction alone 0.1 and 0.1; adapt-then-combine alone 0.5 and 0.5." in ring
    assert torus.startswith("torus (16), digits: ")


def test_the_report_names_where_didgd_diverges(tmp_path, capsys):
    levels = dict.fromkeys(NAMES, 0.5)
    bad = trial(run(BASELINE, status="diverged"), *(run(name) for name in NAMES[1:]), at=TORUS)
    trials = [*study_of(levels), bad]
    content = report(trials, {"seeds": [0]}, tmp_path)
    capsys.readouterr()
    text = (tmp_path / "study.md").read_text()
    assert "- digits, torus (16), batch 16, step 0.1: 1 of 1" in text
    assert "torus (16), digits: Di-DGD diverged everywhere." in text
    assert json.loads((tmp_path / "study.json").read_text(), parse_constant=pytest.fail) == content
    assert text == markdown(rows_of(runs_of(trials)), tuned(runs_of(trials)))
    with (tmp_path / "cells.csv").open(newline="") as file:
        cells = list(csv.DictReader(file))
    assert len(cells) == 2 * len(NAMES)
    assert {row["stationarity"] for row in cells if row["network"] == "torus (16)"} == {""}
    assert {row["stationarity"] for row in cells if row["network"] == "one-way ring (10)"} == {"1"}
    assert (tmp_path / "study.png").read_bytes().startswith(b"\x89PNG")


def test_numbers_are_written_short():
    values = (1e-7, 3.04e-5, 0.00031, 0.5, 9.96, 99.6, 12345, 0, math.inf)
    assert [shown(value) for value in values] == ["1e-7", "3e-5", "0.00031", "0.5", "10", "100", "1.2e4", "0", "∞"]


# --- running ---


@pytest.fixture
def tiny(monkeypatch):
    """Make the study two cells and a few iterations."""
    monkeypatch.setattr(study, "QUICK", (study.DEVELOPED[2], ("sigmoid", "torus (16)")))
    monkeypatch.setattr(study, "BATCHES", (None,))
    monkeypatch.setattr(study, "STEPS", (0.1,))
    monkeypatch.setattr(study, "ITERATIONS", 20)
    monkeypatch.setattr(study, "EVERY", 2)


@pytest.fixture
def ran(monkeypatch):
    """Trials that only note that they ran."""
    noted = []

    def note(self):
        noted.append(self)
        return trial(*(run(name) for name in NAMES), at=self, seed=self.seed)

    monkeypatch.setattr(Trial, "run", note)
    return noted


def test_what_is_there_is_not_run_again(tmp_path, ran, tiny, capsys):
    run_study(quick=True, seeds=1, out=tmp_path, jobs=1)
    assert [one.seed for one in ran] == [0, 0]
    assert capsys.readouterr().out.startswith("2 trials\n")
    run_study(quick=True, seeds=3, out=tmp_path, jobs=1)
    assert [one.seed for one in ran] == [0, 0, 1, 1, 2, 2]
    assert capsys.readouterr().out.startswith(f"6 trials, 2 of them in {tmp_path} already\n")


def test_an_interrupted_study_keeps_its_finished_trials(tmp_path, ran, tiny, monkeypatch, capsys):
    finish = Trial.run

    def stop(self):
        if ran:
            raise KeyboardInterrupt
        return finish(self)

    monkeypatch.setattr(Trial, "run", stop)
    command = ["study", "--quick", "--seeds", "1", "--jobs", "1", "--out", str(tmp_path)]
    assert call(command) == 130
    assert "the same command goes on" in capsys.readouterr().err
    monkeypatch.setattr(Trial, "run", finish)
    assert call(command) == 0
    assert len(ran) == 2
    assert "2 trials, 1 of them" in capsys.readouterr().out


def test_trials_of_another_study_are_not_mixed_in_and_nothing_is_run(tmp_path, ran, tiny, monkeypatch):
    run_study(quick=True, seeds=1, out=tmp_path, jobs=1)
    monkeypatch.setattr(study, "ITERATIONS", 40)
    with pytest.raises(RecordError, match="another study"):
        run_study(quick=True, seeds=2, out=tmp_path, jobs=1)
    assert len(ran) == 2


@pytest.mark.parametrize("bad", [{"seeds": 0}, {"jobs": 0}])
def test_counts_must_be_positive(tmp_path, bad):
    with pytest.raises(SettingsError, match="at least 1"):
        run_study(quick=True, out=tmp_path, **bad)


@pytest.mark.parametrize(("quick", "seeds"), [(True, 2), (False, 5)])
def test_every_cell_of_the_study_has_a_file_of_its_own(quick, seeds):
    wanted = study.trials(quick=quick, seeds=seeds)
    assert len({one.file for one in wanted}) == len(wanted)
    assert not set(study.DEVELOPED) & set(study.HELD_OUT)


def test_the_command_runs_every_method_and_writes_the_report(tmp_path, tiny, capsys):
    assert call(["study", "--quick", "--seeds", "1", "--jobs", "1", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    methods = study.methods(0.1)
    assert all(method in printed for method in methods)
    assert "At equal step size PerronD3GD ends at" in printed
    content = json.loads((tmp_path / "study.json").read_text())
    assert list(content["algorithms"]) == list(methods)
    assert content["iterations"] == 20
    found = {(one["view"], one["group"], one["method"]) for one in content["summaries"]}
    assert found == {
        (v, g, m) for v in ("equal step", "tuned step") for g in ("developed", "held out") for m in methods
    }
    (first, *_) = study.trials(quick=True, seeds=1)
    kept = json.loads((tmp_path / "trials" / first.file).read_text())
    assert kept["trial"] == asdict(first)
    assert [one["method"] for one in kept["runs"]] == list(methods)
