"""What `d3gd doctor` says."""

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from d3gd.cli import doctor
from tests.cli.conftest import Outcome

Command = Callable[..., Outcome]
PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]


def test_it_knows_the_extras_of_the_package() -> None:
    extras = {
        extra: tuple(Requirement(line).name for line in lines)
        for extra, lines in PROJECT["optional-dependencies"].items()
        if extra not in ("dev", "docs")  # for those who work on it
    }
    assert extras == doctor.EXTRAS
    assert set(doctor.CORE) <= {Requirement(line).name for line in PROJECT["dependencies"]}


def test_everything_works_here(d3gd: Command) -> None:
    outcome = d3gd("doctor")
    assert outcome.code == 0, outcome
    assert outcome.out.count(": ok") == len(doctor.TESTS)


def test_what_is_missing_or_broken_is_told_with_what_to_do(d3gd: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise OSError("no room")

    monkeypatch.setattr(doctor, "EXTRAS", {"torch": ("no-such-package",)})
    monkeypatch.setattr(doctor, "TESTS", {"this works": lambda: None, "this does not": broken, "nor this": broken})
    outcome = d3gd("doctor")
    assert outcome.code == 1
    assert "missing: no-such-package; install with: pip install 'd3gd[torch]'" in outcome.out
    assert "this works: ok" in outcome.out
    assert outcome.out.count("FAILED: OSError: no room") == 2
