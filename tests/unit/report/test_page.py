"""Pages as files: what is in them, and what is not."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import d3gd
from d3gd.cli import call
from d3gd.drawing import order, places
from d3gd.errors import RecordError, SettingsError
from d3gd.report import write_report
from d3gd.report.page import embedded, page
from d3gd.report.payload import packed, thinned
from tests.helpers.folders import run


def held(path):
    """The data of a page, found as a browser does: up to the first end of a script."""
    text = path.read_text("utf-8")
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script', text, re.S)[1])


@given(text=st.text(st.characters()))  # also halves of characters, which a name may hold
def test_any_text_survives_inside_a_script(text):
    inside = embedded({"text": text})
    inside.encode()
    assert not set(inside) & set("<>&\u2028\u2029")
    assert json.loads(inside) == {"text": text}


@given(title=st.text(alphabet="<>&\"'/abc{}\ud800"))
def test_any_title_is_text(title):
    made = page(title, "runs", {"runs": []})
    made.encode()
    (inside,) = re.findall(r"<title>(.*?)</title>", made)
    assert not set(inside) & set("<>\"'")


def test_the_page_without_its_data_is_small_and_alone():
    for kind in ("runs", "table"):
        made = page("title", kind, {})
        assert len(made) < 100_000
        addresses = [address for address in re.findall(r"https?://[^\s\"']+", made) if "w3.org" not in address]
        assert addresses == []
        assert not re.search(r"<link|<img|@import|url\(", made)


@given(records=st.integers(0, 5000), most=st.integers(2, 300))
def test_thinning_keeps_the_ends(records, most):
    kept = thinned(records, most).tolist()
    assert kept == sorted(set(kept))
    assert len(kept) <= most + 1
    assert not records or (kept[0], kept[-1]) == (0, records - 1)


def test_a_layout_is_the_same_every_time_and_inside_its_square():
    for graph in (d3gd.graphs.ring(12), d3gd.graphs.grid(4, 4), d3gd.graphs.star(9), d3gd.graphs.complete(3)):
        drawn = places(graph.n, graph.sources, graph.targets)
        assert drawn == places(graph.n, graph.sources, graph.targets)
        assert np.min(drawn) >= 0
        assert np.max(drawn) <= 1
        apart = np.linalg.norm(np.array(drawn)[:, None] - np.array(drawn)[None], axis=2) + np.eye(graph.n)
        assert apart.min() > 0.02
        assert sorted(order(graph.n, graph.sources, graph.targets)) == list(range(graph.n))


def test_neighbours_are_drawn_nearer_than_others():
    graph = d3gd.graphs.grid(5, 5)
    points = np.array(places(graph.n, graph.sources, graph.targets))
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    linked = distances[tuple(graph.edges.T)]
    assert linked.max() < np.median(distances)


def test_a_page_holds_the_numbers_of_its_run(tmp_path):
    result = run(tmp_path / "run", record_weights=True)
    result.report(tmp_path / "page.html")
    (shown,) = held(tmp_path / "page.html")["runs"]
    assert shown["iterations"] == result.iterations.tolist()
    assert shown["metrics"]["disagreement"] == result.metrics["disagreement"].tolist()
    assert shown["frames"] == result.history.iterations.tolist()
    assert shown["weights"] == packed(result.history.weights)


def test_commands_write_pages(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(
        'iterations = 20\n[graph]\nkind = "ring"\nn = 3\n[problem]\nkind = "quadratic"\ndim = 2\n'
        '[algorithm]\nkind = "D3GD"\nstep_size = 0.05\n'
    )
    assert call(["run", "small.toml", "--report"]) == 0
    assert "wrote runs/small-0/report.html" in capsys.readouterr().out
    assert len(held(tmp_path / "runs/small-0/report.html")["runs"][0]["frames"]) == 3
    assert "record_weights = true" in (tmp_path / "runs/small-0/experiment.toml").read_text()
    assert call(["run", "small.toml", "--seed", "1"]) == 0
    assert call(["report", "runs/small-0", "runs/small-1", "runs"]) == 0
    assert "skipped, not finished: runs" in capsys.readouterr().err
    names = [each["name"] for each in held(tmp_path / "report.html")["runs"]]
    assert names == ["seed=0", "seed=1"]
    # The page is no part of the run, which goes on beside it.
    assert call(["run", "small.toml", "--report", "--resume", "--iterations", "30"]) == 0
    assert d3gd.Result.load("runs/small-0").history.iterations.tolist() == [0, 10, 20, 30]


def test_what_cannot_be_reported_is_told(tmp_path, capsys):
    with pytest.raises(RecordError, match="no run to report"):
        write_report({}, tmp_path / "page.html")
    with pytest.raises(SettingsError, match=r"ends in '\.txt'; a report's name ends in \.html"):
        run(None).report(tmp_path / "page.txt")
    result = run(None)
    with pytest.raises(RecordError, match=r"one site, .* d3gd site collect"):
        replace(result, x=result.x[:1], weights=result.weights[:1]).report(tmp_path / "page.html")
    assert call(["report", str(tmp_path)]) == 2
    assert "not the folder of a finished run" in capsys.readouterr().err
    (tmp_path / "compare.json").write_text("{}")
    assert call(["report", str(tmp_path), str(tmp_path)]) == 2
    assert "report it alone" in capsys.readouterr().err
    assert call(["report", str(tmp_path), "--out", str(tmp_path / "page.html")]) == 2
    assert "compare.json" in capsys.readouterr().err
    assert not (tmp_path / "page.html").exists()
