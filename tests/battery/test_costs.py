"""The cost of an iteration, without a clock: exchanges, bytes, allocations, and no dense matrix of large networks."""

import contextlib
import tracemalloc

import numpy as np
import pytest

import d3gd
from d3gd.algorithms.catalogue import methods, variants
from d3gd.distributed.traffic import Traffic
from d3gd.errors import D3GDError
from d3gd.network import Network
from tests.helpers.methods import advance

ALL = [
    pytest.param(method, choice, id="-".join([name, *choice.values()]))
    for name, method in methods().items()
    for choice in variants(method)
]


class Counting(Network):
    """Counts exchanges."""

    exchanges = 0

    def exchange(self, **arrays):
        self.exchanges += 1
        return super().exchange(**arrays)


def stepped(method, n, d, iterations=1, choice=None):
    """A network and the state after some iterations on undirected links with distance problems."""
    graph = d3gd.graphs.grid(n // 4, 4, torus=True)
    problem = d3gd.problems.quadratic(agents=n, dim=d)
    algorithm = method(step_size=0.01, **(choice or {}))
    net = Counting(graph, d3gd.weights.metropolis(graph), needs=algorithm.needs)
    s = algorithm.init(net, np.zeros((n, d)))
    net.traffic = Traffic(net.traffic.links)  # a survey is no part of an iteration
    for k in range(iterations):
        s = advance(algorithm, net, problem, s, k)
    return net, s


# These send on at once what they compute from what arrived, so that they wait for their neighbours twice; AC-GT only in
# the first iteration of a cycle, and there three times.
TWO_ROUNDS = {("DIGing", "both"), ("ACGT",)}


@pytest.mark.parametrize(("method", "choice"), ALL)
def test_every_method_sends_one_message_per_link_and_iteration(method, choice):
    net, _ = stepped(method, 12, 3, iterations=4, choice=choice)
    rounds = 2 if (method.__name__, *choice.values()) in TWO_ROUNDS else 1
    assert net.exchanges <= 4 * rounds
    assert net.exchanges > 4 * (rounds - 1) or method.__name__ == "Centralized"


@pytest.mark.parametrize(
    ("method", "choice"),
    [(d3gd.DiDGD, {}), (d3gd.DiDGD, {"perron": "known"}), (d3gd.DGD, {"combine": "before"}), (d3gd.EXTRA, {})],
)
def test_what_needs_no_gradient_is_sent_before_there_is_one(method, choice):
    graph, sent = d3gd.graphs.complete(3), []
    net = Counting(graph, d3gd.weights.metropolis(graph))
    algorithm = method(step_size=0.01, **choice)

    def gradient():
        sent.append(net.exchanges)
        return np.zeros((3, 2))

    algorithm.step(net, gradient, algorithm.init(net, np.zeros((3, 2))), 0)
    assert sent == [1]


@pytest.mark.parametrize(
    ("method", "choice", "numbers"),
    [
        (d3gd.DiDGD, {}, lambda n, d: d + n),
        (d3gd.DiDGD, {"perron": "known"}, lambda n, d: d),
        (d3gd.D3GD, {}, lambda n, d: 3 * d + n),
        (d3gd.D3GD, {"perron": "known"}, lambda n, d: 3 * d),
        (d3gd.D3GD, {"rule": "global"}, lambda n, d: d + n),
        (d3gd.PerronD3GD, {}, lambda n, d: d),
        (d3gd.PerronD3GD, {"rule": "fixed"}, lambda n, d: d),
        (d3gd.PerronD3GD, {"rule": "fixed", "perron": "tracked"}, lambda n, d: d + n + 1),
        (d3gd.PerronD3GD, {"rule": "planned"}, lambda n, d: d),  # in an iteration without a flood
        (d3gd.QGMomentum, {}, lambda n, d: d),
        (d3gd.QGAdam, {}, lambda n, d: 2 * d),
        (d3gd.FROST, {}, lambda n, d: 2 * d),
        (d3gd.FROST, {"perron": "tracked"}, lambda n, d: 2 * d + n),
        (d3gd.PushPull, {}, lambda n, d: 2 * d),
        (d3gd.RFAST, {}, lambda n, d: 2 * d),
        (d3gd.FRSD, {}, lambda n, d: d + n),
        (d3gd.PULMDGD, {}, lambda n, d: d + n),
    ],
)
def test_bytes_per_link(method, choice, numbers):
    for n, d in ((8, 3), (12, 5)):
        net, _ = stepped(method, n, d, choice=choice)
        assert net.bytes_sent == net.given.graph.link_count * 8 * numbers(n, d)


# An array of models is one unit. What a step makes is its new state, what it sends, and pieces.
UNITS = {
    d3gd.DiDGD: 1,  # x
    d3gd.PerronD3GD: 3,  # what is sent, x, v
    d3gd.D3GD: 6,  # q to send, x, z, q; for the weights, the tracked gradient and v
}


@pytest.mark.parametrize("method", UNITS)
def test_a_step_of_1000_agents_allocates_its_new_state_and_little_else(method):
    n, d = 1000, 400
    graph = d3gd.graphs.regular(n, 10, seed=0)
    choice = {"rule": "fixed"} if method is d3gd.PerronD3GD else {"perron": "known"}
    algorithm, net = method(step_size=0.1, **choice), Network(graph, d3gd.weights.metropolis(graph))
    rng = np.random.default_rng(0)
    x0, g = rng.normal(size=(2, n, d))
    s = algorithm.step(net, lambda: g, algorithm.init(net, x0), 0)
    tracemalloc.start()
    try:
        s = algorithm.step(net, lambda: g, s, 1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    edges = graph.sources.size * 8
    assert peak <= (UNITS[method] + 0.3) * x0.nbytes + 8 * edges
    assert algorithm.point(s).nbytes == x0.nbytes


@pytest.mark.parametrize(("method", "choice"), ALL)
def test_above_2000_agents_nothing_dense_is_made_or_the_way_out_is_named(method, choice):
    n = 3000
    graph = d3gd.graphs.grid(n // 50, 50, torus=True)
    algorithm = method(step_size=0.01, **choice)
    weights = d3gd.weights.metropolis(graph)
    targets = np.ones((n, 2))
    net = Network(graph, weights, needs=algorithm.needs)
    refused = contextlib.nullcontext()
    vectors = choice.get("perron") in ("tracked", "discovered") or method in (d3gd.FRSD, d3gd.PULMDGD)
    if vectors or choice.get("rule") == "planned":
        refused = pytest.raises(D3GDError, match='perron="known"')
    tracemalloc.start()
    try:
        with refused:
            s = algorithm.init(net, np.zeros((n, 2)))
            for k in range(2):
                here = algorithm.point(s)
                s = algorithm.step(net, lambda x=here, *, draw="new": x - targets, s, k)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < n * n  # bytes: an n x n array of flags would already be too much


def test_agents_on_many_ranks_may_keep_n_vectors():
    class Part(Network):
        def __init__(self, graph, weights):
            super().__init__(graph, weights)
            self.agents = self.agents[:1000]

    graph = d3gd.graphs.ring(3000)
    weights = d3gd.weights.uniform(graph)
    assert Part(graph, weights).eye().shape == (1000, 3000)
    with pytest.raises(D3GDError, match="perron="):
        Network(graph, weights).eye()
