"""Shared fixtures; examples are drawn as `tests.helpers.strategies` defines."""

import pytest

import tests.helpers.strategies  # noqa: F401
from d3gd.comparison import figure as compare_figure


@pytest.fixture
def blank(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write empty figures of comparisons, where drawing them would take longer than all else."""
    monkeypatch.setattr(compare_figure, "draw", lambda comparison, suffixes: dict.fromkeys(suffixes, b""))
