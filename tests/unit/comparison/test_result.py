"""What a comparison writes, and that it keeps its runs."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

import d3gd
from d3gd.comparison import figure as compare_figure
from d3gd.comparison import text as compare_text
from d3gd.comparison.methods import named
from d3gd.comparison.summary import ranked
from d3gd.errors import RecordError, SettingsError
from docs.scripts import methods
from tests.helpers.comparing import Distance, Idle, Local, Watch, compared, row, run


def test_finished_runs_are_kept_and_only_what_is_missing_is_run(tmp_path, blank):
    own, watch = {"idle": lambda gamma: Idle(step_size=gamma)}, Watch(tmp_path)
    first = compared(methods=own, only=["idle"], out=tmp_path)
    assert watch.made() == 2 * 3 + 2  # two steps on the seeds of tuning, and the best on two
    again = compared(methods=own, only=["idle"], out=tmp_path)
    assert watch.made() == 0
    assert again.rows == first.rows
    compared(methods=own, only=["idle"], out=tmp_path, seeds=4)
    assert watch.made() == 2
    for path in tmp_path.glob("runs/idle*/*seed-1.json"):
        path.write_text("{")  # a damaged file is no run
    watch.made()
    compared(methods=own, only=["idle"], out=tmp_path)
    assert watch.made() == 1


@pytest.mark.parametrize("damage", [lambda text: text.replace('"width": 8', '"width": 9'),
                                    lambda text: text.replace("stationarity", "stationaritx"),
                                    lambda text: json.dumps(json.loads(text)["curves"])])  # fmt: skip
def test_a_run_that_is_not_what_was_written_is_run_again(tmp_path, blank, damage):
    first, watch = compared(out=tmp_path), Watch(tmp_path)
    watch.made()
    path = next(tmp_path.glob("runs/Perron*/*seed-1.json"))
    path.write_text(damage(path.read_text()))
    watch.made()
    again = compared(out=tmp_path)
    assert watch.made() == 1
    assert [row.value for row in again.rows] == [row.value for row in first.rows]


def test_a_run_of_another_seed_is_not_taken_for_it(tmp_path, blank):
    always = {"problem": Distance(), "only": ["PerronD3GD"], "out": tmp_path}  # all seeds draw the same
    compared(**always)
    (first,) = tmp_path.glob("runs/*/*seed-0.json")
    first.write_bytes(first.with_name(first.name.replace("seed-0", "seed-1")).read_bytes())
    assert [run.seed for run in compared(**always).runs["PerronD3GD"]] == [0, 1]


@pytest.mark.parametrize("name", ["experiment.toml", "compare.md", "settings.json", "runs"])
def test_a_folder_with_other_files_is_left_alone(tmp_path, name):
    path = tmp_path / name
    path.mkdir() if name == "runs" else path.write_text("{}")
    with pytest.raises(RecordError, match=f"'{name}'; choose a new"):
        compared(out=tmp_path)
    assert list(tmp_path.iterdir()) == [path]
    assert path.is_dir() or path.read_text() == "{}"


def test_saving_replaces_an_earlier_version_and_nothing_else(tmp_path, blank):
    found = compared(iterations=4, seeds=1, steps=[0.1])
    (tmp_path / "notes.txt").write_text("mine")
    found.save(tmp_path)
    written = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    found.save(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == written.keys()
    other = replace(found, title="another network")
    with pytest.raises(RecordError, match="nothing is overwritten"):
        other.save(tmp_path)
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign/compare.csv").write_text("mine")
    with pytest.raises(RecordError, match=r"'compare\.csv'"):
        found.save(tmp_path / "foreign")
    assert [path.read_text() for path in (tmp_path / "foreign").iterdir()] == ["mine"]
    assert all((tmp_path / name).read_bytes() == content for name, content in written.items())


def test_a_method_that_was_changed_is_run_again(tmp_path, blank):
    watch = Watch(tmp_path)
    compared(methods={"mine": lambda gamma: d3gd.DiDGD(step_size=gamma)}, only=["mine"], out=tmp_path)
    made = watch.made()
    compared(methods={"mine": lambda gamma: Idle(step_size=gamma)}, only=["mine"], out=tmp_path)
    assert watch.made() == made


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"iterations": 41}, "another budget"),
        ({"problem": lambda seed: Distance(seed=seed + 1)}, "another network, data or first seed"),
        ({"graph": d3gd.graphs.complete(4)}, "another network or problem"),
    ],
)
def test_a_folder_of_another_comparison_is_left_alone(tmp_path, blank, change, told):
    compared(only=["Centralized"], out=tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(RecordError, match=f"{told}; choose another --out"):
        compared(only=["Centralized"], out=tmp_path, **change)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_names_over_several_lines_or_with_control_characters_take_one_line(tmp_path, capsys, blank):
    name = "mine\n(\x1b[31mred)\ud800"
    found = compared(methods={name: named("PerronD3GD")}, only=[name, "Centralized"], out=tmp_path)
    assert found.row(name).rank == 1
    found.show()
    printed = capsys.readouterr().out
    for text in (printed, (tmp_path / "compare.md").read_text(), repr(found)):
        assert "\x1b" not in text
        assert "mine (" in text
    with (tmp_path / "compare.csv").open(newline="") as file:
        assert [line["rank"] for line in csv.DictReader(file)] == ["", "1"]
    assert name in [row["method"] for row in json.loads((tmp_path / "compare.json").read_text())["rows"]]


def test_curves_of_methods_that_evaluate_more_gradients_are_drawn_against_them_too(tmp_path):
    own = {"twice": lambda gamma: Local(step_size=gamma, steps=2)}
    compared(methods=own, only=["DiDGD", "twice"], seeds=1, steps=[0.1]).plot(tmp_path / "curves.svg")
    assert "gradients per agent" in (tmp_path / "curves.svg").read_text()


def test_names_of_users_cannot_break_tables_or_figures(tmp_path, capsys):
    name = "_a|b <script>$x$ [red]*`"
    found = compared(methods={name: named("PerronD3GD"), "bad": lambda gamma: Idle(step_size=gamma, fault="a|b\nc")},
                     only=[name, "bad", "Centralized"], out=tmp_path)  # fmt: skip
    text = (tmp_path / "compare.md").read_text()
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in table} == {14}
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
    assert "ValueError: a\\|b c" in text
    with (tmp_path / "compare.csv").open() as file:
        assert [line["method"] for line in csv.DictReader(file)] == [one.method for one in found.rows]
    strict = json.loads((tmp_path / "compare.json").read_text(), parse_constant=lambda word: pytest.fail(word))
    assert strict["rows"][0]["method"] == found.rows[0].method
    found.show()
    assert name in capsys.readouterr().out
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    found.plot(tmp_path / "again.svg")
    assert "$x$" in (tmp_path / "again.svg").read_text()
    assert "gradients per agent" not in (tmp_path / "again.svg").read_text()  # the same as iterations here
    with pytest.raises(SettingsError, match=r"\.png, \.pdf or \.svg"):
        found.plot(tmp_path / "again.gif")
    table = found.to_latex().splitlines()
    rows = [line for line in table if line.endswith(r" \\")]
    assert len(rows) == 1 + len(found.rows)
    assert {line.replace(r"\&", "").count("&") + 1 for line in rows} == {len(table[0].split("{")[-1]) - 1}
    assert r"\_a|b <script>\$x\$ [red]*`" in found.to_latex()


def test_curves_are_drawn_on_given_axes_and_written_only_when_asked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = compared(only=["DiDGD", "PerronD3GD"], seeds=1, steps=[0.1])
    figure = found.plot()
    assert [panel.get_xlabel().split(" (")[0] for panel in figure.axes] == [
        "iteration",
        "sent over all links",
        "processor time",
    ]
    axes = Figure().subplots()
    assert found.plot(ax=axes, x="bytes") is axes
    assert axes.get_xlabel().startswith("sent over all links")
    for drawn, shared in zip(axes.get_lines(), figure.axes[1].get_lines(), strict=True):
        np.testing.assert_array_equal(drawn.get_xydata(), shared.get_xydata())
    with pytest.raises(SettingsError, match="ax= writes no file"):
        found.plot("curves.png", ax=axes)
    assert list(tmp_path.iterdir()) == []


def test_a_comparison_with_nothing_to_rank_is_told_and_drawn(tmp_path):
    found = compared(only=["DGD"], out=tmp_path)
    assert compare_text.headline(found) == "No method reached the end of the budget."
    assert (tmp_path / "curves.pdf").exists()
    assert repr(found).endswith("nothing ranked)")


def test_a_line_that_leaves_the_picture_leaves_the_legend_its_room():
    levels = {"tame": 1e-3, "wild": 1e200, "worse": 1e250}
    rows = ranked([row(name, [level] * 2) for name, level in levels.items()])
    runs = {name: [run(name, seed=seed, level=level) for seed in range(2)] for name, level in levels.items()}
    found = compare_figure.draw(replace(compared(), rows=rows, runs=runs), [".png"])  # a warning would be an error
    assert found[".png"].startswith(b"\x89PNG")


def test_no_two_curves_look_alike():
    rows = ranked([row(f"method {i}", [0.5] * 2) for i in range(40)])
    rows[:0] = [replace(row(name, [0.5] * 2), status="yardstick") for name in ("one", "two")]
    runs = {each.method: [run(each.method, seed=seed, level=0.5) for seed in range(2)] for each in rows}
    panel = Figure().subplots()
    replace(compared(), rows=rows, runs=runs).plot(ax=panel)
    looks = {(line.get_color(), line.get_linestyle(), line.get_marker()) for line in panel.get_lines()}
    assert len(looks) == len(panel.get_lines()) == 42


def test_the_table_becomes_a_data_frame():
    frame = compared().to_pandas()
    assert frame["method"].tolist() == ["Centralized", "PerronD3GD"]
    assert (frame["value_low"] <= frame["value_high"]).all()


def test_every_methods_page_gets_its_own_rows(tmp_path, blank):
    compared(only=["PerronD3GD", "PerronD3GD rule=planned", "DGD"], out=tmp_path)
    found = [("../ring/compare.md", json.loads((tmp_path / "compare.json").read_text()))]
    text = methods.compared("PerronD3GD", found)
    assert [text.count(word) for word in ("| PerronD3GD |", "| PerronD3GD rule=planned |", "| DGD |")] == [1, 1, 0]
    assert "(../ring/compare.md)" in text
    assert "needs undirected links" in methods.compared("DGD", found)
    assert methods.compared("SGP", found) == ""
