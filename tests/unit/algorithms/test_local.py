"""Local optimizers and local steps: exactness, bias, and what does not fit."""

import numpy as np
import pytest

import d3gd
import d3gd.rules.gain
from d3gd.errors import SettingsError
from tests.helpers.own_methods import LocalSteps

GRAPH = d3gd.Digraph.from_edges(5, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 2), (1, 4)])
OPTIMIZERS = [
    d3gd.Momentum(momentum=0.7),
    d3gd.Momentum(momentum=0.7, nesterov=True),
    d3gd.AdamW(weight_decay=0.0, eps=0.1),
]


def problem(spread=1.0):
    """Quadratics with optima of their own, or with a common one."""
    draw = np.random.default_rng(0)
    optima = spread * draw.normal(size=(GRAPH.n, 3)) ** 3  # skewed, so that medians are not means

    made = d3gd.problems.from_functions(agents=GRAPH.n, dim=3, gradient=lambda i, x: x - optima[i])
    return made, optima.mean(axis=0)


@pytest.mark.parametrize("optimizer", OPTIMIZERS[:2], ids=str)
@pytest.mark.parametrize("method", [d3gd.PerronD3GD, d3gd.FROST])
def test_with_momentum_an_exact_method_stays_exact(method, optimizer):
    quadratics, optimum = problem()
    local = d3gd.Local(method=method(step_size=0.02), optimizer=optimizer)
    assert local.exact
    result = d3gd.run(local, GRAPH, quadratics, iterations=3000, metrics=[])
    np.testing.assert_allclose(result.x, np.tile(optimum, (GRAPH.n, 1)), rtol=0, atol=1e-9)


def test_adamw_ends_where_directions_sum_to_zero_not_gradients():
    adamw = d3gd.AdamW(betas=(0.9, 0.99), weight_decay=0.0, eps=0.1)
    local = d3gd.Local(method=d3gd.PerronD3GD(step_size=0.005), optimizer=adamw)
    assert not local.exact
    quadratics, optimum = problem()
    result = d3gd.run(local, GRAPH, quadratics, iterations=6000, metrics=[])
    assert np.abs(result.x - result.x[0]).max() < 1e-6
    g = quadratics.gradients(result.x)
    assert abs(g.mean(axis=0)).max() > 0.1
    np.testing.assert_allclose((g / (abs(g) + adamw.eps)).mean(axis=0), 0, atol=1e-9)
    same, optimum = problem(spread=0.0)
    result = d3gd.run(local, GRAPH, same, iterations=6000, x0=np.ones(3), metrics=[])
    np.testing.assert_allclose(result.x, np.tile(optimum, (GRAPH.n, 1)), rtol=0, atol=1e-6)


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=str)
def test_it_is_a_method_like_any_other(optimizer, tmp_path):
    local = d3gd.Local(method=d3gd.PerronD3GD(step_size=0.02), optimizer=optimizer)
    assert d3gd.check_method(local, show=False).passed
    quadratics = d3gd.problems.quadratic(agents=GRAPH.n, dim=3)
    whole = d3gd.run(local, GRAPH, quadratics, iterations=20)
    d3gd.run(local, GRAPH, quadratics, iterations=9, out=tmp_path / "run")
    resumed = d3gd.run(local, GRAPH, quadratics, iterations=20, out=tmp_path / "run", resume=True)
    assert np.array_equal(whole.x, resumed.x)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: d3gd.Local(method=None, optimizer=d3gd.Momentum()), "method is NoneType"),
        (lambda: d3gd.Local(method=d3gd.DGD(step_size=0.1), optimizer="adam"), "optimizer is str"),
        (lambda: d3gd.Momentum(momentum=1.0), "momentum = 1"),
        (lambda: d3gd.Momentum(weight_decay=-0.1), "weight_decay = -0.1"),
        (lambda: d3gd.AdamW(betas=0.9), "betas = 0.9"),
        (lambda: d3gd.AdamW(betas=(0.9, 1.0)), "betas = 1"),
        (lambda: d3gd.AdamW(eps=0.0), "eps = 0"),
    ],
)
def test_mistakes_are_told(make, message):
    with pytest.raises(SettingsError, match=message):
        make()


def test_methods_with_gradients_elsewhere_are_refused():
    local = d3gd.Local(method=LocalSteps(0.1, 2), optimizer=d3gd.Momentum())
    with pytest.raises(SettingsError, match="a local optimizer has no direction"):
        d3gd.run(local, GRAPH, problem()[0], iterations=3)


GRAPHS = {
    "directed ring": d3gd.graphs.ring(5),
    "random": GRAPH,
    "exponential": d3gd.graphs.exponential(6),
    "grid": d3gd.graphs.grid(2, 3),
}
EXACT = [
    d3gd.PerronD3GD(step_size=0.03),
    d3gd.PerronD3GD(step_size=0.03, rule="planned"),
    d3gd.PerronD3GD(step_size=0.03, rule="fixed"),
    d3gd.FRSD(step_size=0.03),
    d3gd.FROST(step_size=0.02),
    d3gd.PushPull(step_size=0.02),
    d3gd.PushDIGing(step_size=0.01),
    d3gd.RFAST(step_size=0.01),
    d3gd.EXTRA(step_size=0.05),
    d3gd.ExactDiffusion(step_size=0.05),
    d3gd.DIGing(step_size=0.03, combine="before"),
    d3gd.DIGing(step_size=0.03, combine="both", momentum=0.3),
    d3gd.ACGT(step_size=0.03),
]


def admissible(method):
    return [name for name, graph in GRAPHS.items() if graph.is_undirected or method.needs != "undirected links"]


# Each method meets every graph, with 4 and 8 steps in turn.
CASES = [
    pytest.param(method, graph, 4 if (i + j) % 2 else 8, id=f"{type(method).__name__}-{i}-{graph}")
    for i, method in enumerate(EXACT)
    for j, graph in enumerate(admissible(method))
]


def distance_at_the_end(method, graph, quadratics, iterations=1500):
    """How far models are from the optimum at the end, or as soon as gradients vanish."""
    goal = {"stationarity": 1e-22}
    result = d3gd.run(method, graph, quadratics, iterations=iterations, every=50, metrics=list(goal), target=goal)
    return abs(result.x - quadratics.optimum).max()


@pytest.mark.parametrize(("method", "graph", "every"), CASES)
def test_an_exact_method_stays_exact_with_local_steps(method, graph, every):
    network = GRAPHS[graph]
    quadratics = d3gd.problems.quadratic(agents=network.n, dim=3, seed=1, conditioning=3)
    local = d3gd.Local(method=method, every=every)
    assert local.exact
    assert distance_at_the_end(local, network, quadratics) < 1e-9


@pytest.mark.parametrize("method", [d3gd.DiDGD, d3gd.DGD, d3gd.SGP, d3gd.QGMomentum, d3gd.D3GD])
def test_without_an_offset_local_steps_take_agents_farther_away(method):
    quadratics = d3gd.problems.quadratic(agents=6, dim=3, seed=1, conditioning=3)
    ends = [
        d3gd.run(
            d3gd.Local(method=method(step_size=0.01), every=every),
            GRAPHS["grid"],
            quadratics,
            iterations=1500,
            every=1500,
        ).metrics["disagreement"][-1]
        for every in (1, 8)
    ]
    assert ends[1] > 10 * ends[0]


@pytest.mark.parametrize("method", [d3gd.PerronD3GD, d3gd.DiDGD, d3gd.PushDIGing, d3gd.FROST])
def test_one_local_step_is_the_method_itself(method):
    noisy = d3gd.problems.sigmoid_classification(agents=6, batch=4, seed=0)
    run = {"graph": GRAPHS["exponential"], "problem": noisy, "iterations": 12}
    plain, one = (d3gd.run(m, **run) for m in (method(step_size=0.1), d3gd.Local(method=method(step_size=0.1))))
    assert np.array_equal(plain.x, one.x)


def test_local_steps_by_hand():
    """H steps of an agent of its own, steered by the correction; then one exchange."""
    quadratics = d3gd.problems.quadratic(agents=GRAPH.n, dim=2, seed=2)
    method = d3gd.PerronD3GD(step_size=0.05, rule="fixed")
    A = d3gd.weights.metropolis(GRAPH)
    pi = d3gd.weights.perron(A)[:, None]
    gamma, every, n = 0.05, 3, GRAPH.n
    x, v = np.zeros((2, n, 2))
    gains = d3gd.rules.gain.gain_under(A)
    for k in range(5):
        m = x
        for _ in range(every):
            m = m - gamma * (quadratics.gradients(m) / (n * pi) + v)
        x = A @ m
        v = v + gains.at(k) / (gamma * every) * (m - x)
    result = d3gd.run(d3gd.Local(method=method, every=every), GRAPH, quadratics, iterations=5, weights=A)
    np.testing.assert_allclose(result.x, x, rtol=0, atol=1e-12)


def test_local_steps_that_are_not_steered_by_hand():
    """H steps of an agent of its own; correction and momentum act with the exchange."""
    quadratics = d3gd.problems.quadratic(agents=GRAPH.n, dim=2, seed=2)
    method = d3gd.PerronD3GD(step_size=0.05, rule="fixed", momentum=0.7)
    A = d3gd.weights.metropolis(GRAPH)
    pi = d3gd.weights.perron(A)[:, None]
    gamma, every, n, mu = 0.05, 3, GRAPH.n, 0.7
    x, v, q = np.zeros((3, n, 2))
    gains = d3gd.rules.gain.gain_under(A, mu)
    for k in range(5):
        m, before = x, x
        for _ in range(every):
            m = m - gamma * quadratics.gradients(m) / (n * pi)
        m = m - gamma * every * (v + mu * q)
        x = A @ m
        v = v + gains.at(k) / (gamma * every) * (m - x)
        q = (q + (before - x) / (gamma * every)) / 2
    local = d3gd.Local(method=method, every=every, steered=False)
    assert not local.exact
    result = d3gd.run(local, GRAPH, quadratics, iterations=5, weights=A)
    np.testing.assert_allclose(result.x, x, rtol=0, atol=1e-12)


def test_local_steps_that_are_not_steered_end_at_a_distance_of_the_order_of_the_step_size():
    quadratics = d3gd.problems.quadratic(agents=6, dim=3, seed=1, conditioning=3)
    ends = [
        distance_at_the_end(
            d3gd.Local(method=d3gd.PerronD3GD(step_size=step), every=4, steered=False), GRAPHS["grid"], quadratics, 4000
        )
        for step in (0.02, 0.01)
    ]
    assert 1.8 < ends[0] / ends[1] < 2.2


def test_every_local_step_draws_a_new_batch_and_is_counted():
    drawn = []

    def gradients(x, k=None):
        drawn.extend([] if k is None else [k])
        return x - 1.0

    own = d3gd.problems.from_functions(agents=GRAPH.n, dim=2, gradient=lambda i, x: x - 1.0)
    own.gradients = gradients
    local = d3gd.Local(method=d3gd.PerronD3GD(step_size=0.1), every=3)
    result = d3gd.run(local, GRAPH, own, iterations=4, metrics=["gradients"], every=2)
    assert result.metrics["gradients"].tolist() == [0, 6, 12]
    assert len(set(drawn)) == len(drawn) == 12


def test_a_schedule_counts_exchanges_and_keeps_the_limit():
    quadratics = d3gd.problems.quadratic(agents=GRAPH.n, dim=3, seed=1, conditioning=3)
    steps = d3gd.Local(method=d3gd.PerronD3GD(step_size=d3gd.schedules.Decay(0.1, power=0.3, over=100)), every=4)
    assert distance_at_the_end(steps, GRAPH, quadratics) < 1e-9


@pytest.mark.parametrize("every", [1, 4])
@pytest.mark.parametrize("method", [d3gd.PerronD3GD, d3gd.PushPull])
def test_an_outer_momentum_is_exact_and_faster_where_curvatures_differ(method, every):
    graph = GRAPHS["exponential"]
    quadratics = d3gd.problems.quadratic(agents=graph.n, dim=5, seed=1, conditioning=50)
    away = []
    for outer in (0.0, 0.8):
        local = d3gd.Local(method=method(step_size=0.02), every=every, outer=outer)
        assert local.exact
        away.append(abs(d3gd.run(local, graph, quadratics, iterations=600, metrics=[]).x - quadratics.optimum).max())
    assert away[1] < 0.01 * away[0]
    assert distance_at_the_end(local, graph, quadratics, iterations=3000) < 1e-9


@pytest.mark.parametrize(
    "local",
    [
        d3gd.Local(method=d3gd.PerronD3GD(step_size=0.02), every=4),
        d3gd.Local(method=d3gd.FROST(step_size=0.02), every=2, outer=0.5, optimizer=d3gd.Momentum(momentum=0.5)),
    ],
    ids=["steps", "all at once"],
)
def test_with_local_steps_it_is_a_method_like_any_other(local):
    report = d3gd.check_method(local, show=False)
    assert report.passed, str(report)


def test_what_takes_no_local_steps_is_refused():
    for method in (d3gd.PULMDGD(step_size=0.1), d3gd.Centralized(step_size=0.1), LocalSteps(0.1, 2)):
        with pytest.raises(SettingsError, match="says nothing of where its agents head between exchanges"):
            d3gd.Local(method=method, every=2)
    with pytest.raises(SettingsError, match="every = 0"):
        d3gd.Local(method=d3gd.DGD(step_size=0.1), every=0)
    with pytest.raises(SettingsError, match="outer = 1"):
        d3gd.Local(method=d3gd.DGD(step_size=0.1), outer=1)


def test_methods_of_the_literature_are_compositions():
    graph, quadratics = GRAPHS["grid"], d3gd.problems.quadratic(agents=6, dim=300, seed=1)
    tracking, diffusion = d3gd.DIGing(step_size=0.05, combine="after"), d3gd.DGD(step_size=0.05, combine="after")
    for named, composed in [
        (d3gd.KGT(step_size=0.05, steps=3), d3gd.Local(method=tracking, every=3)),
        (
            d3gd.MomentumTracking(step_size=0.05, momentum=0.7),
            d3gd.Local(method=tracking, optimizer=d3gd.Momentum(momentum=0.7)),
        ),
        (d3gd.CHOCO(step_size=0.05, compress="topk:0.1"), d3gd.Compressed(method=diffusion, compress="topk:0.1")),
    ]:
        one, other = (
            d3gd.run(method, graph, quadratics, iterations=10, metrics=["bytes"]) for method in (named, composed)
        )
        assert np.array_equal(one.x, other.x)
        assert one.metrics["bytes"][-1] == other.metrics["bytes"][-1]
