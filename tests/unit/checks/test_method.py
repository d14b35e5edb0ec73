"""Methods that are wrong in ways that a run would not show."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

import d3gd
from d3gd.state import PerAgent


@dataclass(frozen=True, kw_only=True)
class Sound(d3gd.Algorithm):
    step_size: float = 0.05
    needs = "undirected links"

    def step(self, net, gradient, s, k):
        return s._replace(x=net.mix(net.a0, net.exchange(x=s.x).x) - self.step_size * gradient())


class InPlace(Sound):
    def step(self, net, gradient, s, k):
        new = super().step(net, gradient, s, k)
        s.x[:] = 0
        return new


class Random(Sound):
    def step(self, net, gradient, s, k):
        new = super().step(net, gradient, s, k)
        return new._replace(x=new.x + np.random.default_rng().normal(size=new.x.shape))


class Remembers(Sound):
    def step(self, net, gradient, s, k):
        new = super().step(net, gradient, s, k)
        seen = self.__dict__.setdefault("seen", [0.0])
        seen[0] += 1
        return new._replace(x=new.x + seen[0])


class Peeks(Sound):
    def step(self, net, gradient, s, k):
        new = super().step(net, gradient, s, k)
        return new._replace(x=new.x - 0.1 * (s.x - s.x.mean(axis=0)))  # the mean of the whole block


class ClaimsExact(Sound):
    exact = True


class Undeclared(Sound):
    class State(NamedTuple):
        x: PerAgent
        extra: np.ndarray

    def init(self, net, x0):
        return self.State(x0, np.zeros(len(x0)))


class Negative(Sound):
    def weights(self, net, s):
        return net.a0 - 0.3


CAUGHT = {
    InPlace: {"step is pure"},
    Random: {"step is pure", "resumed as if never stopped", "same bits on 2 and 3 ranks"},
    Remembers: {"step is pure"},
    Peeks: {"nothing faster than messages", "same bits on 2 and 3 ranks"},
    ClaimsExact: {"exact, as declared"},
    Undeclared: {"state"},
    Negative: {"weights"},
}


def test_a_sound_method_passes():
    report = d3gd.check_method(Sound(), show=False)
    assert report.passed, report


@pytest.mark.parametrize("method", CAUGHT)
def test_a_wrong_one_is_caught(method):
    report = d3gd.check_method(method(), show=False)
    assert CAUGHT[method] <= {check.name for check in report.failures}, report


def test_a_method_whose_agents_never_exchange_is_told_so():
    class Alone(Sound):
        def step(self, net, gradient, s, k):
            return s._replace(x=s.x - self.step_size * gradient())

    class Seldom(Sound):
        def step(self, net, gradient, s, k):
            return super().step(net, gradient, s, k) if k % 10 == 9 else Alone.step(self, net, gradient, s, k)

    alone, seldom = (
        next(check for check in d3gd.check_method(method, show=False).checks if "messages" in check.name)
        for method in (Alone(), Seldom())
    )
    assert (alone.verdict, seldom.verdict) == ("skipped", "passed")
    assert "never exchanges" in alone.detail


def test_the_table_says_what_failed(capsys):
    d3gd.check_method(ClaimsExact())
    table = capsys.readouterr().out
    assert "1 of 9 checks failed" in table
    assert "exact, as declared            failed" in table


def test_after_a_first_step_that_fails_nothing_else_is_tried():
    class Nothing(Sound):
        def step(self, net, gradient, s, k):
            return None

    report = d3gd.check_method(Nothing(), show=False)
    assert [check.verdict for check in report.checks] == ["failed"] + ["skipped"] * 8


def test_a_class_is_not_a_method():
    with pytest.raises(d3gd.D3GDError, match="is a class"):
        d3gd.check_method(Sound)
