"""The contract of PerronD3GD: corrections, limits, traffic and speed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import d3gd
from d3gd.problems import Problem
from d3gd.rules.gain import gain_under
from d3gd.topologies import fast_mixing
from tests.helpers.methods import advance
from tests.helpers.problems import Diagonal
from tests.helpers.stepping import network, random_network, states
from tests.helpers.strategies import digraphs, examples, row_stochastic
from tests.paper.textbook import perron

RULES = ["mixing", "planned", "fixed"]


# The update -------------------------------------------------------------------------------------------------------


def test_without_correction_fixed_weights_are_adapt_then_combine_di_dgd_with_the_exact_perron_vector():
    graph, A = random_network(3)
    problem = d3gd.problems.quadratic(agents=6, dim=4, seed=3)
    path = states(d3gd.PerronD3GD(step_size=0.05, rule="fixed", correct=False), graph, A, problem, 60)
    dense, x = A.toarray(), np.zeros((6, 4))
    for s in path:
        assert np.allclose(s.x, x, rtol=1e-11, atol=1e-13)
        assert not s.v.any()
        x = dense @ (x - 0.05 / (6 * perron(dense)[:, None]) * problem.gradients(x))


@pytest.mark.parametrize("rule", ["mixing", "fixed"])
@pytest.mark.parametrize("known", ["discovered", "known"])
def test_the_corrected_update_is_the_one_in_the_docstring(rule, known):
    graph, A = random_network(4)
    problem = d3gd.problems.quadratic(agents=6, dim=4, seed=4)
    algorithm = d3gd.PerronD3GD(step_size=0.05, rule=rule, perron=known)
    net, path = network(algorithm, graph, A), states(algorithm, graph, A, problem, 60)
    dense = graph.matrix(algorithm.weights(net, path[0])).toarray()
    assert np.array_equal(dense, A.toarray()) == (rule == "fixed")
    pi = perron(dense)[:, None]
    x, v = np.zeros((2, 6, 4))
    for k, s in enumerate(path):
        assert np.allclose(s.x, x, rtol=1e-9, atol=1e-12)
        assert np.allclose(s.v, v, rtol=1e-9, atol=1e-10)
        beta = gain_under(graph.matrix(algorithm.weights(net, s))).at(k)
        m = x - 0.05 * (problem.gradients(x) / (6 * pi) + v)
        x, v = dense @ m, v + beta / 0.05 * (m - dense @ m)


def test_on_doubly_stochastic_weights_with_full_gain_it_is_exact_diffusion():
    """Exact diffusion mixes by (I + W) / 2, where the gain may be 1."""
    graph = d3gd.graphs.grid(2, 3)
    problem = d3gd.problems.quadratic(agents=6, dim=4, seed=4)
    half = (np.eye(6) + d3gd.weights.metropolis(graph).toarray()) / 2
    gain = gain_under(graph.matrix(half[graph.targets, graph.sources])).first
    assert gain == 1.0  # for modes that do not alternate, no larger gain decays faster
    x, v = np.zeros((2, 6, 4))
    path = states(d3gd.ExactDiffusion(step_size=0.05), graph, d3gd.weights.metropolis(graph), problem, 60)
    for s in path:
        assert np.allclose(s.x, x, rtol=1e-9, atol=1e-12)
        m = x - 0.05 * (problem.gradients(x) + v)
        x, v = half @ m, v + gain / 0.05 * (m - half @ m)


@examples(15)
@given(graph=digraphs(min_n=1, max_n=8), data=st.data(), rule=st.sampled_from(RULES))
def test_corrections_weighted_by_the_perron_vector_sum_to_zero_at_every_iteration(graph, data, rule):
    A = data.draw(row_stochastic(graph))
    algorithm = d3gd.PerronD3GD(step_size=0.02, rule=rule)
    net = network(algorithm, graph, A)
    path = states(algorithm, graph, A, Diagonal(graph.n, 3, data.draw(st.integers(0, 99))), 80)  # two plans or three
    for s in path:
        off = np.abs(algorithm.scale(net, s) @ s.v).max()
        assert off <= 1e-12 * (1 + np.abs(s.v).max() + np.abs(s.x).max() / 0.02)
    assert graph.n == 1 or np.abs(path[-1].v).max() > 0


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", [0, 3])
def test_models_come_to_rest_at_the_optimum_and_agree(rule, seed):
    graph, A = random_network(seed, n=8)
    problem = d3gd.problems.quadratic(agents=8, dim=4, seed=seed)
    algorithm = d3gd.PerronD3GD(step_size=0.04, rule=rule)
    result = d3gd.run(algorithm, graph, problem, weights=A, iterations=2500, every=2500)
    assert np.abs(result.x - problem.optimum).max() < 1e-6
    assert result.metrics["disagreement"][-1] < 1e-12


def test_weights_for_mixing_do_not_depend_on_the_initial_ones_nor_on_data():
    graph, A = random_network(5)
    algorithm = d3gd.PerronD3GD(step_size=0.05)
    chosen = []
    for weights, seed in ((A, 0), (d3gd.weights.metropolis(graph), 1)):
        net = network(algorithm, graph, weights)
        last = states(algorithm, graph, weights, Diagonal(6, 3, seed), 70)[-1]
        chosen.append((algorithm.weights(net, last), algorithm.scale(net, last)))
    assert np.array_equal(chosen[0][0], chosen[1][0])
    assert np.array_equal(chosen[0][1], chosen[1][1])


@pytest.mark.parametrize("rule", RULES)
def test_discovering_the_network_costs_a_survey_and_changes_no_bit(rule):
    graph, A = random_network(6)
    ends, sent = [], []
    for known in ("discovered", "known"):
        algorithm = d3gd.PerronD3GD(step_size=0.05, rule=rule, perron=known)
        assert algorithm.needs == ("the network" if known == "known" else "in-neighbours")
        net = network(algorithm, graph, A)
        algorithm.init(net, np.zeros((6, 3)))
        sent.append(net.bytes_sent)
        ends.append(states(algorithm, graph, A, Diagonal(6, 3), 70)[-1].x)
    assert np.array_equal(ends[0], ends[1])
    assert sent[0] > sent[1] == 0


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("before", "after"), [(0.2, 0.02), (0.02, 0.2)])
def test_a_change_of_the_step_size_leaves_models_at_rest_where_they_are(rule, before, after):
    graph, problem = d3gd.graphs.ring(20), d3gd.problems.quadratic(agents=20, dim=3, seed=0)
    algorithm = d3gd.PerronD3GD(step_size=lambda k: before if k < 3000 else after, rule=rule)
    result = d3gd.run(algorithm, graph, problem, iterations=3600, every=20)
    assert result.metrics["disagreement"][result.iterations >= 3000].max() < 1e-11


@pytest.mark.parametrize("rule", RULES)
@examples(8)
@given(steps=st.lists(st.floats(1e-6, 0.2), min_size=2, max_size=5), held=st.integers(1, 40))
def test_under_any_schedule_of_steps_models_at_rest_stay_where_they_are(rule, steps, held):
    graph, problem = d3gd.graphs.ring(20), d3gd.problems.quadratic(agents=20, dim=3, seed=0)
    algorithm = d3gd.PerronD3GD(step_size=lambda k: steps[k // held], rule=rule)
    net = network(algorithm, graph, d3gd.weights.metropolis(graph))
    x = np.tile(problem.optimum, (20, 1))
    s = algorithm.init(net, x)
    s = s._replace(v=-problem.gradients(x) / (20 * algorithm.scale(net, s)[:, None]))
    for k in range(held * len(steps)):
        s = advance(algorithm, net, problem, s, k)
        assert np.abs(s.x - x).max() < 1e-10  # corrections are of size 1: a jump would be as large as a step


@pytest.mark.parametrize("graph", [d3gd.graphs.erdos_renyi(6, 0.4, seed=seed) for seed in range(3)], ids=str)
@pytest.mark.parametrize("rule", RULES)
def test_single_precision_ends_where_gradient_descent_in_single_precision_does(graph, rule):
    problem = d3gd.problems.quadratic(agents=6, dim=3, seed=1)
    ends = {
        name: d3gd.run(algorithm, graph, problem, iterations=6000, every=6000, dtype="float32")
        for name, algorithm in {
            "corrected": d3gd.PerronD3GD(step_size=0.05, rule=rule),
            "centralized": d3gd.Centralized(step_size=0.05),
        }.items()
    }
    floor = ends["centralized"].metrics["stationarity"][-1]
    assert ends["corrected"].metrics["stationarity"][-1] <= 10 * floor


def test_more_than_2000_agents_have_to_know_their_network():
    graph = d3gd.graphs.grid(60, 50, torus=True)
    problem = Diagonal(3000, 1)
    with pytest.raises(d3gd.D3GDError, match='perron="known"'):
        d3gd.run(d3gd.PerronD3GD(step_size=0.1, rule="fixed"), graph, problem, iterations=1)
    algorithm = d3gd.PerronD3GD(step_size=0.1, rule="fixed", perron="known")
    assert d3gd.run(algorithm, graph, problem, iterations=3).status == "completed"


# The one-way ring -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
def test_converges_on_a_one_way_ring_where_di_dgd_diverges(rule):
    graph, problem = d3gd.graphs.ring(50), d3gd.problems.quadratic(agents=50, dim=3, seed=1)
    assert d3gd.run(d3gd.DiDGD(step_size=0.1), graph, problem, iterations=300).status == "diverged"
    algorithm = d3gd.PerronD3GD(step_size=0.1, rule=rule)
    result = d3gd.run(algorithm, graph, problem, iterations=1500, every=500)
    assert result.status == "completed"
    assert (np.diff(result.metrics["stationarity"]) < 0).all()
    assert result.metrics["stationarity"][-1] < 0.1 * result.metrics["stationarity"][0]


# Traffic ----------------------------------------------------------------------------------------------------------


def traffic(algorithm, graph, dim, iterations=1000):
    """Bytes sent by the end of each iteration."""
    net = network(algorithm, graph, d3gd.weights.metropolis(graph))
    problem = Diagonal(graph.n, dim)
    s, sent = algorithm.init(net, np.zeros((graph.n, dim))), []
    before = net.bytes_sent  # a survey is no part of an iteration
    for k in range(iterations):
        s = advance(algorithm, net, problem, s, k)
        sent.append(net.bytes_sent - before)
    return np.array(sent)


@pytest.mark.parametrize("graph", [d3gd.graphs.erdos_renyi(20, 0.2), d3gd.graphs.ring(20)], ids=["random", "ring"])
def test_a_plan_from_data_adds_little_traffic_to_that_of_di_dgd(graph):
    algorithm = d3gd.PerronD3GD(step_size=0.02, rule="planned")
    base = 8 * graph.link_count * np.arange(1, 1001)  # Di-DGD's, for each of the d + n numbers of a message
    assert (traffic(d3gd.DiDGD(step_size=0.01), graph, 64, 50) == (64 + 20) * base[:50]).all()
    extra = traffic(algorithm, graph, 64) - (64 + 20) * base
    # From 64 numbers on, sketches have the same length, so what is sent beside the models does not depend on d.
    assert (traffic(algorithm, graph, 650, 130) - (650 + 20) * base[:130] == extra[:130]).all()
    assert (traffic(algorithm, graph, 10_000, 12) - (10_000 + 20) * base[:12] == extra[:12]).all()
    # Not only in the end: a run may stop at any iteration after the first hundred.
    assert (extra[99:] <= 0.10 * (650 + 20) * base[99:]).all()
    assert (extra[99:] <= 0.01 * (10_000 + 20) * base[99:]).all()


@pytest.mark.parametrize(
    "graph",
    [d3gd.graphs.erdos_renyi(20, 0.6, seed=0), d3gd.graphs.erdos_renyi(20, 0.2, seed=0), d3gd.graphs.exponential(16)],
    ids=["dense", "sparse", "exponential"],
)
def test_on_networks_that_mix_it_is_as_fast_as_push_pull_on_the_same_weights(graph):
    """Iterations to a stationarity of 1e-12; one more than Push-Pull's where centralized descent takes as many."""
    problem = d3gd.problems.quadratic(agents=graph.n, dim=5, seed=0)

    def iterations(method, A=None):
        target = {"stationarity": 1e-12}
        return d3gd.run(method, graph, problem, iterations=600, every=1, weights=A, target=target).iterations[-1]

    for step in (0.1, 0.3, 0.6, 1.0):
        ours = iterations(d3gd.PerronD3GD(step_size=step))
        assert ours <= iterations(d3gd.PushPull(step_size=step), fast_mixing(graph)) + 1


def test_on_a_two_way_path_it_ends_within_ten_times_of_exact_diffusion():
    """After 1,000 iterations, down to where both are rounding."""
    links = [(i, i + 1) for i in range(19)]
    graph = d3gd.Digraph.from_edges(20, links + [(j, i) for i, j in links])
    problem = d3gd.problems.quadratic(agents=20, dim=5, seed=0)
    for step in (0.05, 0.1, 0.2, 0.3, 0.5, 0.8):
        ends = [
            d3gd.run(method(step_size=step), graph, problem, iterations=1000, every=1000).metrics["stationarity"][-1]
            for method in (d3gd.PerronD3GD, d3gd.ExactDiffusion)
        ]
        assert ends[0] <= max(10 * ends[1], 1e-22)


class Noise(Problem):
    """Nothing but noise, the same in every run."""

    agents, dim = 8, 2000

    def gradients(self, x, k=None):
        return np.random.default_rng(k).normal(size=x.shape)


@pytest.mark.parametrize("every", [1, 4])
@pytest.mark.parametrize("graph", [d3gd.graphs.erdos_renyi(8, 0.3, seed=1), d3gd.graphs.exponential(8)])
def test_with_quasi_global_momentum_it_is_exact_and_faster_where_curvatures_differ(graph, every):
    quadratics = d3gd.problems.quadratic(agents=8, dim=3, seed=1, conditioning=100)
    ends = {}
    for momentum in (0.0, 0.8):
        method = d3gd.PerronD3GD(step_size=0.1 / every, momentum=momentum)
        method = d3gd.Local(method=method, every=every) if every > 1 else method
        assert method.exact
        result = d3gd.run(method, graph, quadratics, iterations=3000, every=300, metrics=["stationarity"])
        ends[momentum] = abs(result.x - quadratics.optimum).max(), result.metrics["stationarity"][1]
    assert ends[0.8][0] < 1e-9
    assert ends[0.8][1] < 0.1 * ends[0.0][1]


def test_noise_parts_agents_by_the_step_size_under_quasi_global_momentum_and_farther_under_their_own():
    """At equal effective steps, on a problem of noise alone."""
    noise, graph, mu = Noise(), d3gd.graphs.exponential(Noise.agents), 0.9
    plain, own, ours = (
        d3gd.run(method, graph, noise, iterations=300, metrics=["disagreement"]).metrics["disagreement"][-1]
        for method in (
            d3gd.PerronD3GD(step_size=0.1),
            d3gd.Local(method=d3gd.PerronD3GD(step_size=0.1), optimizer=d3gd.Momentum(momentum=mu)),
            d3gd.PerronD3GD(step_size=0.1, momentum=mu),
        )
    )
    assert ours < 2 * plain
    assert own > 2 * ours


def test_momentum_is_refused_where_it_would_grow_without_bound():
    """On one-way rings it grows, with a correction or without, as a run without gradients shows."""
    still = d3gd.problems.quadratic(agents=12, dim=2)
    for correct in (True, False):
        method = d3gd.PerronD3GD(step_size=0.01, momentum=0.9, correct=correct)
        with pytest.raises(d3gd.errors.SettingsError, match=r"momentum = 0\.9 is unstable on this network"):
            d3gd.run(method, d3gd.graphs.ring(12), still, iterations=1)
    for other in ({"rule": "planned"}, {"rule": "fixed", "perron": "tracked"}):
        with pytest.raises(d3gd.errors.SettingsError, match="momentum needs weights that stay the same"):
            d3gd.PerronD3GD(step_size=0.1, momentum=0.9, **other)
