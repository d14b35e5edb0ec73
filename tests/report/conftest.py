"""A browser, and pages in it."""

import numpy as np
import pytest
from selenium.webdriver.common.by import By

import d3gd
from d3gd.report import write_report
from tests.helpers.browsing import browser


class Page:
    """A page in the browser, with what tests ask of it."""

    def __init__(self, driver, path):
        self.driver = driver
        driver.get_log("browser")  # of the page before
        driver.get(path.resolve().as_uri())

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        (found,) = self.all(selector)
        return found

    def js(self, code, *arguments):
        return self.driver.execute_script(f"return {code}", *arguments)

    def go(self, position):
        """Scrub to a position of the slider, as an input would."""
        code = "(e => {e.value = arguments[0]; e.dispatchEvent(new Event('input', {bubbles: true}))})"
        self.js(f"{code}(document.getElementById('time'))", position)

    @property
    def iteration(self):
        return int(self.one("#reading").text.removeprefix("iteration "))

    def complaints(self):
        return self.driver.get_log("browser")


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture(scope="session")
def opened(driver):
    return lambda path: Page(driver, path)


@pytest.fixture(scope="session")
def results():
    graph = d3gd.graphs.erdos_renyi(6, 0.5, seed=2)
    problem = d3gd.problems.sigmoid_classification(agents=6, samples=20, features=5, test_samples=50)
    methods = {"first": d3gd.D3GD(step_size=0.1), "second": d3gd.DiDGD(step_size=0.1)}
    return {
        name: d3gd.run(method, graph, problem, iterations=60, every=3, record_weights=True)
        for name, method in methods.items()
    }


@pytest.fixture(scope="session")
def written(results, tmp_path_factory):
    path = tmp_path_factory.mktemp("pages") / "runs.html"
    write_report(results, path)
    return path


@pytest.fixture(scope="session")
def shown():
    """The number that a page shows for a number: its first four digits."""
    return lambda value: float(f"{np.float64(value):.4g}")


@pytest.fixture
def emulated(driver):
    yield lambda command, **arguments: driver.execute_cdp_cmd(f"Emulation.{command}", arguments)
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
