"""Running the study: stored trials, errors, and the command."""

import json
from dataclasses import asdict

import pytest

from d3gd.errors import RecordError, SettingsError
from studies import plan as study
from studies.__main__ import main as call
from studies.plan import Trial
from studies.report import study as run_study
from tests.helpers.studying import NAMES, run, trial


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
    assert capsys.readouterr().out.startswith("6 trials, 2 of them already in ")


def test_an_interrupted_study_keeps_its_finished_trials(tmp_path, ran, tiny, monkeypatch, capsys):
    finish = Trial.run

    def stop(self):
        if ran:
            raise KeyboardInterrupt
        return finish(self)

    monkeypatch.setattr(Trial, "run", stop)
    command = ["--quick", "--seeds", "1", "--jobs", "1", "--out", str(tmp_path)]
    assert call(command) == 130
    assert "the same command continues" in capsys.readouterr().err
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


def test_only_a_damaged_trial_is_run_again(tmp_path, ran, tiny):
    run_study(quick=True, seeds=1, out=tmp_path, jobs=1)
    report = (tmp_path / "study.json").read_bytes()
    damaged = tmp_path / "trials" / ran[1].file
    damaged.write_text(damaged.read_text().replace("1", "2", 1))
    run_study(quick=True, seeds=1, out=tmp_path, jobs=1)
    assert ran[2:] == [ran[1]]
    assert (tmp_path / "study.json").read_bytes() == report


def test_trials_of_an_older_version_are_refused_and_nothing_is_run(tmp_path, ran, tiny):
    run_study(quick=True, seeds=1, out=tmp_path, jobs=1)
    (tmp_path / "trials" / ran[1].file).write_text(json.dumps({"key": "0", **trial(run(NAMES[0]))}))
    with pytest.raises(RecordError, match="older d3gd"):
        run_study(quick=True, seeds=2, out=tmp_path, jobs=1)
    assert len(ran) == 2


def test_no_study_is_written_over_other_files(tmp_path, ran, tiny):
    (tmp_path / "study.md").write_text("mine")
    with pytest.raises(RecordError, match=r"'study\.md'"):
        run_study(quick=True, seeds=1, out=tmp_path, jobs=1)
    assert not ran
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]


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
    assert call(["--quick", "--seeds", "1", "--jobs", "1", "--out", str(tmp_path)]) == 0
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
