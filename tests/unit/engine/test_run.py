"""The loop: records, stopping, and interruptions that do not change the numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import d3gd
from d3gd.algorithms.identity import describe
from tests.helpers.strategies import examples
from tests.unit.runs.test_files import same

GRAPH = d3gd.graphs.erdos_renyi(6, 0.5, seed=1)
PROBLEM = d3gd.problems.sigmoid_classification(agents=6, alpha=0.1, seed=2)
QUADRATIC = d3gd.problems.quadratic(agents=6, dim=3)
DIDGD = d3gd.DiDGD(step_size=0.05)
METHODS = [
    d3gd.DiDGD(step_size=0.1, warmup=5),
    d3gd.D3GD(step_size=0.1, participation=0.6),
    d3gd.D3GD(step_size=d3gd.schedules.Decay(0.1), rule="global"),
    d3gd.D3GD(step_size=0.1, rule="exact"),
]
IDS = ["DiDGD", "decentralized", "global", "exact"]


def skewed_softmax():
    rng = np.random.default_rng(0)
    parts = [(rng.normal(size=(12, 3)), rng.integers(0, 3, 12)) for _ in range(6)]
    return d3gd.problems.softmax_regression(parts, regularization=0.01, batch=4, seed=3)


# Records ----------------------------------------------------------------------------------------------------------


@examples(15)
@given(iterations=st.integers(0, 30), every=st.integers(1, 12))
def test_records_the_first_every_and_the_last_iteration(iterations, every):
    result = d3gd.run(DIDGD, GRAPH, QUADRATIC, iterations=iterations, every=every)
    assert result.iterations.tolist() == sorted({*range(0, iterations + 1, every), iterations})
    assert {len(values) for values in result.metrics.values()} == {len(result.iterations)}
    assert result.status == "completed"


@pytest.mark.parametrize("algorithm", METHODS, ids=IDS)
def test_recording_does_not_change_the_run(algorithm):
    often = d3gd.run(algorithm, GRAPH, PROBLEM, iterations=30, every=1)
    seldom = d3gd.run(algorithm, GRAPH, PROBLEM, iterations=30, every=30)
    assert np.array_equal(often.x, seldom.x)
    assert np.array_equal(often.weights.data, seldom.weights.data)
    for name, values in seldom.metrics.items():
        assert np.array_equal(values, often.metrics[name][[0, -1]])


@pytest.mark.parametrize("algorithm", METHODS, ids=IDS)
def test_the_same_call_gives_the_same_bits(algorithm):
    first, second = (d3gd.run(algorithm, GRAPH, PROBLEM, iterations=25) for _ in range(2))
    same(first, second)


def test_defaults_are_metropolis_weights_and_zeros():
    result = d3gd.run(DIDGD, GRAPH, QUADRATIC, iterations=0)
    assert np.array_equal(result.x, np.zeros((6, 3)))
    assert np.array_equal(result.weights.toarray(), d3gd.weights.metropolis(GRAPH).toarray())


def test_one_start_serves_all_agents_and_is_left_alone():
    x0 = np.array([1.0, 2.0, 3.0])
    assert np.array_equal(d3gd.run(DIDGD, GRAPH, QUADRATIC, iterations=0, x0=x0).x, np.tile(x0, (6, 1)))
    x0 = np.ones((6, 3))
    d3gd.run(d3gd.D3GD(step_size=0.05), GRAPH, QUADRATIC, iterations=5, x0=x0)
    assert np.array_equal(x0, np.ones((6, 3)))


def test_seed_keys_the_draws_of_the_algorithm_only():
    def final(algorithm, seed):
        return d3gd.run(algorithm, GRAPH, PROBLEM, iterations=20, seed=seed).x

    assert np.array_equal(final(DIDGD, 0), final(DIDGD, 1))
    partial = d3gd.D3GD(step_size=0.1, participation=0.5)
    assert not np.array_equal(final(partial, 0), final(partial, 1))


# Stopping ---------------------------------------------------------------------------------------------------------


def test_stops_at_the_first_record_on_target():
    straight = d3gd.run(DIDGD, GRAPH, QUADRATIC, iterations=200, every=5)
    level = float(straight.metrics["stationarity"][10])
    result = d3gd.run(DIDGD, GRAPH, QUADRATIC, iterations=200, every=5, target={"stationarity": level})
    assert result.status == "target"
    first = int(np.flatnonzero(straight.metrics["stationarity"] <= level)[0])
    assert result.iterations.tolist() == straight.iterations[: first + 1].tolist()


def test_every_target_must_be_met():
    result = d3gd.run(DIDGD, GRAPH, QUADRATIC, iterations=40, target={"stationarity": 1e9, "disagreement": -1.0})
    assert result.status == "completed"


def test_unrecorded_targets_are_refused():
    with pytest.raises(d3gd.D3GDError, match=r"'accuracy'.*choose from.*stationarity"):
        d3gd.run(DIDGD, GRAPH, QUADRATIC, iterations=5, target={"accuracy": 0.1})


def test_callbacks_see_every_record_and_can_stop():
    seen, other = [], []

    def stop(snapshot):
        seen.append(snapshot.k)
        return snapshot.k == 20

    result = d3gd.run(
        DIDGD, GRAPH, QUADRATIC, iterations=100, every=5, callbacks=[stop, lambda s: other.append(s.x.copy())]
    )
    assert result.status == "stopped"
    assert seen == result.iterations.tolist() == [0, 5, 10, 15, 20]
    assert np.array_equal(other[-1], result.x)


@pytest.mark.parametrize("rule", [None, "decentralized", "global", "exact"])
@pytest.mark.parametrize("step_size", [10.0, 1e8, 1e200])
@pytest.mark.parametrize("anchor", [0.2, 0.0])
def test_divergence_is_a_status_with_a_message(rule, step_size, anchor):
    algorithm = d3gd.DiDGD(step_size=step_size)
    if rule is not None:
        algorithm = d3gd.D3GD(step_size=step_size, rule=rule, anchor=anchor)
    result = d3gd.run(algorithm, GRAPH, QUADRATIC, iterations=3000, every=7)
    assert result.status == "diverged"
    assert result.message
    assert "\n" not in result.message
    assert result.iterations[-1] < 3000
    assert {len(values) for values in result.metrics.values()} == {len(result.iterations)}


@pytest.mark.parametrize("algorithm", METHODS, ids=IDS)
def test_gradients_that_turn_nan_end_the_run(algorithm):
    problem = d3gd.problems.from_functions(
        agents=6, dim=1, gradient=lambda i, x: x if abs(x[0]) > 0.5 else np.array([np.nan])
    )
    result = d3gd.run(algorithm, GRAPH, problem, iterations=500, x0=np.ones(1))
    assert result.status == "diverged"
    assert result.message


def test_what_is_recorded_never_decides_how_a_run_ends():
    # Without an anchor the weights of this run fall apart, which its decentralized agents neither see nor mind.
    graph = d3gd.graphs.erdos_renyi(8, 0.25, seed=11)
    problem = d3gd.problems.quadratic(agents=8, dim=3, seed=11)
    algorithm = d3gd.D3GD(step_size=0.01, anchor=0.0)
    little = d3gd.run(algorithm, graph, problem, iterations=100, metrics=["disagreement"])
    usual = d3gd.run(algorithm, graph, problem, iterations=100)
    assert little.status == usual.status == "completed"
    assert np.array_equal(little.x, usual.x)


@pytest.mark.parametrize("status", ["target", "stopped", "diverged", "completed"])
def test_resuming_a_finished_run_changes_nothing(tmp_path, status):
    options = {"iterations": 60, "every": 5, "out": tmp_path / "run"}
    algorithm = DIDGD
    if status == "target":
        options["target"] = {"stationarity": 1e3}
    elif status == "stopped":
        options["callbacks"] = [lambda s: s.k == 20]
    elif status == "diverged":
        algorithm = d3gd.DiDGD(step_size=100.0)
    finished = d3gd.run(algorithm, GRAPH, QUADRATIC, **options)
    assert finished.status == status
    same(d3gd.run(algorithm, GRAPH, QUADRATIC, resume=True, **options), finished)


# Resuming ---------------------------------------------------------------------------------------------------------


class PowerCutError(Exception):
    """Stands for anything that ends a process without warning."""


@pytest.mark.parametrize("algorithm", METHODS, ids=IDS)
@pytest.mark.parametrize("problem", [PROBLEM, skewed_softmax()], ids=["sigmoid", "minibatch"])
@pytest.mark.parametrize("blow", [KeyboardInterrupt, PowerCutError])
def test_an_interrupted_run_resumes_to_the_same_bits(tmp_path, algorithm, problem, blow):
    options = {"iterations": 40, "every": 4, "checkpoint_every": 7, "seed": 5}
    straight = d3gd.run(algorithm, GRAPH, problem, **options)

    def interrupt(snapshot):
        if snapshot.k == 24:
            raise blow

    with pytest.raises(blow):
        d3gd.run(algorithm, GRAPH, problem, out=tmp_path, callbacks=[interrupt], **options)
    resumed = d3gd.run(algorithm, GRAPH, problem, out=tmp_path, resume=True, **options)
    same(resumed, straight)
    same(d3gd.Result.load(tmp_path), straight)


@examples(8)
@given(cut=st.integers(0, 39), every=st.integers(1, 9), checkpoint_every=st.integers(1, 25))
def test_a_run_cut_inside_any_step_resumes_to_the_same_bits(tmp_path_factory, cut, every, checkpoint_every):
    folder = tmp_path_factory.mktemp("run")
    options = {"iterations": 40, "every": every, "checkpoint_every": checkpoint_every}
    algorithm = METHODS[1]
    straight = d3gd.run(algorithm, GRAPH, PROBLEM, **options)

    class Cut(d3gd.D3GD):
        def step(self, net, gradient, s, k):
            after = super().step(net, gradient, s, k)
            if k == cut:
                raise KeyboardInterrupt
            return after

    Cut.__name__ = "D3GD"  # as the folder knows it
    with pytest.raises(KeyboardInterrupt):
        d3gd.run(Cut(step_size=0.1, participation=0.6), GRAPH, PROBLEM, out=folder, **options)
    same(d3gd.run(algorithm, GRAPH, PROBLEM, out=folder, resume=True, **options), straight)


@pytest.mark.parametrize("algorithm", METHODS, ids=IDS)
def test_a_longer_run_goes_on_from_a_shorter_one(tmp_path, algorithm):
    d3gd.run(algorithm, GRAPH, PROBLEM, iterations=35, out=tmp_path)
    extended = d3gd.run(algorithm, GRAPH, PROBLEM, iterations=80, out=tmp_path, resume=True)
    same(extended, d3gd.run(algorithm, GRAPH, PROBLEM, iterations=80))


def test_a_shorter_run_than_the_folder_holds_is_not_passed_off_as_it(tmp_path):
    d3gd.run(DIDGD, GRAPH, QUADRATIC, iterations=60, out=tmp_path)
    before = {path: path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file()}
    with pytest.raises(d3gd.D3GDError, match="60"):
        d3gd.run(DIDGD, GRAPH, QUADRATIC, iterations=30, out=tmp_path, resume=True)
    assert before == {path: path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file()}


def test_resume_in_an_empty_folder_starts_from_the_beginning(tmp_path):
    options = {"iterations": 20}
    same(
        d3gd.run(DIDGD, GRAPH, QUADRATIC, out=tmp_path / "new", resume=True, **options),
        d3gd.run(DIDGD, GRAPH, QUADRATIC, **options),
    )


def test_a_schedule_is_described_the_same_in_every_process():
    # A function's default repr holds its address, by which no later process could recognise the experiment.
    def schedule():
        return lambda k: 0.1 / (1 + k)

    kept = [schedule() for _ in range(2)]
    assert describe(d3gd.DiDGD(step_size=kept[0])) == describe(d3gd.DiDGD(step_size=kept[1]))
    assert describe(d3gd.DiDGD(step_size=kept[0])) != describe(d3gd.DiDGD(step_size=lambda k: 0.2 / (1 + k)))
    assert describe(d3gd.DiDGD(step_size=d3gd.schedules.Decay(0.1))) == describe(
        d3gd.DiDGD(step_size=d3gd.schedules.Decay(0.1))
    )


# Bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"iterations": -1}, "iterations = -1"),
        ({"iterations": 2.5}, "iterations = 2.5"),
        ({"every": 0}, "every = 0"),
        ({"checkpoint_every": 0}, "checkpoint_every = 0"),
        ({"x0": np.zeros((6, 4))}, r"x0 has shape \(6, 4\)"),
        ({"x0": np.full(3, np.nan)}, "x0 holds NaN"),
        ({"weights": np.eye(6)}, "strongly connected"),
        ({"weights": np.full((6, 6), 1 / 6)}, "no link"),
        ({"weights": 2 * d3gd.weights.uniform(GRAPH)}, "sums to 2"),
        ({"metrics": ["beauty"]}, "'beauty'"),
    ],
)
def test_bad_input_gets_one_line(wrong, words):
    with pytest.raises(d3gd.D3GDError, match=words) as caught:
        d3gd.run(DIDGD, GRAPH, QUADRATIC, **{"iterations": 5} | wrong)
    assert "\n" not in str(caught.value)


def test_problem_and_graph_must_have_the_same_agents():
    with pytest.raises(d3gd.D3GDError, match="6 agents but the graph has 5"):
        d3gd.run(DIDGD, d3gd.graphs.ring(5), QUADRATIC, iterations=5)


def test_a_graph_that_leaves_agents_out_is_refused_by_name():
    graph = d3gd.Digraph.from_edges(6, [(0, 1), (1, 2), (2, 0), (0, 3), (3, 4), (4, 5)])
    with pytest.raises(d3gd.D3GDError, match="agent 0 cannot be reached from agent 3"):
        d3gd.run(DIDGD, graph, QUADRATIC, iterations=5)
