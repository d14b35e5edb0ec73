"""Running the study: stored trials, errors, and the command."""

import csv
import json
from dataclasses import asdict, replace

import pytest

from d3gd.comparison.tuning import Grid
from d3gd.errors import RecordError, SettingsError
from studies import plan, report, tuned
from studies.__main__ import main as call
from studies.plan import Trial
from studies.settings import AVERAGED, BASELINE, CENTRAL, DEFAULT, FIELD, METHODS, NETWORKS, SINGLE
from studies.settings import bridge as bridged
from tests.helpers.studying import part, result


@pytest.fixture
def tiny(monkeypatch):
    """Make the study a few cells and iterations, without tuned steps."""
    few = {"seeds": 1, "iterations": 20}
    hard = {"hardships": ("loss 0.3",), **few}
    parts = {
        "equal steps": part(FIELD, **few),
        "first version": part([BASELINE, DEFAULT], **few),
        "bottlenecks": part([BASELINE, DEFAULT], places=(("digits", "bridge (16)"),), **few),
        "large": part([BASELINE, DEFAULT], places=(("digits", "Erdos-Renyi 0.05 (100)"),), **few),
        "weights": part([BASELINE, DEFAULT, "correction, balanced", DEFAULT + SINGLE], **few),
        "hardships": part([AVERAGED, DEFAULT], places=(("quadratic", "hub (6)"),), **hard),
        "hardships, batches": part([AVERAGED, DEFAULT], batches=(8,), **hard),
        "precision": part([DEFAULT + SINGLE, CENTRAL + SINGLE], places=(("quadratic", "hub (6)"),), **few),
    }
    monkeypatch.setattr(plan, "parts", lambda *, quick: parts)
    monkeypatch.setattr(tuned, "ITERATIONS", 20)
    monkeypatch.setattr(tuned, "SURVIVORS", (AVERAGED, DEFAULT))
    monkeypatch.setattr(tuned, "VICTIMS", ())
    monkeypatch.setattr(tuned, "QUICK", (tuned.SHOWN._replace(network="hub (6)", data="quadratic"),))
    monkeypatch.setattr(report, "SHOWN", tuned.QUICK[0])
    monkeypatch.setattr("d3gd.comparison.compare.QUICK", Grid((0.01, 0.05, 0.1, 0.5, 1.0), 1, 3))
    return parts


@pytest.fixture
def ran(monkeypatch, tiny):
    """Trials that only note that they ran."""
    noted = []

    def note(self):
        noted.append(self)
        return result(self, 0.5 if self.method == DEFAULT else 1.0)

    monkeypatch.setattr(Trial, "run", note)
    return noted


def run_trials(parts, out):
    return plan.run_trials(parts, out=out, jobs=1)


def test_what_is_there_is_not_run_again(tmp_path, ran, tiny, capsys):
    run_trials(tiny, tmp_path)
    count = len(ran)
    assert count == len({trial for one in tiny.values() for trial in one.trials})  # parts share trials
    assert capsys.readouterr().out == f"{count} trials\n"
    longer = {name: replace(one, seeds=2) for name, one in tiny.items()}
    run_trials(longer, tmp_path)
    assert {one.seed for one in ran[:count]} == {0}
    assert {one.seed for one in ran[count:]} == {1}
    assert capsys.readouterr().out == f"{2 * count} trials, {count} of them already in {tmp_path}\n"


def test_an_interrupted_study_keeps_its_finished_trials(tmp_path, ran, monkeypatch, capsys):
    finish = Trial.run

    def stop(self):
        if ran:
            raise KeyboardInterrupt
        return finish(self)

    monkeypatch.setattr(Trial, "run", stop)
    command = ["--quick", "--jobs", "1", "--out", str(tmp_path)]
    assert call(command) == 130
    assert "the same command continues" in capsys.readouterr().err
    monkeypatch.setattr(Trial, "run", finish)
    assert call(command) == 0
    assert len(ran) == len(set(ran))
    assert " trials, 1 of them already in " in capsys.readouterr().out


@pytest.mark.parametrize("change", ["method", "content"])
def test_only_a_trial_that_changed_is_run_again(tmp_path, ran, tiny, monkeypatch, change):
    before = run_trials(tiny, tmp_path)
    count = len(ran)
    if change == "method":
        make = METHODS["FRSD"].make
        monkeypatch.setitem(METHODS, "FRSD", replace(METHODS["FRSD"], make=lambda step: make(2 * step)))
    else:
        damaged = tmp_path / "trials" / next(one.file for one in ran if one.method == "FRSD")
        damaged.write_text(damaged.read_text().replace("1", "2", 1))
    assert run_trials(tiny, tmp_path).keys() == before.keys()
    assert [one.method for one in ran[count:]] == ["FRSD"]


def test_no_study_is_written_over_other_files(tmp_path, ran):
    (tmp_path / "study.md").write_text("mine")
    with pytest.raises(RecordError, match=r"'study\.md'"):
        report.study(quick=True, out=tmp_path, jobs=1)
    assert not ran
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]


def test_the_number_of_processes_must_be_positive(tmp_path):
    with pytest.raises(SettingsError, match="at least 1"):
        report.study(quick=True, out=tmp_path, jobs=0)


@pytest.mark.parametrize("quick", [True, False])
def test_every_trial_of_the_study_has_a_file_of_its_own(quick):
    trials = {trial for one in plan.parts(quick=quick).values() for trial in one.trials}
    assert len({one.file for one in trials}) == len(trials)
    assert len({one.key for one in list(trials)[:50]}) == 50


def test_no_cell_is_in_two_groups():
    places = [place for group in plan.GROUPS.values() for place in group]
    assert len(set(places)) == len(places)
    assert all(network in NETWORKS for _, network in places)


def test_a_bridge_is_two_groups_with_one_link_each_way():
    graph = bridged(8)
    across = [(i, j) for i, j in graph.edges.tolist() if (i < 4) != (j < 4)]
    assert sorted(across) == [(3, 4), (7, 0)]
    assert graph.is_strongly_connected
    assert graph.link_count == 2 * 4 * 3 + 2


def test_the_command_runs_every_method_and_writes_the_report(tmp_path, tiny, capsys):
    assert call(["--quick", "--jobs", "1", "--out", str(tmp_path)]) == 0
    assert "At equal step sizes PerronD3GD ends" in capsys.readouterr().out
    text = (tmp_path / "study.md").read_text()
    assert all(f"| {method} |" in text for method in FIELD if method not in (BASELINE, DEFAULT))
    content = json.loads((tmp_path / "study.json").read_text(), parse_constant=pytest.fail)
    assert set(content["parts"]) == set(tiny)
    assert {one["setting"] for one in content["tuned"]} == {str(tuned.QUICK[0])}
    with (tmp_path / "cells.csv").open(newline="") as file:
        cells = list(csv.DictReader(file))
    assert {row["part"] for row in cells} == set(tiny)
    assert {row["stationarity_ratio"] for row in cells if row["method"] == row["reference"]} == {"1"}
    assert all((tmp_path / name).read_bytes().startswith(b"\x89PNG") for name in ("study.png", "loss.png"))
    first = tiny["equal steps"].trials[0]
    kept = json.loads((tmp_path / "trials" / first.file).read_text())
    assert kept["trial"] == asdict(first)


def test_what_has_finished_can_be_reported_before_the_rest(tmp_path, ran, tiny, capsys):
    with pytest.raises(SettingsError, match="no seed of the comparison at equal steps"):
        report.study(quick=True, so_far=True, out=tmp_path, jobs=1)
    longer = {name: replace(one, seeds=2) for name, one in tiny.items()}
    whole = {**longer, "large": replace(tiny["large"], places=(*tiny["large"].places, ("digits", "torus (16)")))}
    run_trials({name: one for name, one in tiny.items() if name != "precision"}, tmp_path)
    count = len(ran)
    found = plan.finished(whole, tmp_path)
    assert {name: (len(one.places), one.seeds) for name, one in found.items()} == dict.fromkeys(
        set(tiny) - {"precision"}, (1, 1)
    )
    lacks = report.missing(whole, found, tuned.QUICK, tuned.finished(tuned.QUICK, tmp_path))
    assert "equal steps: 1 of 2 seeds" in lacks
    assert "large: 1 of 2 pairs of data set and network, 1 seed" in lacks
    assert lacks[-2:] == ["precision: not begun", "tuned steps: 0 of 1 settings"]
    content = report.report(found, run_trials(found, tmp_path), {}, tmp_path, lacks)
    assert len(ran) == count
    assert content["missing"] == lacks
    assert "Not all of it has run: " in (tmp_path / "study.md").read_text()
