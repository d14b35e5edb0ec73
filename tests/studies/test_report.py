"""The claims of a study: shares of the gain, targets, and sentences."""

import csv
import json
import math

import pytest

from d3gd.comparison.numbers import shown
from studies.plan import ADAPT, BASELINE, CONTROL, CORRECTION, DEFAULT, MIXING
from studies.report import report
from studies.summary import (
    rows_of,
    runs_of,
    shares,
    tuned,
)
from studies.targets import targets
from studies.text import attribution, headline, markdown, sentences
from tests.helpers.studying import NAMES, TORUS, run, study_of, trial


def test_shares_of_the_gain_are_its_logarithms_and_sum_to_one():
    levels = dict(zip(NAMES, (1, 1e-1, 1e-2, 1e-3, 1e-4, 1, 1e-6), strict=True))
    split, cells = shares(rows_of(runs_of(study_of(levels))), "developed", "stationarity")
    assert cells == 1
    # First or last, the correction brings 2 or 3 decades, and mixing weights 1 or 2.
    expected = {"exact pi": 1 / 6, ADAPT: 1 / 6, CORRECTION: 2.5 / 6, MIXING: 1.5 / 6}
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
    rows = rows_of(runs_of(study_of({BASELINE: 1, CONTROL: 1, DEFAULT: level})))
    judged = {target.asked: target.met for target in targets(rows)}
    assert judged["PerronD3GD, developed cells: means at most 0.10 and 0.03 of Di-DGD"] is met
    assert not any("held out" in asked for asked in judged)


@pytest.mark.parametrize(
    ("ratios", "met"),
    [
        ((0.5, 1.1, 1.2), True),  # the median is above 1, the lower quartile is not
        ((1.1, 1.15, 1.2), False),
        ((0.5, 0.9, 9.0), True),
    ],
)
def test_targets_on_single_cells(ratios, met):
    trials = [
        trial(run(BASELINE), run(CONTROL), run(DEFAULT, level=ratio), seed=seed) for seed, ratio in enumerate(ratios)
    ]
    judged = {target.asked: target for target in targets(rows_of(runs_of(trials)))}
    for reference in (BASELINE, CONTROL):
        one = judged[f"PerronD3GD: no cell above 1.0 of {reference} beyond seed noise"]
        assert one.met is met
        assert bool(one.against) is not met


def test_divergence_where_didgd_converges_misses_its_target():
    rows = rows_of(runs_of([trial(run(BASELINE), run(DEFAULT, status="diverged"))]))
    judged = {target.asked: target.met for target in targets(rows)}
    assert not judged["PerronD3GD: no run diverges where Di-DGD does not"]


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
