"""What long work tells of itself."""

import sys

import pytest

from d3gd.runs.progress import progress_bar


@pytest.mark.parametrize(("total", "lines"), [(5, 6), (20, 11), (1000, 11)])
def test_without_a_terminal_every_tenth_is_a_line(capsys, total, lines):
    with progress_bar(True, total, "Work") as show:
        for done in range(total + 1):
            show(done, "")
    printed = capsys.readouterr().err.splitlines()
    assert len(printed) == lines
    assert (printed[0], printed[-1]) == (f"Work: 0 of {total} (0 %)", f"Work: {total} of {total} (100 %)")


@pytest.mark.parametrize("wanted", [None, False])
def test_without_a_terminal_nothing_is_shown_unless_asked_for(capsys, wanted):
    with progress_bar(wanted, 3, "Work") as show:
        show(1, "a third")
    assert capsys.readouterr().err == ""


def test_on_a_terminal_there_is_a_bar_that_goes_away(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with progress_bar(None, 3, "Work") as show:
        show(3, "all")
    assert "Work" in capsys.readouterr().err
