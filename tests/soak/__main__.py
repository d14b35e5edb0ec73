"""Run it: ``python -m tests.soak --minutes 10``; as root on Linux, with a network namespace per site."""

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import d3gd
from d3gd.sites.collect import collected
from d3gd.sites.settings import load
from tests.helpers.launching import ROOT
from tests.helpers.ports import ports
from tests.helpers.sites import folders
from tests.soak import namespaces, proxy

NAMES = "abcdefgh"
EDGES = [(NAMES[i], NAMES[(i + hop) % 8]) for i in range(8) for hop in (1, 3)]
HALVES = set("abcd"), set("efgh")
STRAGGLER, BACK = "h", 0.05  # of those who pause in the simulation, the share that returns in an iteration
PATIENCE, RATE = 0.5, 8  # seconds; iterations per second that the run is planned for
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}


class Site:
    def __init__(self, path, network):
        self.path, self.starts, self.process, self.back = path, 0, None, None
        self._network = network

    def start(self):
        words = [sys.executable, "-m", "d3gd", "site", "run", self.path.name, *["--resume"] * (self.starts > 0)]
        words = self._network.command(self.path.parent.name, words)
        with (self.path.parent / "log.txt").open("a") as log:
            own = {**os.environ, **ENVIRONMENT}
            self.process = subprocess.Popen(words, cwd=self.path.parent, env=own, stdout=log, stderr=log)
        self.starts, self.back = self.starts + 1, None

    def iteration(self):
        try:
            return json.loads((self.path.parent / "run/status.json").read_text())["iteration"]
        except (OSError, ValueError):
            return 0


def through_proxy(files):
    """Let every site dial its neighbours through a line of its own; return the lines."""
    real = {name: int(load(path).settings.bind.rsplit(":", 1)[1]) for name, path in files.items()}
    dialled = [(name, contact.name) for name, path in files.items() for contact in load(path).neighbours.contacts()
               if contact.address is not None]  # fmt: skip
    free = [port for port in ports(len(dialled) + len(real)) if port not in real.values()]
    lines = {pair: (port, real[pair[1]]) for pair, port in zip(dialled, free, strict=False)}
    for (dialler, other), (port, _) in lines.items():
        text = files[dialler].read_text()
        pattern = rf'(name = "{other}"\nkey = "[^"]*"\naddress = "tcp://127\.0\.0\.1:)\d+'
        files[dialler].write_text(re.sub(pattern, rf"\g<1>{port}", text))
    return lines


def network(files, seed):
    """The worst network that this machine allows."""
    if not namespaces.possible():
        return proxy.Proxy(through_proxy(files), seed)
    found = namespaces.Namespaces(NAMES, seed)
    plans = {name: load(path) for name, path in files.items()}
    for path in files.values():
        text = path.read_text()
        for name, plan in plans.items():
            port = plan.settings.bind.rsplit(":", 1)[1]
            text = text.replace(f'"tcp://127.0.0.1:{port}"', f'"tcp://{found.address[name]}:{port}"')
        path.write_text(text)
    return found


def soak(minutes, folder, seed):
    total = round(60 * minutes * RATE)
    files = folders(folder, EDGES, iterations=total, more=f"patience = {PATIENCE}\ncheckpoint_every = 20")
    for path in files.values():
        path.write_text(path.read_text().replace("connect = 60.0", "connect = 300.0"))
    bad = network(files, seed)
    print(f"between sites: {bad.kind}", flush=True)
    sites, chance = {name: Site(path, bad) for name, path in files.items()}, random.Random(seed)
    across = [(a, b) for a in NAMES for b in NAMES if (a in HALVES[0]) != (b in HALVES[0])]
    kills, began, next_kill, partition = 0, time.monotonic(), 15.0, None
    for site in sites.values():
        site.start()
    limit = 60 * minutes * 4 + 300
    try:
        while any(site.process.poll() is None or site.back is not None for site in sites.values()):
            now = time.monotonic() - began
            if now > limit:
                raise SystemExit(f"hung: { ({name: site.iteration() for name, site in sites.items()}) } of {total}")
            done = max(site.iteration() for site in sites.values()) / total
            for site in sites.values():
                if site.back is not None and now > site.back:
                    site.start()
            if done == 0:
                next_kill = now + 5  # first let all of them meet
            if now > next_kill and done < 0.7:
                victim = chance.choice([site for site in sites.values() if site.process.poll() is None] or [None])
                if victim is not None:
                    victim.process.kill()
                    victim.process.wait()
                    victim.back, kills = now + chance.uniform(0, 5), kills + 1
                next_kill = now + chance.uniform(3, 8)
            if partition is None and done > 0.4:
                partition = now
                bad.cut(across)
            elif partition is not None and partition > 0 and now > partition + min(30, 12 * minutes):
                partition = -1.0
                bad.cut([])
            slow = sites[STRAGGLER].process
            if slow.poll() is None and done < 0.8:
                slow.send_signal(signal.SIGSTOP)
                time.sleep(0.7)
                slow.send_signal(signal.SIGCONT)
            time.sleep(0.3)
    finally:
        for site in sites.values():
            if site.process.poll() is None:
                site.process.kill()
                site.process.wait()
        bad.close()
    return files, {name: site.process.returncode for name, site in sites.items()}, kills, bad.harm(), total


def rounds(path):
    """The iterations that a site took, over all its starts."""
    newest = max(path.parent.glob("run/checkpoints/*/manifest.json"), key=lambda found: int(found.parent.name))
    return int(json.loads(newest.read_text())["gradients"])


def missed(path):
    """The messages that a site missed, over all its starts: the last line of each says how many."""
    starts = (path.parent / "log.txt").read_text().split(" is one of ")[1:]
    found = [re.findall(r"(\d+) messages missed", text) for text in starts]
    return sum(int(numbers[-1]) for numbers in found if numbers)


def compared(files, total):
    """The stationarity of what sites ended with, against that of a simulation with the same conditions."""
    whole = collected([path.parent / "run" for path in files.values()])
    graph = d3gd.Digraph.from_edges(8, [(NAMES.index(a), NAMES.index(b)) for a, b in EDGES], NAMES)
    problem = d3gd.problems.sigmoid_classification(agents=8, samples=10, features=3, test_samples=10, batch=4)
    # What a site missed in the iterations that it took, and the iterations that it did not take at all.
    taken = {name: rounds(path) for name, path in files.items()}
    loss = sum(missed(path) for path in files.values()) / (2 * sum(taken.values()))
    away = 1 - sum(taken.values()) / (8 * total)
    conditions = d3gd.Conditions(loss=loss, pause=away / (1 - away) * BACK, back=BACK)
    method = load(files["a"]).algorithm()
    control = d3gd.run(method, graph, problem, iterations=total, conditions=conditions, metrics=["stationarity"])
    found = np.mean([np.sum(problem.global_gradients(row[None]) ** 2) for row in whole.x])
    return {
        "loss": loss,
        "share of iterations not taken": away,
        "stationarity": float(found),
        "simulated": float(control.metrics["stationarity"][-1]),
        "at the start": float(control.metrics["stationarity"][0]),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))  # so that no site is left behind
    folder = given.folder or Path(tempfile.mkdtemp(prefix="soak-"))
    folder.mkdir(parents=True, exist_ok=True)
    files, codes, kills, harm, total = soak(given.minutes, folder, given.seed)
    print(f"{total} iterations, {kills} processes killed, {harm}; exit codes {codes}")
    if any(codes.values()):
        raise SystemExit(f"not all sites ended well; see {folder}")
    facts = compared(files, total)
    print(json.dumps(facts, indent=2))
    ratio = facts["stationarity"] / facts["simulated"]
    print(f"stationarity is {ratio:.2f} times that of the simulation with the same conditions; at most 2 is wanted")
    raise SystemExit(0 if ratio <= 2 else 1)


if __name__ == "__main__":
    main()
