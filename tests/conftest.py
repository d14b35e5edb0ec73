"""Every test draws its examples as `tests.strategies` says, whether it imports it or not; and shared fixtures."""

import pytest

import tests.strategies  # noqa: F401
from d3gd.experiments import compare_figure


@pytest.fixture
def blank(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write empty figures of comparisons, where drawing them would take longer than all else."""
    monkeypatch.setattr(compare_figure, "draw", lambda comparison, suffixes: dict.fromkeys(suffixes, b""))
