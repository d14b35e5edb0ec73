"""The pages of sweeps and studies in a real browser."""

import csv
from pathlib import Path

import numpy as np
import pytest

import d3gd
from d3gd.cli import call
from d3gd.runs import files
from d3gd.sweeps.result import Sweep
from tests.report.test_comparison import column
from tests.report.test_pages import HOSTILE, unharmed

pytestmark = pytest.mark.xdist_group("browser")


def make(step_size, name, seed):
    if step_size < 0:
        raise RuntimeError(HOSTILE[0])
    problem = d3gd.problems.quadratic(agents=3, dim=2, seed=seed)
    return {
        "algorithm": d3gd.DiDGD(step_size=step_size),
        "graph": d3gd.graphs.ring(3),
        "problem": problem,
        "iterations": 30,
    }


def test_a_sweep_has_a_page_with_its_combinations_and_curves(opened, emulated, tmp_path, capsys):
    found = d3gd.sweep(
        make, {"step_size": [-1.0, 0.01, 0.1], "name": [HOSTILE[1]]}, out=tmp_path / "s", seeds=2, jobs=1
    )
    assert call(["report", str(tmp_path / "s"), "--out", str(tmp_path / "page.html")]) == 0
    page = opened(tmp_path / "page.html")
    assert [float(text) for text in column(page, 1)] == [0.1, 0.01, -1]
    medians = [float(f"{group.median:.4g}") for group in found.ranked[:2]]
    assert [float(text) for text in column(page, 3)[:2]] == medians
    assert column(page, 6)[2] == "2 of 2 failed"
    assert len(page.all(".curve")) == 2
    emulated("setEmulatedMedia", media="print")
    assert [label.text for label in page.all("label.toggle") if label.is_displayed()] != []  # names of curves on paper
    emulated("setEmulatedMedia", media="")
    page.all("label.toggle input")[0].click()
    assert len(page.all(".curve")) == 1
    page.all("#ranking th button")[1].click()
    assert [float(text) for text in column(page, 1)] == [-1, 0.01, 0.1]
    unharmed(page)


def test_a_sweep_read_from_its_folder_is_the_same(tmp_path):
    made = d3gd.sweep(make, {"step_size": [-1.0, 0.1], "name": ["a", "b"]}, out=tmp_path / "s", seeds=2, jobs=1)
    read = Sweep.load(tmp_path / "s")
    assert read.settings == {name: tuple(values) for name, values in made.settings.items()}
    assert (read.title, read.metric, read.seeds, read.folder) == (made.title, made.metric, (0, 1), made.folder)
    for one, other in zip(made.rows, read.rows, strict=True):
        assert one == other
    assert read.plot() is not None


def test_a_study_has_a_page_with_its_cells_and_profiles(opened, tmp_path, capsys):
    ratios = {"PerronD3GD": [0.5, 0.1, 0.2], HOSTILE[1]: [2.0, 1.0, np.inf]}
    with (tmp_path / "cells.csv").open("w") as file:
        writer = csv.writer(file)
        writer.writerow(["part", "network", "method", "stationarity_ratio"])
        writer.writerows(["equal steps", i, who, each[i]] for i in range(3) for who, each in ratios.items())
    files.write_json(tmp_path / "settings.json", {"study": HOSTILE[0]})
    assert call(["report", str(tmp_path), "--out", str(tmp_path / "page.html")]) == 0
    page = opened(tmp_path / "page.html")
    assert len(page.all("#ranking tbody tr")) == 6
    assert page.js("DATA.curves[arguments[0]]['equal steps stationarity_ratio'].y", "PerronD3GD") == [0.1, 0.2, 0.5]
    page.all("#ranking th button")[3].click()
    assert column(page, 3)[0] == "0.1"
    assert column(page, 3)[-1] == "inf"
    unharmed(page)


def test_of_a_long_table_the_rows_with_given_words_are_shown(opened, tmp_path):
    from d3gd.report.table import number, write_table

    rows = [("", [(f"row {i}", f"row {i}"), number(float(i))]) for i in range(700)]
    write_table(tmp_path / "page.html", "long", ["name", "value"], rows, without="no curves")
    page = opened(tmp_path / "page.html")
    assert len(page.all("#ranking tbody tr")) == 500
    assert page.one("#told").text.startswith("The first 500 of 700 rows")
    page.one("#filter").send_keys("row 69")
    assert [float(text) for text in column(page, 1)] == [i for i in range(700) if "69" in str(i)]
    unharmed(page)


def test_the_study_is_narrow_enough_for_screens_phones_and_paper(opened, emulated, tmp_path, capsys):
    """The published study, of which every row can be found."""
    study = Path(__file__).parents[2] / "docs/results/study"
    with (study / "cells.csv").open() as file:
        cells = list(csv.DictReader(file))
    assert call(["report", str(study), "--out", str(tmp_path / "page.html")]) == 0
    for width in (1280, 360):
        emulated("setDeviceMetricsOverride", width=width, height=740, deviceScaleFactor=1, mobile=width < 700)
        page = opened(tmp_path / "page.html")
        assert page.js("document.documentElement.scrollWidth") <= width
    pick = "(e => {e.value = [...e.options].find(o => o.textContent === arguments[1]).value;"
    pick += "e.dispatchEvent(new Event('change'))})(document.querySelector(`[data-pick='${arguments[0]}']`))"
    wanted = {"part": "hardships", "network": "hub (6)", "method": "R-FAST"}
    for name, value in wanted.items():
        page.js(pick, name, value)
    rows = [row for row in cells if all(row[name] == value for name, value in wanted.items())]
    found = page.js(
        "[...document.querySelectorAll('[data-column=stationarity]')].map(cell => Number(cell.textContent))"
    )
    assert found == [float(row["stationarity"]) for row in rows] != []
    shown = page.js("[...document.querySelectorAll('#ranking th:not([hidden])')].map(head => head.textContent)")
    assert not set(wanted) & set(shown)  # what all rows have in common is said above them instead
    assert all(f"{name} {value}" in page.one("#told").text for name, value in wanted.items())
    # A4 across, in CSS's pixels
    emulated("setDeviceMetricsOverride", width=1047, height=718, deviceScaleFactor=1, mobile=False)
    emulated("setEmulatedMedia", media="print")
    page = opened(tmp_path / "page.html")
    assert page.js("document.getElementById('ranking').getBoundingClientRect().right") <= 1047
    unharmed(page)


def test_a_ratio_stands_with_its_quartiles_and_runs_with_those_that_diverged(opened, tmp_path, capsys):
    header = ["part", "method", "loss", "loss_ratio", "loss_ratio_lower", "loss_ratio_upper", "completed", "diverged"]
    table = [["a", "b", 2, 0.12345, 0.1, 0.25, 3, 0], ["a", "c", 2, 1, 1, 1, 1, 2], ["a", "d", "", "", "", "", 0, 3]]
    with (tmp_path / "cells.csv").open("w") as file:
        csv.writer(file).writerows([header, *table])
    files.write_json(tmp_path / "settings.json", {"study": "small"})
    assert call(["report", str(tmp_path), "--out", str(tmp_path / "page.html")]) == 0
    page = opened(tmp_path / "page.html")
    heads = [each.text for each in page.all("#ranking th")]
    assert heads == ["part", "method", "loss", "loss ratio", "seeds"]
    assert column(page, 3) == ["0.123 [0.1, 0.25]", "1", ""]
    assert column(page, 4) == ["3", "1 of 3", "0 of 3"]
    page.all("#ranking th button")[3].click()
    assert column(page, 1) == ["b", "c", "d"]
    unharmed(page)


def test_ticks_are_round_numbers(opened, tmp_path):
    from d3gd.report.table import write_table

    write_table(tmp_path / "page.html", "empty", ["name"], [("", [("a", "a")])], without="no curves")
    page = opened(tmp_path / "page.html")
    for low, high in ((0.0098, 1), (0, 120), (-3, 17), (4.53, 4.57), (1e6, 3e9), (5e-9, 6e-9), (7, 7 + 1e-6)):
        ticks = page.js("new Chart('', [], {}).round(arguments[0], arguments[1])", low, high)
        assert 3 <= len(ticks) <= 7
        assert low - 1e-9 * (high - low) <= min(ticks)
        assert max(ticks) <= high + 1e-9 * (high - low)
        step = np.diff(ticks).mean()
        assert round(step / 10 ** np.floor(np.log10(step) + 1e-6), 3) in (1, 2, 5)
        np.testing.assert_allclose(np.array(ticks) / step, np.round(np.array(ticks) / step), atol=1e-5)
