"""More than one gradient in an iteration: against textbook loops, with which mini-batches, and how they are counted."""

import numpy as np
import pytest

import d3gd
from d3gd.problems import Problem
from d3gd.random import draw_key
from tests.equivalence.own_worker import GRAPH, ITERATIONS, part, problem, runs
from tests.helpers.own_methods import METHODS, Extragradient, LocalSteps

A = d3gd.weights.metropolis(GRAPH).toarray()


def local_steps(f, x, k):
    for j in range(4):
        x = x - 0.05 * f.gradients(x, draw_key(k, j))
    return A @ x


def extragradient(f, x, k):
    return A @ x - 0.1 * f.gradients(x - 0.1 * f.gradients(x, k), k)


class Reduced:
    def __call__(self, f, x, k):
        if k % 5 == 0:
            self.anchor, self.whole = x, f.gradients(x, None)
        return A @ x - 0.1 * (f.gradients(x, k) - f.gradients(self.anchor, k) + self.whole)


TEXTBOOK = {"local steps": local_steps, "extragradient": extragradient, "variance reduced": Reduced()}


@pytest.fixture(scope="module")
def results():
    return dict(runs(None))


@pytest.mark.parametrize("name", METHODS)
def test_own_methods_are_the_textbook_loops(name, results):
    f = problem()
    x = np.zeros((f.agents, f.dim))
    for k in range(ITERATIONS):
        x = TEXTBOOK[name](f, x, k)
    np.testing.assert_allclose(results[name].x, x, rtol=1e-12, atol=1e-13)


def test_every_evaluation_is_counted(results):
    k = results["local steps"].iterations
    assert results["local steps"].metrics["gradients"].tolist() == (4 * k).tolist()
    assert results["extragradient"].metrics["gradients"].tolist() == (2 * k).tolist()
    assert results["variance reduced"].metrics["gradients"].tolist() == (2 * k + -(-k // 5)).tolist()


def test_the_usual_methods_evaluate_once_and_not_while_they_warm_up():
    f = d3gd.problems.quadratic(agents=GRAPH.n, dim=2)
    method = d3gd.DiDGD(step_size=0.05, warmup=3)
    found = d3gd.run(method, GRAPH, f, iterations=10, every=5, metrics=["gradients"]).metrics["gradients"]
    assert found.tolist() == [0, 2, 7]


@pytest.mark.parametrize("name", METHODS)
def test_a_resumed_run_goes_on_counting(name, results, tmp_path):
    options = {"every": 5, "metrics": ["gradients"], "out": tmp_path}
    d3gd.run(METHODS[name], GRAPH, problem(), iterations=13, **options)
    resumed = d3gd.run(METHODS[name], GRAPH, problem(), iterations=ITERATIONS, resume=True, **options)
    assert np.array_equal(resumed.x, results[name].x)
    assert np.array_equal(resumed.metrics["gradients"], results[name].metrics["gradients"])


class Keys(Problem):
    """Notes with which keys it is asked."""

    agents, dim = 3, 2

    def __init__(self):
        self.keys = []

    def gradients(self, x, k=None):
        self.keys.append(k)
        return np.zeros_like(x)

    def fingerprints(self):
        return np.zeros((self.agents, 32), dtype=np.uint8)


class Asking(d3gd.Algorithm):
    """Asks as a function says."""

    def __init__(self, ask):
        self.ask = ask

    def step(self, net, gradient, s, k):
        net.exchange(x=s.x)
        self.ask(gradient, s.x)
        return s


def asked(ask, iterations=1):
    f = Keys()
    d3gd.run(Asking(ask), d3gd.graphs.ring(3), f, iterations=iterations, metrics={"k": lambda s: s.k})
    return f.keys


def test_every_point_has_a_mini_batch_of_its_own_unless_told_otherwise():
    def ask(gradient, x):
        gradient(x + 1)
        gradient()
        gradient(x + 2)
        gradient(x + 3, draw=0)
        gradient(x + 3, draw=2)
        gradient(x, draw=None)

    keys = asked(ask, iterations=2)
    first, second = keys[:6], keys[6:]
    assert first[1] == first[3] == 0
    assert first[2] == first[4]
    assert first[5] is None
    assert len({*first, *second} - {None}) == 6  # three draws in each iteration


def test_draws_of_an_agent_do_not_depend_on_its_block():
    f, x, key = problem(), np.ones((GRAPH.n, problem().dim)), draw_key(7, 3)
    whole = f.gradients(x, key)
    assert not np.array_equal(whole, f.gradients(x, 7))
    assert np.array_equal(part([1, 3]).gradients(x[[1, 3]], key), whole[[1, 3]])


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda gradient, x: (gradient(), gradient()), r"called twice.*gradient\(x\)"),
        (lambda gradient, x: gradient(x[:1]), r"shape \(1, 2\).*one point per agent.*\(3, 2\)"),
        (lambda gradient, x: gradient(x[0]), r"shape \(2,\)"),
        (lambda gradient, x: gradient(x.astype(int)), "int64"),
        (lambda gradient, x: gradient([0.0]), "a list"),
        (lambda gradient, x: gradient(x, draw=-1), "draw = -1"),
        (lambda gradient, x: gradient(x, draw=0.5), "draw = 0.5"),
        (lambda gradient, x: gradient(draw=None), "has no point"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line(ask, words):
    with pytest.raises(d3gd.D3GDError, match=words) as caught:
        asked(ask)
    assert "\n" not in str(caught.value)


def test_a_user_s_loop_of_gradient_calls_is_not_one_large_step():
    class Naive(LocalSteps):
        def step(self, net, gradient, s, k):
            x = s.x
            for _ in range(self.steps):
                x = x - self.step_size * gradient()
            return s._replace(x=net.mix(net.a0, net.exchange(x=x).x))

    with pytest.raises(d3gd.D3GDError, match="called twice"):
        d3gd.run(Naive(0.1, 2), GRAPH, problem(), iterations=1)


def test_extragradient_solves_what_gradients_alone_cannot():
    # The saddle x y: plain steps spiral outwards, extragradient comes to the saddle point.
    f = d3gd.problems.from_functions(agents=3, dim=2, gradient=lambda i, z: np.array([z[1], -z[0]]))
    ends = [
        np.abs(d3gd.run(method, d3gd.graphs.complete(3), f, iterations=300, x0=np.ones(2)).x).max()
        for method in (Extragradient(0.3), LocalSteps(0.3, 1))
    ]
    assert ends[0] < 1e-5 < 1 < ends[1]
