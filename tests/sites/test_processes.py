"""Real processes on this machine."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np
import pytest

import d3gd
from d3gd.result import Result
from d3gd.sites.settings import load
from tests.helpers.launching import ROOT
from tests.helpers.sites import SIX, folders

pytestmark = pytest.mark.xdist_group("launches")
WAIT = 120
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}


class Site:
    """A process of one site."""

    def __init__(self, path):
        self.path, self.lines = path, (path.parent / "log.txt").open("a+")
        self.process = None

    def start(self, *words):
        command = [sys.executable, "-m", "d3gd", "site", "run", self.path.name, *words]
        own = {**os.environ, **ENVIRONMENT}
        self.process = subprocess.Popen(
            command, cwd=self.path.parent, env=own, stdout=self.lines, stderr=subprocess.STDOUT
        )
        return self

    def iteration(self):
        try:
            return json.loads((self.path.parent / "run/status.json").read_text())["iteration"]
        except (OSError, ValueError):
            return -1

    def log(self):
        return (self.path.parent / "log.txt").read_text()

    def checkpoint(self):
        return max(
            (int(path.parent.name) for path in self.path.parent.glob("run/checkpoints/*/manifest.json")), default=0
        )

    def stop(self, number):
        self.process.send_signal(number)
        return self.process.wait(WAIT)


@contextmanager
def started(files):
    sites = {name: Site(path).start() for name, path in files.items()}
    try:
        yield sites
    finally:
        for site in sites.values():
            if site.process.poll() is None:
                site.process.kill()
                site.process.wait()
            site.lines.close()


def until(true, what):
    deadline = time.monotonic() + WAIT
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def simulated(files, edges):
    """The models of the same training in one process."""
    plans = {name: load(path) for name, path in files.items()}
    names = sorted(plans)
    index = {name: place for place, name in enumerate(names)}
    graph = d3gd.Digraph.from_edges(len(names), [(index[a], index[b]) for a, b in edges], names)
    any_plan = plans[names[0]]
    problem = d3gd.problems.sigmoid_classification(agents=len(names), samples=10, features=3, test_samples=10, batch=4)
    return d3gd.run(any_plan.algorithm(), graph, problem, iterations=any_plan.settings.iterations, every=20)


def test_six_sites_compute_what_one_process_does_to_the_bit_though_one_is_killed(tmp_path):
    method = 'kind = "PerronD3GD"\nstep_size = 0.1'
    files = folders(tmp_path, SIX, iterations=200, algorithm=method, more="patience = inf")
    with started(files) as sites:
        c = sites["c"]
        until(lambda: c.checkpoint() >= 20, "no checkpoint")
        assert c.stop(signal.SIGKILL) == -signal.SIGKILL
        c.start("--resume")
        codes = {name: site.process.wait(WAIT) for name, site in sites.items()}
        assert codes == dict.fromkeys(files, 0), c.log()
    expected = simulated(files, SIX)
    for agent, path in enumerate(files.values()):
        found = Result.load(path.parent / "run")
        assert found.status == "completed"
        assert np.array_equal(found.x[0], expected.x[agent])
        assert np.array_equal(found.weights.toarray()[0], expected.weights.toarray()[agent])
        assert set(found.metrics) >= {"loss", "accuracy", "distance", "bytes", "waited", "missed"}


def test_a_stopped_site_leaves_a_checkpoint_and_rejoins_the_others_at_their_iteration(tmp_path):
    files = folders(tmp_path, [*zip("abc", "bca", strict=True), ("b", "a")], iterations=6000, more="patience = 0.5")
    with started(files) as sites:
        c = sites["c"]
        until(lambda: c.iteration() > 0, "no iteration")
        assert c.stop(signal.SIGTERM) == 143
        assert "interrupted; continue with: d3gd site run site.toml --resume" in c.log()
        there = c.checkpoint()
        assert there > 0
        alone = sites["a"].iteration()
        until(lambda: sites["a"].iteration() > alone + 20, "the others did not go on")
        c.start("--resume")
        until(lambda: "going on there" in c.log(), c.log())
        line = next(line for line in c.log().splitlines() if "going on there" in line)
        assert int(line.split("others are at ")[1].split(";")[0]) > alone
        for name in "abc":
            assert sites[name].stop(signal.SIGINT) == 130
        assert c.checkpoint() > alone
