"""Metrics against their double sums and loops, and the price of each algorithm in bytes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import d3gd
from d3gd import metrics
from d3gd.metrics import METRICS, Snapshot
from tests.helpers.strategies import digraphs, examples, row_stochastic
from tests.paper import textbook


def snapshot(seed, n=5, d=3, **changes):
    rng = np.random.default_rng(seed)
    graph = d3gd.graphs.erdos_renyi(n, 0.6, seed=seed)
    facts = {
        "k": 4,
        "x": rng.normal(size=(n, d)),
        "weights": d3gd.weights.uniform(graph),
        "scale": rng.uniform(0.1, 1, n),
        "problem": d3gd.problems.quadratic(agents=n, dim=d, seed=seed),
        "step_size": 0.1,
        "bytes_sent": 0,
    }
    return Snapshot(**facts | changes)


@given(seed=st.integers(0, 200), far=st.sampled_from([0.0, 1e4]))
def test_disagreement_is_the_mean_of_all_pairs(seed, far):
    s = snapshot(seed)
    s = snapshot(seed, x=s.x + far)
    pairs = [np.sum((a - b) ** 2) for a in s.x for b in s.x]
    assert metrics.disagreement(s) == pytest.approx(np.mean(pairs), rel=1e-9)


def test_disagreement_of_equals_is_zero():
    assert metrics.disagreement(snapshot(0, x=np.ones((5, 3)))) == 0


@pytest.mark.parametrize("kind", ["quadratic", "sigmoid"])
def test_stationarity_and_loss_are_means_over_agents_of_the_whole_objective(kind):
    s = snapshot(3)
    if kind == "sigmoid":
        problem = d3gd.problems.sigmoid_classification(agents=5, alpha=0.1, seed=1)
        s = snapshot(3, problem=problem, x=np.random.default_rng(0).normal(size=(5, problem.dim)))
    gradients, losses = [], []
    for x in s.x:
        everywhere = np.tile(x, (5, 1))
        gradients.append(sum(s.problem.gradients(everywhere)) / 5)
        losses.append(sum(s.problem.losses(everywhere)) / 5)
    assert metrics.stationarity(s) == pytest.approx(np.mean([g @ g for g in gradients]), rel=1e-10)
    assert metrics.loss(s) == pytest.approx(np.mean(losses), rel=1e-10)


def test_versions_at_the_mean_take_one_gradient_there():
    s = snapshot(3)
    mean = np.tile(s.x.mean(axis=0), (5, 1))
    g = s.problem.gradients(mean).mean(axis=0)
    assert metrics.stationarity_at_mean(s) == pytest.approx(g @ g, rel=1e-10)
    assert metrics.loss_at_mean(s) == pytest.approx(s.problem.losses(mean).mean(), rel=1e-10)


@examples(30)
@given(st.data(), digraphs(min_n=2, max_n=6))
def test_perron_metrics_compare_with_the_true_vector(data, graph):
    A = data.draw(row_stochastic(graph))
    pi = textbook.perron(A.toarray())
    s = snapshot(0, weights=A, scale=pi * np.linspace(1, 1.5, graph.n))
    assert metrics.n_min_pi(s) == pytest.approx(graph.n * pi.min(), rel=1e-8)
    assert metrics.perron_error(s) == pytest.approx(0.5, rel=1e-7)


def test_design_is_the_textbook_function():
    s = snapshot(2)
    A, g = s.weights.toarray(), s.problem.gradients(s.x)
    value = textbook.design(A, s.x, g, s.scale, 0.1, textbook.perron(A))
    assert metrics.design(s) == pytest.approx(value, rel=1e-10)
    scheduled = snapshot(2, step_size=d3gd.schedules.Decay(0.1, power=1.0))
    value = textbook.design(A, s.x, g, s.scale, 0.1 / 5, textbook.perron(A))
    assert metrics.design(scheduled) == pytest.approx(value, rel=1e-10)


def test_accuracy_is_summed_up_from_the_agents():
    class Graded(d3gd.problems.Quadratic):
        def accuracies(self, x):
            return np.linspace(0.5, 0.9, len(x))

    quadratic = d3gd.problems.quadratic(agents=5, dim=3)
    s = snapshot(0, problem=Graded(quadratic.Q, quadratic.b))
    assert metrics.accuracy(s) == pytest.approx(0.7)
    assert metrics.accuracy_worst(s) == 0.5
    assert metrics.accuracy_per_agent(s).tolist() == np.linspace(0.5, 0.9, 5).tolist()
    recorded = d3gd.run(d3gd.DiDGD(step_size=0.01), d3gd.graphs.ring(5), s.problem, iterations=4, every=2).metrics
    assert recorded["accuracy_per_agent"].shape == (3, 5)
    assert recorded["accuracy"].shape == (3,)


# Bytes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("algorithm", "numbers"),
    [
        (d3gd.DiDGD(step_size=0.01), lambda d, n: d + n),
        (d3gd.D3GD(step_size=0.01, rule="decentralized"), lambda d, n: 3 * d + n),
        (d3gd.D3GD(step_size=0.01, rule="decentralized", participation=0.5), lambda d, n: 3 * d + n),
        (d3gd.D3GD(step_size=0.01, rule="global"), lambda d, n: d + n),
        (d3gd.D3GD(step_size=0.01, rule="exact"), lambda d, n: d + n),
    ],
)
def test_bytes_are_eight_a_number_link_and_iteration(algorithm, numbers):
    n, d = 7, 4
    graph = d3gd.graphs.erdos_renyi(n, 0.5, seed=2)
    result = d3gd.run(algorithm, graph, d3gd.problems.quadratic(agents=n, dim=d), iterations=9, every=2)
    expected = 8 * numbers(d, n) * graph.link_count * result.iterations
    assert result.metrics["bytes"].tolist() == expected.tolist()


def test_warmup_sends_only_the_perron_trackers():
    graph = d3gd.graphs.ring(5)
    algorithm = d3gd.DiDGD(step_size=0.01, warmup=3)
    result = d3gd.run(algorithm, graph, d3gd.problems.quadratic(agents=5, dim=4), iterations=5, every=1)
    per_link = np.diff(result.metrics["bytes"]) / graph.link_count / 8
    assert per_link.tolist() == [5, 5, 5, 9, 9]


# Which are recorded -----------------------------------------------------------------------------------------------


def test_large_networks_record_the_versions_at_the_mean_under_their_own_names(monkeypatch):
    def names(n):
        problem = d3gd.problems.quadratic(agents=n, dim=2)
        return set(d3gd.run(d3gd.DiDGD(step_size=0.01), d3gd.graphs.ring(n), problem, iterations=1).metrics)

    monkeypatch.setattr("d3gd.metrics.EXACT_UP_TO", 5)
    assert {"stationarity", "loss", "disagreement", "n_min_pi", "bytes"} <= names(5)
    assert {"stationarity_at_mean", "loss_at_mean", "disagreement", "bytes"} <= names(6)
    assert not {"stationarity", "loss"} & names(6)


def test_the_limit_is_above_what_people_simulate_and_below_what_hurts():
    assert 500 <= metrics.EXACT_UP_TO <= 5000


@pytest.mark.parametrize("name", [name for name in METRICS if not name.startswith("accuracy")])
def test_every_metric_can_be_asked_for_by_name(name):
    problem = d3gd.problems.quadratic(agents=5, dim=2)
    result = d3gd.run(d3gd.D3GD(step_size=0.01), d3gd.graphs.ring(5), problem, iterations=6, every=3, metrics=[name])
    assert list(result.metrics) == [name]
    assert result.metrics[name].shape == ((3, 5) if name.endswith("_per_agent") else (3,))
    assert np.isfinite(result.metrics[name]).all()


def test_a_problem_without_loss_is_recorded_without():
    problem = d3gd.problems.from_functions(agents=3, dim=1, gradient=lambda i, x: x - i)
    result = d3gd.run(d3gd.DiDGD(step_size=0.1), d3gd.graphs.ring(3), problem, iterations=3)
    assert "loss" not in result.metrics
    assert "stationarity" in result.metrics


def test_own_metrics_are_functions_of_a_snapshot():
    problem = d3gd.problems.quadratic(agents=3, dim=2)
    result = d3gd.run(
        d3gd.DiDGD(step_size=0.1),
        d3gd.graphs.ring(3),
        problem,
        iterations=4,
        every=2,
        metrics={"k": lambda s: s.k, "size": lambda s: float(np.abs(s.x).max())},
    )
    assert result.metrics["k"].tolist() == [0, 2, 4]
    assert result.metrics["size"][0] == 0


@pytest.mark.parametrize("algorithm", [d3gd.DiDGD(step_size=0.05), d3gd.D3GD(step_size=0.05)])
def test_a_metric_of_no_meaning_is_refused_in_one_line(algorithm):
    problem = d3gd.problems.quadratic(agents=3, dim=2)
    with pytest.raises(d3gd.D3GDError, match="accuracy"):
        d3gd.run(algorithm, d3gd.graphs.ring(3), problem, iterations=4, metrics=["accuracy"])
    with pytest.raises(d3gd.D3GDError, match="'stationary' is not known"):
        d3gd.run(algorithm, d3gd.graphs.ring(3), problem, iterations=4, metrics=["stationary"])
