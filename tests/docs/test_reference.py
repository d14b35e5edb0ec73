"""The reference holds every public name."""

import pkgutil
import re
from collections import Counter
from pathlib import Path

import pytest

from docs.scripts import api
from tests.helpers.launching import require

ROOT = Path(__file__).parents[2]
PAGES = sorted(api.PAGES.glob("*.md"))


@pytest.fixture(scope="module")
def shown():
    require("torch")  # its names are public as well
    return Counter(name for page in PAGES for name in api.shown(page.read_text(encoding="utf-8")))


def test_no_public_name_is_missing(shown):
    described = {id(pkgutil.resolve_name(name)) for name in shown}
    missing = [name for name in api.public() if id(pkgutil.resolve_name(name)) not in described]
    assert missing == [], "add them to a page of docs/reference/api"


def test_no_name_stands_twice_and_all_have_a_docstring(shown):
    assert [name for name, count in shown.items() if count > 1] == []
    values = {name: pkgutil.resolve_name(name) for name in shown if not name.startswith("d3gd.state.")}
    assert [name for name, value in values.items() if not (value.__doc__ or "").strip()] == []


def test_on_the_site_docstrings_take_the_place_of_comments():
    text = api.with_docstrings("before\n\n<!-- api: d3gd.run d3gd.transports.* -->\n\nafter")
    directives = [line for line in text.splitlines() if line.startswith("..")]
    assert directives[0] == ".. autofunction:: d3gd.run"
    assert ".. autoclass:: d3gd.transports.Transport" in directives
    assert text.startswith("before\n")
    assert text.endswith("\nafter")


@pytest.mark.parametrize("path", sorted((ROOT / "src").rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_references_in_docstrings_name_something(path):
    if "torch" in path.parts:
        require("torch")
    for name in re.findall(r":(?:attr|class|data|func|meth|mod):`~?(d3gd[\w.]+)`", path.read_text(encoding="utf-8")):
        assert pkgutil.resolve_name(name) is not None
