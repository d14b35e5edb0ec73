"""Results of a method or a problem are checked at the first step, with errors that name them."""

from typing import NamedTuple

import numpy as np
import pytest
from scipy import sparse

import d3gd
from d3gd.algorithms.base import Models
from d3gd.problems import Problem
from d3gd.state import PerAgent, PerEdge, Scalar

GRAPH = d3gd.graphs.ring(4)
QUADRATIC = d3gd.problems.quadratic(agents=4, dim=3)


class Plain(d3gd.Algorithm):
    step_size = 0.1

    def step(self, net, gradient, s, k):
        return s._replace(x=net.mix(net.a0, net.exchange(x=s.x).x) - self.step_size * gradient())


class Full(NamedTuple):
    x: PerAgent
    a: PerEdge
    t: Scalar


def method(**changes):
    """A sound method but for what is changed."""
    return type("Mine", (Plain,), changes)()


def full(**changes):
    def init(self, net, x0):
        return Full(**{"x": x0, "a": net.a0, "t": 0.0} | {name: make(net) for name, make in changes.items()})

    return init


def stepped(change):
    def step(self, net, gradient, s, k):
        return change(Plain.step(self, net, gradient, s, k))

    return step


def refused(words, algorithm=None, problem=QUADRATIC, **options):
    with pytest.raises(d3gd.D3GDError, match=words) as caught:
        d3gd.run(algorithm or method(), GRAPH, problem, **{"iterations": 3} | options)
    assert "\n" not in str(caught.value)


def test_a_sound_method_passes():
    assert d3gd.run(method(init=full()), GRAPH, QUADRATIC, iterations=3).status == "completed"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"needs": "directed"}, "Mine needs 'directed'.*'in-neighbours'"),
        ({"survives": frozenset({"losses"})}, "Mine survives 'losses'.*'loss'"),
        ({"survives": "loss"}, "Mine survives 'loss'.*set"),
        ({"point": lambda self, s: s.x[:, 0]}, r"Mine\.point.*shape \(4,\).*\(4, 3\)"),
        ({"point": lambda self, s: s.x.tolist()}, r"Mine\.point.*a list"),
        ({"point": lambda self, s: s.x.astype(np.float32)}, r"Mine\.point.*float32.*float64"),
        ({"weights": lambda self, net, s: net.a0[:, None]}, r"Mine\.weights.*\(8, 1\).*\(8,\)"),
        ({"weights": lambda self, net, s: sparse.csr_array(net.a0[None])}, r"Mine\.weights.*csr_array"),
        ({"scale": lambda self, net, s: np.ones((4, 1))}, r"Mine\.scale.*\(4, 1\).*\(4,\)"),
        ({"scale": lambda self, net, s: np.ones(4, dtype=int)}, r"Mine\.scale.*int64"),
        ({"init": lambda self, net, x0: x0}, r"Mine\.init returned a ndarray.*NamedTuple"),
        ({"init": full(a=lambda net: net.a0[1:])}, r"Mine\.init.*'a', per edge.*\(7,\).*8 edges"),
        ({"init": full(x=lambda net: np.zeros((1, 3)))}, r"Mine\.init.*'x', per agent.*\(1, 3\).*4 agents"),
        ({"init": full(t=lambda net: np.zeros(2))}, r"Mine\.init.*'t', one number"),
        ({"step": stepped(lambda s: s.x)}, r"Mine\.step returned a ndarray"),
        ({"step": stepped(lambda s: None)}, r"Mine\.step returned a NoneType"),
        ({"step": stepped(lambda s: Models(s.x.mean(axis=0)))}, r"Mine\.step.*'x', per agent.*\(3,\)"),
        ({"step": stepped(lambda s: Models(s.x.astype(np.float32)))}, r"Mine\.point after step.*float32"),
    ],
)
def test_a_method_that_returns_what_does_not_fit_is_told_what(changes, words):
    refused(words, method(**changes))


def test_precision_is_that_of_the_run():
    wide = method(step=stepped(lambda s: Models(s.x.astype(np.float64))))
    assert d3gd.run(wide, GRAPH, QUADRATIC, iterations=2).status == "completed"
    refused("float64 in a float32 run", wide, dtype="float32")


class Given(Problem):
    """A problem whose gradients a function changes."""

    agents, dim = 4, 3

    def __init__(self, change):
        self.change = change

    def gradients(self, x, k=None):
        return self.change(x - 1.0, k)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda g, k: g[:1], r"Given\.gradients returned.*shape \(1, 3\).*\(4, 3\)"),
        (lambda g, k: g[:, :1], r"shape \(4, 1\)"),
        (lambda g, k: g[0], r"shape \(3,\)"),
        (lambda g, k: [[1.0], [1.0, 2.0]], "a list"),
        (lambda g, k: g + 0j, "complex128"),
        (lambda g, k: g * np.where(np.arange(4) == 2, np.nan, 1)[:, None], "agent 2 in Given is nan at iteration 0"),
    ],
)
def test_a_problem_whose_gradients_do_not_fit_is_told_what(change, words):
    refused(words, problem=Given(change), metrics={"k": lambda s: s.k})


def test_a_problem_that_changes_the_models_is_told_so_whatever_is_recorded():
    class Changing(Given):
        def gradients(self, x, k=None):
            x -= 1.0
            return x

    refused(r"Changing\.gradients\(x\) changed x", problem=Changing(None), metrics={"k": lambda s: s.k})


def spoiled(g, k):
    """Infinite for one agent at one late iteration."""
    return np.where((np.arange(4) == 1)[:, None], np.inf, g) if k == 37 else g


@pytest.mark.parametrize("algorithm", [d3gd.DiDGD(step_size=0.1), d3gd.D3GD(step_size=0.1)], ids=["DiDGD", "D3GD"])
def test_a_gradient_that_turns_infinite_is_found_where_it_did(algorithm):
    result = d3gd.run(algorithm, GRAPH, Given(spoiled), iterations=200, every=100)
    assert result.status == "diverged"
    assert "agent 1 in Given is inf at iteration 37" in result.message
    assert int(result.metrics["bytes"][-1]) % int(result.iterations[-1]) == 0  # looking for it was not counted


@pytest.mark.parametrize(("step_size", "suggested"), [(20.0, "such as 2"), (lambda k: 20.0, "such as 2")])
def test_divergence_suggests_a_step_size(step_size, suggested):
    result = d3gd.run(d3gd.DiDGD(step_size=step_size), GRAPH, QUADRATIC, iterations=500)
    assert result.status == "diverged"
    assert result.message.endswith(suggested)


@pytest.mark.parametrize("level", [float("nan"), "0.1", None, True])
def test_a_target_must_be_a_number(level):
    refused("target stationarity", target={"stationarity": level})


def test_a_start_beyond_the_precision_is_refused():
    refused(r"x0 holds numbers up to 1e\+150, which float32", x0=np.full(3, 1e150), dtype="float32")


@pytest.mark.parametrize(("dtype", "start"), [("float32", 1e30), ("float64", 1e300)])
def test_infinite_models_are_never_completed(dtype, start):
    result = d3gd.run(d3gd.DiDGD(step_size=1e20), GRAPH, QUADRATIC, iterations=50, x0=np.full(3, start), dtype=dtype)
    assert result.status == "diverged"


@pytest.mark.parametrize(
    ("metrics", "words"),
    [
        ({"iteration": lambda s: 1}, "cannot be named 'iteration'"),
        ({"a[0]": lambda s: 1}, r"cannot be named 'a\[0\]'"),
        ({"models": lambda s: s.x}, r"'models' returned shape \(4, 3\)"),
        ({"none": lambda s: s.x[:0, 0]}, r"'none' returned shape \(0,\)"),
        ({"ragged": lambda s: [[1.0], [1.0, 2.0]]}, "'ragged' returned a list"),
        ({"": lambda s: 1}, "cannot be named ''"),
        ({"a\rb": lambda s: 1}, "cannot be named"),
        ({"name": lambda s: "x"}, "'name' returned a str"),
        ({"nothing": lambda s: None}, "'nothing' returned a NoneType"),
        ({"growing": lambda s: np.ones(s.k + 1)}, r"'growing' returned shape \(3,\) after shape \(1,\)"),
        ({"constant": 3}, "'constant' is a int"),
    ],
)
def test_a_metric_that_fits_in_no_table_is_refused(metrics, words, tmp_path):
    refused(words, metrics=metrics, every=2, out=tmp_path / "run")


@pytest.mark.parametrize("problem", ["quadratic", 3, None])
def test_what_is_no_problem_is_told_what_it_lacks(problem):
    refused("is no problem: it has no 'agents'", problem=problem)
