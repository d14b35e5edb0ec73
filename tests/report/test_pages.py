"""What all pages promise: hostile text runs nothing, phones, dark screens and paper."""

import pytest

import d3gd
from d3gd.report import write_report

pytestmark = pytest.mark.xdist_group("browser")
HOSTILE = [
    "</script><script>window.ran = 1</script>",
    "<img src=x onerror='window.ran = 2'>",
    '"><svg onload="window.ran = 3">',
    "'; window.ran = 4; //",
    "\u2028window.ran = 5\u2029",
    "{{script}}${window.ran = 6}`<!--",
]


def unharmed(page):
    assert page.js("typeof window.ran") == "undefined"
    assert page.all("img, iframe, object, [onerror], [onload]") == []
    assert len(page.all("script")) == 2
    assert page.complaints() == []


def test_names_with_markup_are_shown_and_run_nothing(opened, tmp_path):
    agents = len(HOSTILE)
    graph = d3gd.Digraph.from_edges(agents, d3gd.graphs.ring(agents).edges, labels=HOSTILE)
    problem = d3gd.problems.quadratic(agents=agents, dim=2)
    metrics = {name.replace("[", "(").replace("\u2028", "").replace("\u2029", ""): lambda s: 1.0 for name in HOSTILE}
    options = {"record_weights": True, "metrics": metrics, "notes": {HOSTILE[0]: HOSTILE[1]}}
    result = d3gd.run(d3gd.D3GD(step_size=0.1), graph, problem, iterations=4, **options)
    write_report(dict.fromkeys(HOSTILE[:3], result), tmp_path / "hostile.html")
    page = opened(tmp_path / "hostile.html")
    headings = page.js("[...document.querySelectorAll('h2')].map(each => each.textContent)")
    assert headings == [*HOSTILE[:3], *metrics]
    names = page.js("[...document.querySelectorAll('.run:first-child .node title')].map(each => each.textContent)")
    assert names == HOSTILE
    settings = page.js("document.getElementById('settings').textContent")
    assert HOSTILE[0] in settings
    assert HOSTILE[1] in settings
    unharmed(page)


def test_a_script_that_slipped_in_would_not_run(opened, written, tmp_path):
    """The page allows its own script only, by its digest."""
    spoiled = written.read_text("utf-8").replace("</main>", "</main><script>window.ran = 1</script>")
    (tmp_path / "spoiled.html").write_text(spoiled, "utf-8")
    page = opened(tmp_path / "spoiled.html")
    assert page.js("typeof window.ran") == "undefined"
    assert len(page.all(".link")) > 0  # while the page's own did
    assert [entry for entry in page.complaints() if "Content Security Policy" in entry["message"]]


def test_a_phone_needs_no_scrolling_sideways(opened, written, emulated):
    emulated("setDeviceMetricsOverride", width=360, height=740, deviceScaleFactor=2, mobile=True)
    page = opened(written)
    assert page.js("document.documentElement.scrollWidth") <= 360
    widths = page.js("[...document.querySelectorAll('.run svg')].map(each => each.getBoundingClientRect().width)")
    assert min(widths) > 250
    buttons = page.js("[...document.querySelectorAll('.bar button')].map(each => each.getBoundingClientRect().height)")
    assert min(buttons) >= 32  # a finger's width


def test_long_names_of_agents_fit_a_phone_too(opened, emulated, tmp_path):
    names = ["a" * 80, "b c " * 20, "c"]
    graph = d3gd.Digraph.from_edges(3, d3gd.graphs.ring(3).edges, labels=names)
    problem = d3gd.problems.quadratic(agents=3, dim=2)
    result = d3gd.run(d3gd.D3GD(step_size=0.1), graph, problem, iterations=4, record_weights=True)
    write_report({"x" * 80: result}, tmp_path / "long.html")
    emulated("setDeviceMetricsOverride", width=360, height=740, deviceScaleFactor=2, mobile=True)
    page = opened(tmp_path / "long.html")
    assert page.js("document.documentElement.scrollWidth") <= 360


def luminance(colour):
    parts = [int(part) / 255 for part in colour.split("(")[1].strip(")").split(",")[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_legible_on_light_and_dark_screens(opened, written, emulated, scheme):
    emulated("setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    page = opened(written)
    back = luminance(page.js("getComputedStyle(document.querySelector('.card')).backgroundColor"))
    assert (back > 0.5) == (scheme == "light")
    for selector in (".quiet", "h1", ".values span", ".bar output"):
        front = luminance(page.js("getComputedStyle(document.querySelector(arguments[0])).color", selector))
        contrast = (max(front, back) + 0.05) / (min(front, back) + 0.05)
        assert contrast >= 4.5, selector  # WCAG 2, level AA


def test_paper_gets_the_network_and_no_buttons(opened, written, emulated):
    page = opened(written)
    emulated("setEmulatedMedia", media="print")
    assert not any(each.is_displayed() for each in page.all("button, select, input"))
    assert all(svg.is_displayed() for svg in page.all(".view svg"))


def test_paper_begins_with_the_networks_side_by_side(opened, written, emulated):
    """Also with an agent's tables below, which are longer than a page."""
    emulated("setDeviceMetricsOverride", width=718, height=1047, deviceScaleFactor=1, mobile=False)  # A4, in pixels
    emulated("setEmulatedMedia", media="print")
    page = opened(written)
    page.js("choose(4, true)")
    boxes = page.js("[...document.querySelectorAll('.view svg')].map(svg => svg.getBoundingClientRect().toJSON())")
    assert max(box["bottom"] for box in boxes) < 1047
    assert boxes[0]["right"] <= boxes[1]["left"]
    assert boxes[1]["right"] <= 718
    assert page.js("document.documentElement.scrollWidth") <= 718
    assert page.js("getComputedStyle(document.querySelector('.run')).breakInside") == "auto"


def test_an_agent_fits_a_phone(opened, written, emulated):
    emulated("setDeviceMetricsOverride", width=360, height=740, deviceScaleFactor=2, mobile=True)
    page = opened(written)
    page.js("choose(4, true)")
    assert page.js("document.documentElement.scrollWidth") <= 360
    assert page.js("document.querySelector('.bar').getBoundingClientRect().height") <= 110  # it stays while one scrolls
