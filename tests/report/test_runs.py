"""The page of runs in a real browser."""

import time
from dataclasses import replace

import numpy as np
import pytest
from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By

import d3gd
from d3gd.report import write_report

pytestmark = pytest.mark.xdist_group("browser")
READ_LINKS = """[...document.querySelectorAll(".run")].map(run => [...run.querySelectorAll(".link")].map(
    link => [link.dataset.link, Number(link.getAttribute("stroke-width")), link.classList[1]]))"""


def until(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def expected(history, record):
    """Width and colour of every link, as the page's legend defines them."""
    links = history.sources != history.targets
    largest = history.weights[:, links].max()
    weights, start = history.weights[record, links], history.weights[0, links]
    names = [f"{j}-{i}" for j, i in zip(history.sources[links], history.targets[links], strict=True)]
    moved = np.abs(weights - start) > 1e-3 * largest
    kinds = np.where(moved, np.where(weights > start, "rose", "fell"), "same")
    return names, np.maximum(0.3, 14 * weights / largest), kinds.tolist()


def test_scrubbing_draws_the_weights_of_that_iteration(opened, written, results):
    page = opened(written)
    kinds = set()
    for position in (0, 3, 20):
        page.go(position)
        assert page.iteration == 3 * position
        for drawn, result in zip(page.js(READ_LINKS), results.values(), strict=True):
            names, widths, colours = expected(result.history, position)
            assert [name for name, _, _ in drawn] == names
            np.testing.assert_allclose([width for _, width, _ in drawn], widths, atol=2e-3)
            assert [colour for _, _, colour in drawn] == colours
            kinds |= set(colours)
    assert kinds == {"rose", "fell", "same"}
    assert page.complaints() == []


def test_play_pause_and_step(opened, written):
    page = opened(written)
    page.go(0)
    before = page.js(READ_LINKS)
    page.one("#play").click()
    until(lambda: page.iteration > 3)
    page.one("#play").click()
    stopped = page.iteration
    assert page.js(READ_LINKS) != before
    time.sleep(0.7)  # longer than any step of the play
    assert page.iteration == stopped < 60
    page.one("#forward").click()
    assert page.iteration == stopped + 3
    page.one("#back").click()
    page.one("#back").click()
    assert page.iteration == stopped - 3
    page.go(19)
    page.one("#play").click()
    until(lambda: page.one("#play").get_attribute("aria-label") == "play")  # it ends at the end
    assert page.iteration == 60
    assert page.complaints() == []


def test_metrics_shown_are_those_of_the_run_at_the_cursor(opened, written, results, shown):
    page = opened(written)
    names = [element.text for element in page.all(".charts h2")]
    assert names == [name for name, values in results["first"].metrics.items() if values.ndim == 1]
    for position in (2, 20):
        page.go(position)
        for name, chart in zip(names, page.all(".charts .chart"), strict=True):
            texts = [span.text for span in chart.find_elements(By.CSS_SELECTOR, ".values span")]
            found = [float(text.split()[-1]) for text in texts]
            assert found == [shown(result.metrics[name][position]) for result in results.values()], name


def test_a_click_on_a_curve_moves_the_time_of_everything(opened, written):
    page = opened(written)
    chart = page.all(".charts svg")[0]
    page.js("arguments[0].scrollIntoView({block: 'center'})", chart)
    ActionChains(page.driver).move_to_element(chart).click().perform()
    assert 24 <= page.iteration <= 36  # the middle
    at_curve = page.js(READ_LINKS)
    page.go(page.iteration // 3)
    assert page.js(READ_LINKS) == at_curve


def test_an_agent_shows_its_weights_and_data_and_stays_when_clicked(opened, written, results, shown):
    page = opened(written)
    page.go(10)
    history, agent = results["first"].history, 4
    node = page.all(f".run:first-child .node[data-agent='{agent}']")[0]
    page.js("arguments[0].scrollIntoView({block: 'center'})", node)
    assert page.all("[data-shown]") == []
    ActionChains(page.driver).move_to_element(node).perform()
    weights = history.matrix(10).toarray()[agent]
    panel = page.all(".run:first-child .agent")[0]
    rows = panel.find_elements(By.CSS_SELECTOR, ".hears tbody tr")
    found = {
        int(row.get_attribute("data-other")): float(row.find_element(By.CSS_SELECTOR, ".weight").text) for row in rows
    }
    heard = [j for j in np.flatnonzero(history.matrix(10).toarray()[agent]) if j != agent]
    assert found == {j: pytest.approx(weights[j], rel=1e-3) for j in heard}
    pi = d3gd.weights.perron(history.matrix(10))[agent]
    assert float(panel.text.split("Perron weight \N{MULTIPLICATION SIGN} n ")[1].split(";")[0]) == pytest.approx(
        6 * pi, rel=1e-3
    )
    shares = history.class_proportions[agent]
    assert f"class {shares.argmax()} {shown(100 * shares.max()):g} %" in panel.text
    loss = panel.find_element(By.CSS_SELECTOR, ".values").text
    assert float(loss) == pytest.approx(history.losses[10, agent], rel=1e-3)

    node.click()
    other = page.all(".run:first-child .node[data-agent='1']")[0]
    ActionChains(page.driver).move_to_element(other).perform()
    assert [element.get_attribute("data-shown") for element in page.all("[data-shown]")] == ["4", "4"]  # both runs
    node.click()
    ActionChains(page.driver).move_to_element(other).perform()
    assert page.all("[data-shown]")[0].get_attribute("data-shown") == "1"
    assert page.complaints() == []


def test_nodes_are_sized_by_perron_weight_and_painted_by_choice(opened, written, results):
    page = opened(written)
    page.go(20)
    rings = "[...document.querySelectorAll('.run:first-child .ring')]"
    radii = page.js(f"{rings}.map(ring => Number(ring.getAttribute('r')))")
    pi = d3gd.weights.perron(results["first"].history.matrix(20))
    sizes = np.clip(np.sqrt(6 * pi), 0.4, 2)
    np.testing.assert_allclose(np.array(radii) / radii[0], sizes / sizes[0], rtol=1e-3)
    paints = [option.text for option in page.all("#paint option")]
    assert paints == ["loss on its own data", "label mix", "accuracy_per_agent", "Perron weight"]
    looks = []
    choose = "(e => {e.value = arguments[0]; e.dispatchEvent(new Event('change'))})"
    for paint in paints:
        page.js(f"{choose}(document.getElementById('paint'))", paint)
        looks.append(page.js("[...document.querySelectorAll('.node')].map(node => node.innerHTML).join()"))
    assert len(set(looks)) == len(paints)
    assert page.complaints() == []


def test_settings_of_both_runs_stand_side_by_side_and_differences_are_marked(opened, written):
    page = opened(written)
    page.one("summary").click()
    rows = {row.find_element(By.TAG_NAME, "th").text: row for row in page.all("#settings tbody tr")}
    assert [cell.text for cell in rows["algorithm.kind"].find_elements(By.TAG_NAME, "td")] == ["D3GD", "DiDGD"]
    assert "differs" in rows["algorithm.kind"].get_attribute("class")
    assert not rows["graph.links"].get_attribute("class")
    assert rows["versions.numpy"].text.endswith(np.__version__)


def test_nothing_is_loaded_from_anywhere(opened, written):
    page = opened(written)
    assert page.js("performance.getEntriesByType('resource').map(entry => entry.name)") == []


def test_bytes_per_link_are_those_that_it_carried(opened, written, results, shown, tmp_path):
    result = results["second"]
    each = result.traffic.data.max()
    assert each * result.settings["graph"]["links"] == result.metrics["bytes"][-1]
    assert f"{shown(each / 1e3):g} kB along each link" in opened(written).all(".run")[1].text

    graph = d3gd.graphs.grid(2, 3)
    options = {"iterations": 30, "every": 3, "record_weights": True}
    pruned = d3gd.run(d3gd.ACGT(step_size=0.1), graph, d3gd.problems.quadratic(agents=6, dim=9), **options)
    mean = replace(pruned, traffic=None, history=replace(pruned.history, bytes=None))
    write_report({"pruned": pruned, "of an older version": mean}, tmp_path / "pruned.html")
    page = opened(tmp_path / "pruned.html")
    sent, links = pruned.history.bytes, graph.sources != graph.targets
    least, most = (f"{shown(value / 1e3):g} kB" for value in (sent[-1, links].min(), sent[-1, links].max()))
    assert f"{least} to {most} along a link" in page.all(".run")[0].text
    assert "per link (mean)" in page.all(".run")[1].text
    page.go(4)
    page.js("(e => {e.value = 'bytes'; e.dispatchEvent(new Event('change'))})(document.getElementById('width'))")
    widths = [width for _, width, _ in page.js(READ_LINKS)[0]]
    np.testing.assert_allclose(widths, 14 * sent[4, links] / sent[-1].max(), atol=2e-3)
    page.js("choose(1, true)")
    rows = page.all(".run:first-child .hears tbody tr")
    found = {int(row.get_attribute("data-other")): row.find_element(By.CSS_SELECTOR, ".sent").text for row in rows}
    carried = {j: b for j, i, b in zip(graph.sources, graph.targets, sent[4], strict=True) if i == 1 != j}
    kilobytes = {j: f"{shown(b / 1e3):g} kB" if b >= 1e3 else f"{b} bytes" for j, b in carried.items()}
    assert found == kilobytes
    assert page.all(".run")[1].find_elements(By.CSS_SELECTOR, ".sent") == []
    assert page.complaints() == []


def test_a_large_network_is_a_matrix_that_moves(opened, tmp_path):
    graph, problem = d3gd.graphs.exponential(301), d3gd.problems.quadratic(agents=301, dim=2)
    method = d3gd.D3GD(step_size=0.1, perron="known")
    result = d3gd.run(method, graph, problem, iterations=20, record_weights=True, metrics=["disagreement"])
    result.report(tmp_path / "large.html")
    page = opened(tmp_path / "large.html")
    assert len(page.all("canvas")) == 1
    assert page.all(".node") == []
    page.go(0)
    before = page.js("document.querySelector('canvas').toDataURL()")
    page.go(2)
    assert page.js("document.querySelector('canvas').toDataURL()") != before
    ActionChains(page.driver).move_to_element(page.one("canvas")).click().perform()
    agent = int(page.one("[data-shown]").get_attribute("data-shown"))
    heard = {int(row.get_attribute("data-other")) for row in page.all(".hears tbody tr")}
    assert heard == set(graph.sources[graph.indptr[agent] : graph.indptr[agent + 1]]) - {agent}
    assert page.complaints() == []


def test_a_run_without_a_history_shows_its_final_weights(opened, results, tmp_path):
    result = replace(results["first"], history=None)
    result.report(tmp_path / "final.html")
    page = opened(tmp_path / "final.html")
    assert "record_weights=True keeps them" in page.one(".run").text
    widths = [width for _, width, _ in page.js(READ_LINKS)[0]]
    np.testing.assert_allclose(widths, np.maximum(0.3, np.array(widths)))
    final = result.weights.toarray()
    np.fill_diagonal(final, 0)
    ordered = final[final > 0]
    np.testing.assert_allclose(widths, np.maximum(0.3, 14 * ordered / ordered.max()), atol=2e-3)
    assert page.complaints() == []


def test_what_diverged_leaves_gaps_and_no_complaint(opened, results, tmp_path):
    """Weights and metrics that are not finite, metrics that are never positive, and names of JavaScript's own."""
    lost = results["first"].history
    broken = np.array(lost.weights)
    broken[-1, 1:4] = np.nan
    odd = {"nan": np.full(21, np.nan), "zero": np.zeros(21), "wild": np.where(np.arange(21) % 2, np.inf, -1.0)}
    odd |= {"__proto__": np.arange(21.0), "constructor": np.arange(21.0)}
    write_report(
        {"a": replace(results["first"], metrics=odd, history=replace(lost, weights=broken)), "b": results["second"]},
        tmp_path / "odd.html",
    )
    page = opened(tmp_path / "odd.html")
    page.all(".run select")[0].send_keys("2")
    page.all(".run button")[1].click()
    assert len(page.all("canvas")) == 1
    assert {"nan", "zero", "wild", "__proto__", "constructor"} <= {element.text for element in page.all(".charts h2")}
    assert page.complaints() == []
