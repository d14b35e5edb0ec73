"""The site builds without a warning, holds everything, and needs no network to be read."""

import re
import subprocess
import sys
import zlib
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import pytest

from docs.scripts import api, contents, links

ROOT = Path(__file__).parents[2]


def test_links_that_lead_nowhere_are_found(tmp_path):
    (tmp_path / "a.html").write_text('<a href="b.html#here">x</a> <a href="b.html#there">x</a> <a href="c.html">x</a>')
    (tmp_path / "b.html").write_text('<h1 id="here">B</h1> <img src="lost.png"> <a href="https://example.org/x">x</a>')
    assert links.broken(tmp_path) == ["a.html: b.html#there", "a.html: c.html", "b.html: lost.png"]


def test_the_navigation_is_that_of_the_lists():
    text = "# T\n\n## First\n\n- [A](a/b.md): words, and [another](c.md).\n\nSee [this](d.md).\n"
    assert contents.sections(text) == [("First", [("A", "a/b")])]
    assert contents.with_navigation("docs/other", text) == text
    assert ":caption: First\n\nA <a/b>\n" in contents.with_navigation("docs/index", text)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    if find_spec("sphinx") is None or find_spec("furo") is None or find_spec("torch") is None:
        pytest.skip("the site needs Sphinx: make docs builds it, or pip install 'd3gd[docs,torch]'")
    out = tmp_path_factory.mktemp("site")
    words = ["-q", "-W", "--keep-going", "-E", "-D", "nb_execution_mode=off", "-c", "docs", "."]
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", *words, out],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return out


def test_every_link_of_the_site_leads_somewhere(site):
    assert links.broken(site) == []
    assert len(list(site.rglob("*.html"))) > 50


def test_every_public_name_is_in_its_index(site):
    inventory = zlib.decompress((site / "objects.inv").read_bytes().split(b"\n", 4)[4]).decode()
    indexed = set(re.findall(r"^(\S+) py:", inventory, re.MULTILINE))
    assert {name for page in api.PAGES.glob("*.md") for name in api.shown(page.read_text(encoding="utf-8"))} <= indexed


def test_the_site_loads_nothing_from_elsewhere(site):
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(?:https?:)?//[^"]+"', text) == [], page
    assert "<math" in (site / "docs/methods/PerronD3GD.html").read_text(encoding="utf-8")


def test_search_works_from_disk(site, tmp_path):
    if not (find_spec("selenium") and which("chromium") and which("chromedriver")):
        pytest.skip("it needs a browser: apt-get install chromium chromium-driver")
    from selenium.webdriver.support.ui import WebDriverWait

    from tests.helpers.browsing import browser

    with browser(tmp_path) as driver:
        driver.get((site / "search.html").as_uri() + "?q=starved")
        WebDriverWait(driver, 60).until(lambda page: page.find_elements("css selector", "ul.search a"))
        found = [link.get_attribute("href") for link in driver.find_elements("css selector", "ul.search a")]
        assert any("docs/explanation/perron-vectors.html" in link for link in found)
        assert driver.get_log("browser") == []
