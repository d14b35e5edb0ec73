"""Single precision: models keep it and converge to the limit of double precision."""

import numpy as np
import pytest

import d3gd
from d3gd.network import Network
from d3gd.state import flatten
from tests.helpers.methods import advance, every_method

ALGORITHMS = {
    "DiDGD": d3gd.DiDGD(step_size=0.1),
    **{f"D3GD {rule}": d3gd.D3GD(step_size=0.1, rule=rule) for rule in ("decentralized", "global", "exact")},
    **{f"PerronD3GD {rule}": d3gd.PerronD3GD(step_size=0.1, rule=rule) for rule in ("mixing", "planned", "fixed")},
    "FROST": d3gd.FROST(step_size=0.05),
    "PushPull": d3gd.PushPull(step_size=0.05),
}
EVERY = every_method(0.05)


def setting(features=10):
    graph = d3gd.graphs.erdos_renyi(6, 0.5, seed=1)
    return graph, d3gd.problems.sigmoid_classification(agents=6, samples=20, features=features, seed=1)


class Watched(Network):
    """Notes the precision of whatever is sent that is as long as a model."""

    def exchange(self, **arrays):
        self.noted = self.__dict__.get("noted", []) + [a.dtype for a in arrays.values() if np.shape(a)[1:] == (100,)]
        return super().exchange(**arrays)


def single_network(algorithm):
    graph = d3gd.graphs.grid(2, 3) if algorithm.needs == "undirected links" else setting()[0]
    return Watched(graph, d3gd.weights.metropolis(graph), dtype=np.float32)


@pytest.mark.parametrize("name", EVERY)
def test_models_and_messages_stay_in_single_precision(name):
    problem, algorithm = setting()[1], EVERY[name]
    net = single_network(algorithm)
    s = algorithm.init(net, np.zeros((6, problem.dim), dtype=np.float32))
    for k in range(20):
        s = advance(algorithm, net, problem, s, k)
        assert algorithm.point(s).dtype == np.float32
    assert {*net.__dict__.get("noted", [])} <= {np.dtype(np.float32)}


@pytest.mark.parametrize("features", [2, 10])  # models of 20 numbers, which are their own sketch, and of 100
@pytest.mark.parametrize("name", EVERY)
def test_whatever_a_method_remembers_keeps_the_precision_it_begins_with(name, features):
    # or else a state that is loaded would not go on as the one that was saved
    problem, algorithm = setting(features)[1], EVERY[name]
    net = single_network(algorithm)
    s = algorithm.init(net, np.zeros((6, problem.dim), dtype=np.float32))
    began = {name: array.dtype for name, array in flatten(s).items()}
    for k in range(60):  # long enough for a plan and an epoch
        s = advance(algorithm, net, problem, s, k)
        now = {name: array.dtype for name, array in flatten(s).items()}
        assert began.items() <= now.items()
        assert {now[name] for name in now.keys() - began.keys()} <= {np.dtype(np.float32)}  # copies of messages


@pytest.mark.parametrize("name", ALGORITHMS)
def test_models_agree_with_double_precision_and_their_numbers_cost_half(name):
    graph, problem = setting()
    single, double = (
        d3gd.run(ALGORITHMS[name], graph, problem, iterations=40, every=40, dtype=dtype)
        for dtype in ("float32", "float64")
    )
    assert single.x.dtype == np.float32
    np.testing.assert_allclose(single.x, double.x, atol=2e-4 * np.abs(double.x).max())
    assert single.metrics["stationarity"].dtype == np.float64
    vectors = {"D3GD decentralized": 3, "FROST": 2, "PushPull": 2}.get(name, 1)  # as long as models, per link
    spared = double.metrics["bytes"][-1] - single.metrics["bytes"][-1]
    assert spared == 40 * graph.link_count * vectors * 4 * problem.dim


def test_a_resumed_run_keeps_its_precision(tmp_path):
    graph, problem = setting()
    whole = d3gd.run(ALGORITHMS["DiDGD"], graph, problem, iterations=20, dtype="float32")
    arguments = {"dtype": "float32", "out": tmp_path / "run", "checkpoint_every": 5}
    d3gd.run(ALGORITHMS["DiDGD"], graph, problem, iterations=10, **arguments)
    resumed = d3gd.run(ALGORITHMS["DiDGD"], graph, problem, iterations=20, resume=True, **arguments)
    assert resumed.x.dtype == np.float32
    np.testing.assert_array_equal(resumed.x, whole.x)
    with pytest.raises(d3gd.D3GDError, match="another experiment"):
        d3gd.run(ALGORITHMS["DiDGD"], graph, problem, iterations=30, resume=True, out=tmp_path / "run")


def test_other_precisions_are_refused():
    graph, problem = setting()
    with pytest.raises(d3gd.D3GDError, match="float16"):
        d3gd.run(ALGORITHMS["DiDGD"], graph, problem, iterations=1, dtype="float16")
