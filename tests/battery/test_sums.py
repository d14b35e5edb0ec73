"""What a method conserves, it conserves at every iteration."""

import numpy as np
import pytest

import d3gd
from tests.battery.cases import GRAPHS, METHODS, initial_weights, name_of
from tests.battery.textbook.perron import perron
from tests.helpers.methods import advance
from tests.helpers.stepping import network, random_network


def _all_alike(a, net, s, after, g, pi):
    yield after.x, np.tile(after.x[0], (len(g), 1))


def _trackers_are_averages(a, net, s, after, g, pi):
    yield after.Y.sum(axis=1) if a.perron == "tracked" else after.Y.sum(), 1


def _mean_follows_gradients(a, net, s, after, g, pi):
    yield after.x.sum(axis=0), (s.x - a.step_size * g).sum(axis=0)


def _weighted_trackers(a, net, s, after, g, pi):
    yield (pi @ after.Y if a.perron == "tracked" else after.Y[:, 0]), pi


def _tracked_gradients(a, net, s, after, g, pi):
    yield after.tracker.mixed.sum(axis=0), g.sum(axis=0)  # a state keeps mixed trackers, and mixing keeps their sum


def _weighted_gradients(a, net, s, after, g, pi):
    yield pi @ after.tracker.mixed, pi @ (g / a.scale(net, s)[:, None])


def _corrections_cancel(a, net, s, after, g, pi):
    if a.perron == "tracked":
        yield pi @ after.v, 0  # whatever y does
        yield pi @ after.rule.Y, pi
    else:
        yield a.scale(net, after) @ after.v, 0  # also when a plan has changed the weights


def _mass(a, net, s, after, g, pi):
    yield after.mass.w.sum(), len(g)
    yield net.reduce(after.mass.a), 1


def _pushed(a, net, s, after, g, pi):
    yield from _mass(a, net, s, after, g, pi)
    yield after.u.sum(axis=0), (s.u - a.step_size * g).sum(axis=0)


def _pushed_and_tracked(a, net, s, after, g, pi):
    yield from _mass(a, net, s, after, g, pi)
    yield from _tracked_gradients(a, net, s, after, g, pi)


def _running_sums(a, net, s, after, g, pi):
    unread = after.sent.total[net.given.graph.sources].astype(np.float64) - after.sent.seen
    yield after.tracker.mixed.sum(axis=0) + unread[~net.loops].sum(axis=0), g.sum(axis=0)


def _own_shares(a, net, s, after, g, pi):
    yield net.own(after.W), 1 / len(g)


def _mean_follows_momentum(a, net, s, after, g, pi):
    yield pi @ after.x, pi @ s.x - a.step_size * (g.mean(axis=0) + a.momentum * pi @ s.q)


def _corrections_sum_to_zero(a, net, s, after, g, pi):
    yield after.method.tracker.steering.sum(axis=0), 0


def _tracked_momenta(a, net, s, after, g, pi):
    yield after.method.tracker.mixed.sum(axis=0), after.optimizer.m.sum(axis=0)


def _mean_follows_gradients_of_what_is_around(a, net, s, after, g, pi):
    yield after.method.x.sum(axis=0), (s.method.x - a.step_size * g).sum(axis=0)


SUMS = {
    "CHOCO": _mean_follows_gradients_of_what_is_around,
    "KGT": _corrections_sum_to_zero,
    "MomentumTracking": _tracked_momenta,
    "ACGT": _tracked_gradients,
    "Centralized": _all_alike,
    "D3GD": _trackers_are_averages,  # nothing more, since its weights move
    "DGD": _mean_follows_gradients,
    "DiDGD": _weighted_trackers,
    "DIGing": _tracked_gradients,
    "EXTRA": lambda a, net, s, after, g, pi: [(after.m.sum(axis=0), after.x.sum(axis=0, dtype=np.float64))],
    "ExactDiffusion": lambda a, net, s, after, g, pi: [(after.psi.sum(axis=0), after.x.sum(axis=0, dtype=np.float64))],
    "FROST": _weighted_gradients,
    "FRSD": lambda a, net, s, after, g, pi: [(pi @ after.v, 0), (pi @ after.Y, pi)],
    "PerronD3GD": _corrections_cancel,
    "PushDIGing": _pushed_and_tracked,
    "PULMDGD": _own_shares,
    "PushPull": _tracked_gradients,
    "QGAdam": _corrections_cancel,
    "QGMomentum": _mean_follows_momentum,
    "RFAST": _running_sums,
    "SGP": _pushed,
}


# What these conserve must not drift in single precision either: they keep it in double.
IN_DOUBLE = (
    "ACGT",
    "DIGing",
    "EXTRA",
    "ExactDiffusion",
    "FROST",
    "FRSD",
    "PerronD3GD",
    "PushDIGing",
    "PushPull",
    "QGAdam",
    "RFAST",
)
NETWORKS = {
    "random": random_network(1),
    **{
        name: (graph, d3gd.weights.metropolis(graph))
        for name, graph in GRAPHS.items()
        if name in ("ring", "exponential", "grid", "star")
    },
}
CASES = [(name, np.float64, "random") for name in METHODS]
CASES += [(name, np.float32, graph) for name in METHODS if name.split()[0] in IN_DOUBLE for graph in NETWORKS]


@pytest.mark.parametrize(
    ("method", "dtype", "where"), CASES, ids=lambda case: case if isinstance(case, str) else case.__name__
)
def test_sums_are_conserved(method, dtype, where):
    algorithm = METHODS[method]
    assert name_of(algorithm) in SUMS, f"say in SUMS what {name_of(algorithm)} conserves at every iteration"
    graph, weights = NETWORKS[where]
    if algorithm.needs == "undirected links" and not graph.is_undirected:
        graph = GRAPHS["grid"]
        weights = d3gd.weights.metropolis(graph)
    for found, conserved in sums(algorithm, graph, weights, dtype, 60):
        np.testing.assert_allclose(found, np.broadcast_to(conserved, np.shape(found)), rtol=1e-11, atol=1e-11)


def sums(algorithm, graph, weights, dtype, iterations):
    """Yield every sum at every iteration, as found and as it must be."""
    n = graph.n
    problem = d3gd.problems.quadratic(agents=n, dim=3, seed=1)
    net = network(algorithm, graph, weights, dtype=dtype)
    s = algorithm.init(net, np.random.default_rng(0).normal(size=(n, 3)).astype(dtype))
    pi = perron(initial_weights(algorithm, graph, s, weights))
    for k in range(iterations):
        g = net.precise(problem.gradients(algorithm.point(s))).astype(np.float64)
        after = advance(algorithm, net, problem, s, k)
        yield from SUMS[name_of(algorithm)](algorithm, net, s, after, g, pi)
        s = after
