"""The claims of a study: targets and sentences."""

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest

from d3gd.comparison.numbers import shown
from studies.plan import DEVELOPED, HELD_OUT
from studies.settings import AVERAGED, BASELINE, CENTRAL, CONTROL, DEFAULT, FROST_, METHODS, PUSH_PULL, SINGLE
from studies.targets import first_version, targets
from studies.text import headline, tracking
from studies.tuned import SHOWN
from tests.helpers.studying import RING, TORUS, part, rows

HARD = ("loss 0.3", "all at once")
NOBODY = {
    "bottlenecks": [],
    "large": [],
    "first version": [],
    "hardships": [],
    "hardships, batches": [],
    "precision": rows(part([CENTRAL + SINGLE, DEFAULT + SINGLE]), {}),
    "equal steps": [],
}


def judged(tuned=None, **found):
    """The targets that have something to judge, by what they ask."""
    named = {name.replace("_", " ").replace("hardships batches", "hardships, batches"): r for name, r in found.items()}
    return {target.asked: target for target in targets({**NOBODY, **named}, tuned or {})}


@pytest.mark.parametrize(("level", "met"), [(0.029, True), (0.031, False)])
def test_targets_on_means_take_each_batch_size_by_itself(level, met):
    noisy = {None: 1e-9, 16: level}
    one = part([BASELINE, DEFAULT], batches=(None, 16))
    found = judged(equal_steps=rows(one, lambda t: 1.0 if t.method == BASELINE else noisy[t.batch]))
    assert found["developed cells, full batch: means at most 0.10 and 0.03 of Di-DGD"].met
    assert found["developed cells, batch 16: means at most 0.10 and 0.03 of Di-DGD"].met is met
    assert not any("held out" in asked for asked in found)


@pytest.mark.parametrize(
    ("ratios", "met"),
    [
        ((0.5, 1.1, 1.2), True),  # the median is above 1, the lower quartile is not
        ((1.1, 1.15, 1.2), False),
        ((0.5, 0.9, 9.0), True),
    ],
)
def test_targets_on_single_cells(ratios, met):
    found = judged(equal_steps=rows(part(seeds=3), lambda t: ratios[t.seed] if t.method == DEFAULT else 1.0))
    for reference in (BASELINE, CONTROL):
        one = found[f"no cell above 1.0 of {reference} beyond seed noise"]
        assert one.met is met
        assert bool(one.against) is not met


def test_divergence_where_didgd_converges_misses_its_target():
    assert not judged(large=rows(part(), {DEFAULT: None}))["no run diverges where Di-DGD does not"].met


@pytest.mark.parametrize(("worse", "met"), [(0.9, True), (1.04, True), (1.06, False)])
def test_every_cell_is_compared_with_the_first_version(worse, met):
    first = first_version()
    cells = {(data, network) for data, network, *_ in first}
    assert cells == {*DEVELOPED, *HELD_OUT}
    one = part([BASELINE, DEFAULT], places=(*DEVELOPED, *HELD_OUT), steps=(0.03, 0.1, 0.5), batches=(None, 16), seeds=5)

    def level(trial):
        before = first[trial.data, trial.network, str(trial.batch or "all"), trial.step]["stationarity"]
        return 1.0 if trial.method == BASELINE else before * (worse if (trial.data, trial.network) == TORUS else 1.0)

    target = judged(first_version=rows(one, level))[
        "stationarity: no cell more than 5 % worse than in the first version"
    ]
    assert target.met is met
    assert target.found.startswith(f"{0 if met else 6} of {len(first)} worse")
    few = judged(first_version=rows(replace(one, seeds=2), level))
    assert few[target.asked].verdict == "not judged"


@pytest.mark.parametrize(("level", "met"), [(1e-4, (True, True)), (0.04, (False, False)), (2e-3, (False, False))])
def test_targets_under_hardships(level, met):
    one = part([AVERAGED, DEFAULT], places=(("quadratic", "hub (6)"),), hardships=HARD)
    found = judged(hardships=rows(one, {DEFAULT: level}))
    limits = ("1/30 and 1/1,000", "1/20 and 1/1,000")
    asked = [f"{hard}, exact gradients: means at most {m} of {AVERAGED}" for hard, m in zip(HARD, limits, strict=True)]
    assert tuple(found[each].met for each in asked) == met


@pytest.mark.parametrize(("levels", "met"), [((0.5, 0.9), True), ((0.1, 1.1), False), ((0.8, 0.9), False)])
def test_targets_under_hardships_with_batches(levels, met):
    one = part([AVERAGED, DEFAULT], hardships=HARD, batches=(8,))
    found = judged(
        hardships_batches=rows(one, lambda t: levels[HARD.index(t.hardship)] if t.method == DEFAULT else 1.0)
    )
    (target,) = [target for asked, target in found.items() if asked.startswith("hardships with mini-batches")]
    assert target.met is met


@pytest.mark.parametrize(("level", "met"), [(9.0, True), (11.0, False), (None, False)])
def test_single_precision_is_judged_by_centralized_gradient_descent(level, met):
    found = judged(precision=rows(part([CENTRAL + SINGLE, DEFAULT + SINGLE]), {DEFAULT + SINGLE: level}))
    assert found["in float32 every method ends within 10 times of centralized"].met is met


@pytest.mark.parametrize(("note", "met"), [("", True), ("the best step is at the edge of the grid", False)])
def test_a_tuned_step_at_the_edge_of_the_grid_is_told(note, met):
    row = SimpleNamespace(method=DEFAULT, note=note, status="ranked")
    found = judged({SHOWN: SimpleNamespace(rows=[row])})
    assert found["no method's tuned step is at the edge of the grid"].met is met


def test_the_headline_states_each_group_and_batch_size_with_its_cells():
    one = part([BASELINE, DEFAULT, CENTRAL], places=(RING, TORUS), batches=(None, 16), seeds=2)
    levels = {None: 0.03, 16: 0.4}
    text = headline(one, rows(one, lambda t: levels[t.batch] if t.method == DEFAULT else 1.0))
    assert "each the median of 2 seeds" in text
    assert "- Full batch, 1 developed cells: 0.03 of Di-DGD's stationarity and 0.03 of its disagreement" in text
    assert "- Batch 16, 1 held out cells: 0.4 of Di-DGD's stationarity and 0.4 of its disagreement" in text


def test_the_lead_over_gradient_tracking_is_split_by_networks():
    one = part([DEFAULT, FROST_, PUSH_PULL], places=(RING, TORUS))
    levels = {RING[1]: 100.0, TORUS[1]: 1.0}
    text = tracking(rows(one, lambda t: levels[t.network] if t.method == FROST_ else 1.0))
    assert "| FROST | all networks | 0.1 (1 of 2 below 1) |" in text
    assert "| FROST | one-way rings | 0.01 (1 of 1 below 1) |" in text
    assert "| Push-Pull | all others | 1 (0 of 1 below 1) |" in text


def test_numbers_are_written_short():
    values = (1e-7, 3.04e-5, 0.00031, 0.5, 9.96, 99.6, 12345, 0, math.inf)
    assert [shown(value) for value in values] == ["1e-7", "3e-5", "0.00031", "0.5", "10", "100", "1.2e4", "0", "∞"]


def test_every_method_in_single_precision_is_one_in_double():
    for name, method in METHODS.items():
        assert (method.dtype == "float32") is name.endswith(SINGLE)
        assert name.removesuffix(SINGLE) in METHODS
