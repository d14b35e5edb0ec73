"""Problems that are wrong in ways that a run would not show."""

import numpy as np
import pytest

import d3gd
from d3gd.problems import Problem
from tests.helpers.problems import ALL, MAKERS


class Sound(Problem):
    def __init__(self, targets=None):
        self.targets = np.arange(12.0).reshape(4, 3) if targets is None else targets
        self.agents, self.dim = self.targets.shape

    def gradients(self, x, k=None):
        return x - self.targets

    def losses(self, x):
        return 0.5 * ((x - self.targets) ** 2).sum(axis=1)

    def restrict(self, agents):
        return type(self)(self.targets[agents])


class WrongShape(Sound):
    def gradients(self, x, k=None):
        return (x - self.targets)[:1]


class WrongSign(Sound):
    def gradients(self, x, k=None):
        return self.targets - x


class Unkeyed(Sound):
    def gradients(self, x, k=None):
        return x - self.targets + np.random.default_rng().normal(size=x.shape)


class InPlace(Sound):
    def gradients(self, x, k=None):
        x -= self.targets
        return x


class Reuses(Sound):
    memory = np.zeros((4, 3))

    def gradients(self, x, k=None):
        np.subtract(x, self.targets, out=self.memory[: len(x)])
        return self.memory[: len(x)]


class OneBatch(Sound):
    def gradients(self, x, k=None):
        return x - self.targets + (0 if k is None else 1)


class Blended(Sound):
    def gradients(self, x, k=None):
        return x - self.targets + self.targets.mean()


class WrongSum(Sound):
    def sum_gradients(self, x):
        return x


CAUGHT = {
    WrongShape: "shapes",
    WrongSign: "gradient of the loss",
    Unkeyed: "same call, same bits",
    InPlace: "arguments untouched",
    Reuses: "arguments untouched",
    OneBatch: "mini-batches",
    Blended: "blocks of agents",
    WrongSum: "sums over agents",
}


def test_a_sound_problem_passes():
    report = d3gd.check_problem(Sound(), show=False)
    assert report.passed, report


@pytest.mark.parametrize("problem", CAUGHT)
def test_a_wrong_one_is_caught(problem):
    report = d3gd.check_problem(problem(), show=False)
    assert CAUGHT[problem] in {check.name for check in report.failures}, report


@ALL
def test_every_kind_of_problem_passes(name):
    report = d3gd.check_problem(MAKERS[name](), show=False)
    assert report.passed, report
