"""The page of a comparison in a real browser."""

import json
from pathlib import Path

import pytest

import d3gd
from d3gd.cli import call
from tests.report.test_pages import HOSTILE, unharmed

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    out = tmp_path_factory.mktemp("comparison") / "here"
    patch = pytest.MonkeyPatch()
    patch.setattr("d3gd.comparison.figure.draw", lambda comparison, suffixes: dict.fromkeys(suffixes, b""))
    comparison = d3gd.compare(
        d3gd.graphs.ring(4),
        lambda seed: d3gd.problems.quadratic(agents=4, dim=2, seed=seed),
        methods={HOSTILE[1]: lambda gamma: d3gd.DiDGD(step_size=gamma / 2)},
        only=["DiDGD", "PushPull", "DGD", HOSTILE[1]],
        iterations=40,
        seeds=2,
        steps=[0.01, 0.1],
        jobs=1,
        out=out,
    )
    patch.undo()
    return comparison, out


def column(page, i):
    rows = "[...document.querySelectorAll('#ranking tbody tr')]"
    return page.js(f"{rows}.map(row => row.cells[arguments[0]].textContent)", i)


def test_the_table_sorts_and_curves_toggle(found, opened, tmp_path, capsys):
    comparison, folder = found
    assert call(["report", str(folder), "--out", str(tmp_path / "page.html")]) == 0
    page = opened(tmp_path / "page.html")
    assert column(page, 1) == [row.method for row in comparison.rows]
    sent = page.all("#ranking th button")
    sent[1].click()
    names = column(page, 1)
    assert names == sorted(names)
    sent[1].click()
    assert column(page, 1) == names[::-1]
    sent[0].click()
    assert column(page, 0) == ["1", "2", "3", "\N{EN DASH}"]
    medians = [row.value.median for row in comparison.rows if row.rank is not None]
    assert [float(text.split()[0]) for text in column(page, 4)[:3]] == [float(f"{value:.4g}") for value in medians]
    assert len(page.all(".curve")) == 3
    page.all("label.toggle input")[0].click()
    assert len(page.all(".curve")) == 2
    unharmed(page)


def test_methods_that_tie_are_named_by_their_ranks(opened, tmp_path, capsys):
    """In the published comparison, of which the curves are not kept."""
    folder = Path(__file__).parents[2] / "docs/results/compare/undirected"
    rows = json.loads((folder / "compare.json").read_text())["rows"]
    assert call(["report", str(folder), "--out", str(tmp_path / "page.html")]) == 0
    page = opened(tmp_path / "page.html")
    notes = page.js("[...document.querySelectorAll('#ranking tbody tr')].map(row => row.lastChild.textContent)")
    told = [f"ties with {', '.join(map(str, row['ties']))}" if row["ties"] else "" for row in rows]
    assert any(told)
    assert [note.startswith(tie) for note, tie in zip(notes, told, strict=True)] == [True] * len(rows)
    assert "The curves are not in this folder" in page.one("main").text
    unharmed(page)


def test_the_page_of_the_object_is_that_of_its_folder(found, tmp_path, capsys):
    comparison, folder = found
    comparison.report(tmp_path / "object.html")
    assert call(["report", str(folder), "--out", str(tmp_path / "folder.html")]) == 0
    assert (tmp_path / "object.html").read_bytes() == (tmp_path / "folder.html").read_bytes()


def test_without_runs_there_is_a_table(found, opened, tmp_path, capsys):
    _, folder = found
    (tmp_path / "here").mkdir()
    (tmp_path / "here/compare.json").write_bytes((folder / "compare.json").read_bytes())
    assert call(["report", str(tmp_path / "here"), "--out", str(tmp_path / "page.html")]) == 0
    page = opened(tmp_path / "page.html")
    assert len(page.all("#ranking tbody tr")) == 4
    assert page.all(".curve") == []
    unharmed(page)
