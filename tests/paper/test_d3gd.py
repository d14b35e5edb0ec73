"""D3GD: the three rules against the textbook, against each other's equations and against independent solvers."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

import d3gd
from d3gd.random import keyed_uniform
from tests.helpers.stepping import hears, network, random_network, states
from tests.helpers.strategies import examples
from tests.paper import textbook


def problem_and_start(seed, n=6, d=4):
    return d3gd.problems.quadratic(agents=n, dim=d, seed=seed), np.random.default_rng(seed).normal(size=(n, d))


def state_after(algorithm, graph, A, problem, x0, iterations):
    return states(algorithm, graph, A, problem, iterations, x0)[-1]


@pytest.mark.parametrize("rule", ["global", "decentralized"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"chain_rule": True},
        {"participation": 0.4},
        {"anchor": 0.7, "chain_rule": True, "participation": 0.6},
        {
            "step_size": d3gd.schedules.Decay(0.03, power=0.5, over=20),
            "refine_step": d3gd.schedules.Decay(0.2, over=5),
        },
    ],
    ids=["plain", "chain_rule", "participation", "anchor", "schedules"],
)
@pytest.mark.parametrize("seed", range(3))
def test_equals_the_textbook(rule, options, seed):
    graph, A = random_network(seed)
    problem, x0 = problem_and_start(seed)
    chosen = {"step_size": 0.02, "refine_step": 0.2, **options}
    algorithm = d3gd.D3GD(rule=rule, **chosen)

    def moves(k, i):
        return keyed_uniform(seed, np.array([i]), k, 1)[0, 0] < algorithm.participation

    path, weights = textbook.d3gd(
        problem.gradients,
        A.toarray(),
        hears(graph),
        x0,
        lambda k: d3gd.schedules.at(algorithm.step_size, k),
        lambda k: d3gd.schedules.at(algorithm.refine_step, k),
        algorithm.anchor,
        50,
        rule=rule,
        chain_rule=algorithm.chain_rule,
        moves=moves,
    )
    net = network(algorithm, graph, A)
    for s, x, weight in zip(states(algorithm, graph, A, problem, 50, x0, seed), path, weights, strict=True):
        np.testing.assert_allclose(s.x, x, rtol=0, atol=1e-12 * max(1, np.abs(x).max()))
        np.testing.assert_allclose(graph.matrix(algorithm.weights(net, s)).toarray(), weight, rtol=0, atol=1e-11)
    # The comparison means something only if the weights went somewhere.
    assert np.abs(weights[-1] - A.toarray()).max() > 0.005


@examples(15)
@given(seed=st.integers(0, 10_000), rule=st.sampled_from(["global", "decentralized", "exact"]))
def test_weights_stay_on_the_graph_and_above_the_anchor(seed, rule):
    graph, A = random_network(seed)
    problem, x0 = problem_and_start(seed)
    algorithm = d3gd.D3GD(step_size=0.05, rule=rule)
    net = network(algorithm, graph, A)
    for s in states(algorithm, graph, A, problem, 12, x0):
        a = algorithm.weights(net, s)
        np.testing.assert_allclose(np.add.reduceat(a, graph.indptr[:-1]), 1, atol=1e-12)
        assert (a >= 0.2 * A.data - 1e-15).all()


# The gradient -----------------------------------------------------------------------------------------------------


def centred_slopes(algorithm, graph, A, s, problem, k=3):
    """What one step does to the weights where no projection bites, as a gradient up to a constant per row."""
    net = network(algorithm, graph, A)
    after = algorithm.step(net, lambda: problem.gradients(s.x), s, k)
    assert after.abar.min() > 0
    return (s.abar - after.abar) / algorithm.refine_step


def centred(graph, matrix):
    rows = [matrix[i, near] - matrix[i, near].mean() for i, near in enumerate(hears(graph))]
    return np.concatenate(rows)


def in_mid_run(seed, rule, anchor):
    """A network, and a state with disagreeing models and weights that have left their start."""
    graph, A = random_network(seed)
    problem, x0 = problem_and_start(seed)
    s = state_after(d3gd.D3GD(step_size=0.01, refine_step=0.02, rule=rule, anchor=anchor), graph, A, problem, x0, 2)
    return graph, A, problem, s


@pytest.mark.parametrize("anchor", [0.0, 0.2, 0.6])
@pytest.mark.parametrize("seed", range(4))
def test_chain_rule_gives_the_gradient_of_jbar(seed, anchor):
    graph, A, problem, s = in_mid_run(seed, "global", anchor)
    gamma, A0, Abar = 0.07, A.toarray(), graph.matrix(s.abar).toarray()
    pi = textbook.perron(textbook.anchored(Abar, A0, anchor))

    def jbar(M):
        A_of_M = textbook.anchored(M, A0, anchor)
        return textbook.design(A_of_M, s.x, problem.gradients(s.x), np.diag(s.Y), gamma, pi)

    differences, h = np.zeros_like(A0), 1e-3  # jbar is quadratic, so central differences are exact for any h
    for i, near in enumerate(hears(graph)):
        for j in near:
            E = np.zeros_like(A0)
            E[i, j] = h
            differences[i, j] = (jbar(Abar + E) - jbar(Abar - E)) / (2 * h)
    algorithm = d3gd.D3GD(step_size=gamma, refine_step=1e-5, anchor=anchor, rule="global", chain_rule=True)
    got = centred_slopes(algorithm, graph, A, s, problem)
    np.testing.assert_allclose(got, centred(graph, differences), rtol=0, atol=1e-9)


@pytest.mark.parametrize("rule", ["global", "decentralized"])
@pytest.mark.parametrize("anchor", [0.2, 0.6])
@pytest.mark.parametrize("seed", range(3))
def test_printed_form_lacks_the_factor_in_its_first_term_only(seed, anchor, rule):
    graph, A, problem, s = in_mid_run(seed, rule, anchor)
    settings = {"step_size": 0.07, "refine_step": 1e-5, "anchor": anchor, "rule": rule}
    printed = centred_slopes(d3gd.D3GD(**settings), graph, A, s, problem)
    chained = centred_slopes(d3gd.D3GD(chain_rule=True, **settings), graph, A, s, problem)
    # A step size of almost nothing leaves the first term alone.
    first = centred_slopes(d3gd.D3GD(**settings | {"step_size": 1e-300}), graph, A, s, problem)
    np.testing.assert_allclose(printed - chained, anchor * first, rtol=0, atol=1e-9)
    assert np.abs(anchor * first).max() > 1e-4


# The exact rule ---------------------------------------------------------------------------------------------------


def row_objectives(weights, near, x, target):
    return [float(np.sum((weights[i, js] @ x[js] - target[i]) ** 2)) for i, js in enumerate(near)]


@pytest.mark.parametrize("anchor", [0.0, 0.2])
@examples(25)
@given(seed=st.integers(0, 10_000), spread=st.sampled_from([1e-3, 1.0, 100.0]), far=st.sampled_from([0.0, 50.0]))
def test_exact_reaches_the_least_value_of_every_row(anchor, seed, spread, far):
    graph, A = random_network(seed, n=6, p=0.5)
    problem, x = problem_and_start(seed, d=3)
    x = spread * x + far
    algorithm = d3gd.D3GD(step_size=0.3, anchor=anchor, rule="exact")
    net = network(algorithm, graph, A)
    g = problem.gradients(x)
    s = algorithm.step(net, lambda: g, algorithm.init(net, x), 0)
    # y^0 = 1 for everyone, and up to constants row i of J is the squared distance of a_i X from this target.
    pi, A0 = textbook.perron(A.toarray()), A.toarray()
    target = pi @ x + 0.3 / 6 * (g - pi @ g)
    near = hears(graph)
    got = row_objectives(graph.matrix(algorithm.weights(net, s)).toarray(), near, x, target)
    for i, js in enumerate(near):
        reachable = (1 - anchor) * x[js] + anchor * (A0[i] @ x)
        least = textbook.best_row(reachable - target[i], np.zeros(3))
        scale = np.max(np.sum((reachable - target[i]) ** 2, axis=1))
        assert got[i] <= least + 1e-6 * max(least, 1e-3 * scale)
    np.testing.assert_allclose(s.x, graph.matrix(algorithm.weights(net, s)) @ x - 0.3 / 6 * g, rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("anchor", [0.0, 0.2])
def test_exact_reaches_the_design_value_of_a_general_solver(anchor):
    graph, A = random_network(3, n=4, p=0.6)
    problem, x0 = problem_and_start(3, n=4, d=2)
    algorithm = d3gd.D3GD(step_size=0.1, anchor=anchor, rule="exact")
    net = network(algorithm, graph, A)
    # Two steps in, y and pi are no longer trivial.
    s = state_after(d3gd.D3GD(step_size=0.1, refine_step=0.05, rule="global"), graph, A, problem, x0, 2)
    g, y, A0 = problem.gradients(s.x), np.diag(s.Y), A.toarray()
    pi = textbook.perron(graph.matrix(algorithm.weights(net, s)).toarray())

    def value(abar):
        A_of_abar = textbook.anchored(graph.matrix(abar).toarray(), A0, anchor)
        return textbook.design(A_of_abar, s.x, g, y, 0.1, pi)

    rows = [{"type": "eq", "fun": lambda a, i=i: a[graph.indptr[i] : graph.indptr[i + 1]].sum() - 1} for i in range(4)]
    solver = minimize(
        value, A.data, bounds=[(0, 1)] * len(A.data), constraints=rows, method="SLSQP", options={"ftol": 1e-13}
    )
    assert solver.success
    ours = value(algorithm.step(net, lambda: g, s, 0).abar)
    assert ours <= solver.fun + 1e-6 * abs(solver.fun)
    assert ours == pytest.approx(solver.fun, rel=1e-6)


@pytest.mark.parametrize("rule", ["exact", "global", "decentralized"])
@pytest.mark.parametrize("common", [0.0, 1.0, 0.1])
def test_weights_stay_where_the_design_function_is_flat(rule, common):
    # With all models alike every mixture of them is the same, so no weights are better than any others.
    graph, A = random_network(5)
    problem, _ = problem_and_start(5)
    x = np.full((6, 4), common) * np.array([1.0, -3.0, 0.7, 1e-3])
    algorithm = d3gd.D3GD(step_size=0.05, rule=rule)
    s = state_after(algorithm, graph, A, problem, x, 1)
    np.testing.assert_allclose(s.abar, A.data, rtol=0, atol=1e-12)


def test_exact_moves_before_the_step_and_the_others_after():
    graph, A = random_network(2)
    problem, x0 = problem_and_start(2)
    plain = state_after(d3gd.DiDGD(step_size=0.05), graph, A, problem, x0, 1)
    for rule in ("global", "decentralized"):
        s = state_after(d3gd.D3GD(step_size=0.05, rule=rule), graph, A, problem, x0, 1)
        np.testing.assert_allclose(s.x, plain.x, atol=1e-14)
    s = state_after(d3gd.D3GD(step_size=0.05, rule="exact"), graph, A, problem, x0, 1)
    assert np.abs(s.x - plain.x).max() > 0.01


@pytest.mark.parametrize("rule", ["exact", "global", "decentralized"])
def test_only_rows_that_were_drawn_move(rule):
    graph, A = random_network(4, n=8)
    problem, x0 = problem_and_start(4, n=8)
    algorithm = d3gd.D3GD(step_size=0.05, rule=rule, participation=0.5)
    path = states(algorithm, graph, A, problem, 10, x0, seed=11)
    for k, (s, after) in enumerate(itertools.pairwise(path)):
        drawn = keyed_uniform(11, np.arange(8), k, 1)[:, 0] < 0.5
        rested = ~drawn[graph.targets]
        assert np.array_equal(s.abar[rested], after.abar[rested])


# The trackers of Algorithm 1 -----------------------------------------------------------------------------------------


STILL = d3gd.D3GD(step_size=0.05, participation=1e-300)  # so that no row ever moves


@examples(15)
@given(seed=st.integers(0, 10_000))
def test_trackers_keep_the_weighted_sums_while_weights_stand_still(seed):
    graph, A = random_network(seed)
    problem, x0 = problem_and_start(seed)
    pi, size = textbook.perron(A.toarray()), 1.0
    for s in states(STILL, graph, A, problem, 40, x0):
        assert np.array_equal(s.abar, A.data)
        g = problem.gradients(s.x)
        q = s.sums.q.at(network(STILL, graph, A), g)
        size = max(size, np.abs(s.x).max(), np.abs(g).max())  # what rounding is relative to, and trackers never forget
        np.testing.assert_allclose(pi @ s.sums.z, pi @ s.x, rtol=0, atol=1e-12 * size)
        np.testing.assert_allclose(pi @ q, pi @ g, rtol=0, atol=1e-12 * size)


def test_first_trackers_are_the_models_and_gradients():
    graph, A = random_network(1)
    problem, x0 = problem_and_start(1)
    s = STILL.init(network(STILL, graph, A), x0)
    g = problem.gradients(x0)
    assert np.array_equal(s.sums.z, x0)
    assert np.array_equal(s.sums.q.at(network(STILL, graph, A), g), g)


def test_trackers_reach_the_weighted_sums_once_the_models_rest():
    graph, A = random_network(7)
    problem, x0 = problem_and_start(7)
    s = states(d3gd.D3GD(step_size=0.3, participation=1e-300), graph, A, problem, 1500, x0)[-1]
    pi, g = textbook.perron(A.toarray()), problem.gradients(s.x)
    np.testing.assert_allclose(s.sums.z, np.tile(pi @ s.x, (6, 1)), atol=1e-10)
    np.testing.assert_allclose(s.sums.q.at(network(STILL, graph, A), g), np.tile(pi @ g, (6, 1)), atol=1e-10)


# Settings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"step_size": -1.0},
        {"refine_step": 0.0},
        {"anchor": 1.0},
        {"anchor": -0.1},
        {"anchor": float("nan")},
        {"participation": 0.0},
        {"participation": 1.5},
        {"rule": "centralized"},
    ],
)
def test_impossible_settings_are_refused_by_name(wrong):
    with pytest.raises(d3gd.D3GDError, match=next(iter(wrong))):
        d3gd.D3GD(**{"step_size": 0.1} | wrong)
