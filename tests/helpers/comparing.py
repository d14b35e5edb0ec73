"""Helpers for tests of comparisons: a problem and a method with known results, and curves."""

from dataclasses import dataclass

import numpy as np

import d3gd
from d3gd.comparison.runs import Run
from d3gd.comparison.scenario import Budget
from d3gd.comparison.summary import row_of
from d3gd.problems import Problem

RING = d3gd.graphs.ring(4)
BUDGET = Budget(100)


class Distance(Problem):
    """Half the squared distance of each agent's model from its own point: gradient descent shrinks by 1 - gamma."""

    def __init__(self, agents=4, seed=0):
        self.targets = np.random.default_rng(seed).standard_normal((agents, 3))
        self.agents, self.dim = self.targets.shape

    def gradients(self, x, k=None):
        return x - self.targets


@dataclass(frozen=True, kw_only=True)
class Idle(d3gd.Algorithm):
    """A method that stands still."""

    step_size: float
    fault: str = ""

    def step(self, net, gradient, s, k):
        if self.fault:
            raise ValueError(self.fault)
        net.exchange(x=s.x)
        return s


@dataclass(frozen=True, kw_only=True)
class Local(Idle):
    """Several steps of gradient descent between two rounds of averaging."""

    steps: int = 2

    def step(self, net, gradient, s, k):
        x = s.x - self.step_size * gradient()
        for _ in range(1, self.steps):
            x = x - self.step_size * gradient(x)
        return s._replace(x=net.mix(net.a0, net.exchange(x=x).x))


class Watch:
    """Which runs of a comparison's folder were made since one last looked."""

    def __init__(self, folder):
        self.folder, self.seen = folder, {}

    def made(self):
        found = {path: path.stat().st_mtime_ns for path in self.folder.rglob("runs/*/*.json")}
        new = [path for path, when in found.items() if self.seen.get(path) != when]
        self.seen = found
        return len(new)


def compared(**changes):
    options = {"only": ["Centralized", "PerronD3GD"], "iterations": 40, "seeds": 2, "steps": [0.1, 0.5], "jobs": 1}
    options |= changes
    return d3gd.compare(options.pop("graph", RING), options.pop("problem", lambda seed: Distance(seed=seed)), **options)


def run(method="a", step=0.1, seed=0, *, level=1.0, status="completed", budget=BUDGET, sent=10.0, gradients=1.0):
    """A curve that falls exponentially from 1 to a level within a hundred iterations."""
    k = np.arange(0.0, 101.0, 10.0)
    curve = level ** (k / 100)
    curves = {"iterations": k, "gradients": k * gradients, "bytes": k * sent, "seconds": k * 0.001}
    curves |= {"stationarity": curve, "disagreement": curve}
    return Run(method, step, seed, status, "", 4, 8, curves, budget)


def row(method, values):
    return row_of(method, "in-neighbours", [run(method, seed=i, level=v) for i, v in enumerate(values)], "stationarity")
