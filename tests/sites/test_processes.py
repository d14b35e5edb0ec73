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
from tests.helpers.sites import SIX, folders, without

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


SCRIPT = """
import signal, sys
import numpy as np
import d3gd

signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(9))
with d3gd.sites.connect() as network:
    own = np.full((1, 2), float(network.agents[0]))
    network.begin(0)
    print("mixed", network.mix(network.a0, network.exchange(x=own).x).tolist(), sys.argv[1:], flush=True)
if network.agents[0]:
    signal.pause()
sys.exit(7)
"""


def test_a_file_that_names_a_script_starts_it_with_its_signals_and_its_exit_code(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    files = folders(tmp_path, [("a", "b"), ("b", "a")], more='patience = inf\nscript = "train.py"')
    with started({}) as sites:
        sites |= {name: Site(path).start("--resume") for name, path in files.items()}
        assert sites["a"].process.wait(WAIT) == 7, sites["a"].log()
        assert "mixed [[0.5, 0.5]] ['--resume']" in sites["a"].log()
        until(lambda: "mixed" in sites["b"].log(), "b has not trained")
        assert sites["b"].stop(signal.SIGTERM) == 9
    (files["a"].parent / "train.py").unlink()
    with started({"a": files["a"]}) as sites:
        assert sites["a"].process.wait(WAIT) == 2
        assert "which site.toml names as its script; put it there" in sites["a"].log()


def test_a_site_joins_and_another_leaves_for_good_and_comes_back(tmp_path):
    ways = [("a", "b"), ("b", "c"), ("a", "c"), ("c", "d"), ("a", "d")]
    files = folders(tmp_path, [*ways, *[way[::-1] for way in ways]], iterations=100_000, more="patience = 0.5")
    for path in files.values():
        path.write_text(path.read_text().replace("forget = 60.0", "forget = 4.0"))
    whole = {name: files[name].read_text() for name in "ac"}
    for name in "ac":
        files[name].write_text(without(whole[name], "d"))
    with started({name: files[name] for name in "abc"}) as sites:
        until(lambda: all(site.iteration() > 0 for site in sites.values()), "they did not begin")
        for name in "ac":
            files[name].write_text(whole[name])
            sites[name].process.send_signal(signal.SIGHUP)
        sites["d"] = Site(files["d"]).start()
        for name in "abc":
            until(lambda name=name: "d joined; now 4 sites" in sites[name].log(), name)
        until(lambda: "starting from the models of" in sites["d"].log(), sites["d"].log())
        assert sites["b"].stop(signal.SIGKILL) == -signal.SIGKILL
        for name in "ac":
            until(lambda name=name: "b: no sign of life for 4 s: dropped" in sites[name].log(), name)
        until(lambda: "b left" in sites["d"].log(), sites["d"].log())
        sites["b"].start("--resume")
        until(lambda: "b joined; now 4 sites" in sites["d"].log(), sites["d"].log())
        until(lambda: "going on there" in sites["b"].log(), sites["b"].log())
        for site in sites.values():
            assert site.stop(signal.SIGTERM) == 143, site.log()
