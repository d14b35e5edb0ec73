"""Pages that follow from code and results are as these say, and every page has a place in the navigation."""

import re
from pathlib import Path

import numpy as np
import pytest

from docs.scripts import between, claims, contents, pages

ROOT = Path(__file__).parents[2]
WRITTEN = pages.all_pages()


@pytest.mark.parametrize("name", WRITTEN)
def test_the_page_is_what_its_script_writes(name):
    path = ROOT / "docs" / name
    assert path.exists(), "run: make pages"
    with np.errstate(all="ignore"):
        assert path.read_text(encoding="utf-8") == WRITTEN[name](), "run: make pages"


def test_every_page_has_a_place_in_the_navigation():
    listed = {ROOT / f"{contents.INDEXES[0]}.md"}
    for index in contents.INDEXES:
        path = ROOT / f"{index}.md"
        for _, found in contents.sections(path.read_text(encoding="utf-8")):
            listed |= {(path.parent / f"{page}.md").resolve() for _, page in found}
    written = (page for page in ROOT.glob("docs/**/*.md") if not (page.parent / "runs").exists())  # not beside runs
    missing = {*ROOT.glob("*.md"), *written} - listed
    assert sorted(path.relative_to(ROOT).as_posix() for path in missing) == [], "add them to a list of docs/index.md"


def test_a_table_takes_the_place_of_the_one_before():
    page = "a\n<!-- t -->\n\nold\n\n<!-- /t -->\nb"
    assert between.filled(page, "t", "new") == "a\n<!-- t -->\n\nnew\n\n<!-- /t -->\nb"
    with pytest.raises(SystemExit, match="found 0 and 0"):
        between.filled(page, "u", "new")


PLACES = [
    (page, name)
    for page in sorted((ROOT / "docs").rglob("*.md"))
    for name in re.findall(r"<!-- /([\w -]+) -->", page.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize(("page", "name"), PLACES, ids=[f"{page.stem}-{name}" for page, name in PLACES])
def test_every_place_for_a_table_holds_one(page, name):
    text = page.read_text(encoding="utf-8")
    inside = text.partition(f"<!-- {name} -->")[2].partition(f"<!-- /{name} -->")[0]
    assert between.filled(text, name, inside) == text
    _, rule, *rows = inside.strip().splitlines()
    assert set(rule) <= set("|- ")
    assert all(row.startswith("|") for row in rows)


@pytest.mark.parametrize("script", sorted((ROOT / "docs/scripts").glob("*_table.py")), ids=lambda path: path.stem)
def test_every_script_of_a_table_is_named_where_its_table_is(script):
    page, name = re.search(r'between\.write\(\s*"([^"]+)", ("[^"]+"|name),', script.read_text("utf-8")).groups()
    places = [place for path, place in PLACES if path == ROOT / "docs" / page]
    assert name.strip('"') in [*places, "name"]
    assert f"docs.scripts.{script.stem}" in (ROOT / "docs" / page).read_text(encoding="utf-8")


def test_the_row_of_a_claim():
    one = {"label": "D3GD (global)", "shown": "29.0 % [27.1, 30.7]"}
    claim = {"claim": "C", "measure": "M", "paper": "30 %", "ours": [one], "verdict": "partly"}
    header, rule, row = claims.table({"seeds": list(range(10)), "claims": [claim]}).splitlines()
    assert header == "| claim | paper | ours: median [quartiles] of 10 seeds | verdict |"
    assert rule == "|---|---|---|---|"
    assert row == "| C<br><sub>M</sub> | 30 % | global: 29.0 % [27.1, 30.7] | partly |"
