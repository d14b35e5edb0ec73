"""Compressed messages: the limit, what is conserved, bytes, ranks, and what does not fit."""

import numpy as np
import pytest

import d3gd
from d3gd.distributed.compressors import TopK
from d3gd.errors import SettingsError
from d3gd.transports.threads import on_threads
from tests.helpers.methods import advance
from tests.helpers.stepping import network, random_network

DIRECTED, UNDIRECTED = d3gd.graphs.exponential(6), d3gd.graphs.grid(2, 3)
EXACT = [
    d3gd.PerronD3GD(step_size=0.1),
    d3gd.PerronD3GD(step_size=0.1, rule="planned"),
    d3gd.PerronD3GD(step_size=0.1, rule="fixed"),
    d3gd.FRSD(step_size=0.1),
    d3gd.FROST(step_size=0.05),
    d3gd.FROST(step_size=0.02, rule="fixed", combine="before", perron="tracked"),
    d3gd.PushPull(step_size=0.05),
    d3gd.PushDIGing(step_size=0.05),
    d3gd.RFAST(step_size=0.05),
    d3gd.EXTRA(step_size=0.1),
    d3gd.ExactDiffusion(step_size=0.1),
    d3gd.DIGing(step_size=0.05, combine="before"),
    d3gd.DIGing(step_size=0.05, combine="both"),
    d3gd.Local(method=d3gd.PerronD3GD(step_size=0.03), every=4),
    d3gd.Local(method=d3gd.PushPull(step_size=0.02), every=4, optimizer=d3gd.Momentum(momentum=0.5)),
]
NO_LAG = (d3gd.EXTRA, d3gd.ExactDiffusion)  # refused under damping


class Halves:
    """A compressor of one's own: the half of the numbers that is larger, as signs times their mean size."""

    damping = 0.25

    def encode(self, rows):
        half = -(-rows.shape[1] // 2)
        places = np.argsort(-np.abs(rows), axis=1, kind="stable")[:, :half]
        large = np.take_along_axis(rows, places, axis=1)
        size = np.abs(large).mean(axis=1, keepdims=True).astype(np.float64)
        return np.hstack([size.view(np.uint8), places.astype(np.uint8), (large > 0).astype(np.uint8)])

    def decode(self, message, width):
        half = -(-width // 2)
        size = np.ascontiguousarray(message[:, :8]).view(np.float64)
        rows = np.zeros((len(message), width))
        signs = 2.0 * message[:, 8 + half :] - 1
        np.put_along_axis(rows, message[:, 8 : 8 + half].astype(int), size * signs, axis=1)
        return rows


COMPRESSORS = ["int8", "int4", "bf16", "topk:0.2", Halves()]


def named(value):
    return type(value).__name__ if not isinstance(value, str) else value


@pytest.mark.parametrize("compress", COMPRESSORS, ids=named)
@pytest.mark.parametrize("method", EXACT, ids=[f"{i}-{type(m).__name__}" for i, m in enumerate(EXACT)])
def test_exact_methods_stay_exact(method, compress):
    graph = UNDIRECTED if method.needs == "undirected links" else DIRECTED
    quadratics = d3gd.problems.quadratic(agents=6, dim=10, seed=1, conditioning=3)
    small = d3gd.Compressed(method=method, compress=compress)
    assert small.exact
    goal = {"stationarity": 1e-22}
    run = {"iterations": 3000, "every": 50, "metrics": list(goal), "target": goal}
    if isinstance(method, NO_LAG) and compress not in ("int8", "int4", "bf16"):
        with pytest.raises(SettingsError, match="unstable if copies lag behind"):
            d3gd.run(small, graph, quadratics, **run)
        return
    result = d3gd.run(small, graph, quadratics, **run)
    assert abs(result.x - quadratics.optimum).max() < 1e-9


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("compress", ["int8", "int4", "topk:0.2"])
def test_sums_are_conserved_at_every_iteration(compress, dtype):
    graph, weights = random_network(1)
    quadratics = d3gd.problems.quadratic(agents=6, dim=10, seed=1)
    methods = (d3gd.PerronD3GD, d3gd.FROST, d3gd.PushPull, d3gd.PushDIGing, d3gd.RFAST)
    for method in methods:
        small = d3gd.Compressed(method=method(step_size=0.02), compress=compress)
        net = network(small, graph, weights, dtype=dtype)
        s = small.init(net, np.zeros((6, 10), dtype=dtype))
        pi = d3gd.weights.perron(graph.matrix(small.weights(net, s)))
        for k in range(15):
            g = quadratics.gradients(small.point(s)).astype(dtype)
            s = advance(small, net, quadratics, s, k)
            inner = s.method
            if method is d3gd.PerronD3GD:
                found, wanted = pi @ inner.v, 0.0
            elif method is d3gd.FROST:
                found, wanted = pi @ inner.tracker.mixed, g.sum(axis=0)
            elif method is d3gd.RFAST:
                unread = inner.sent.total[graph.sources].astype(np.float64) - inner.sent.seen
                found = inner.tracker.mixed.sum(axis=0) + unread[graph.sources != graph.targets].sum(axis=0)
                wanted = g.sum(axis=0, dtype=np.float64)
            else:
                found, wanted = inner.tracker.mixed.sum(axis=0), g.sum(axis=0)
            np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-10 if dtype == np.float64 else 1e-4)


def test_by_hand():
    """Copies, what is withheld, and mixing, as the docstring has them."""
    graph, weights = random_network(2)
    quadratics = d3gd.problems.quadratic(agents=6, dim=10, seed=1)
    method = d3gd.DiDGD(step_size=0.1, perron="known")
    small = d3gd.Compressed(method=method, compress="topk:0.3", damping=0.4)
    A, pi = weights.toarray(), d3gd.weights.perron(weights)[:, None]
    A = 0.6 * np.eye(6) + 0.4 * A
    by, x, copies = TopK(0.3), np.zeros((6, 10)), np.zeros((6, 10))
    for _ in range(8):
        copies = copies + by.decode(by.encode(x - copies), 10)
        x = A @ copies + x - copies - 0.1 / (6 * pi) * quadratics.gradients(x)
    result = d3gd.run(small, graph, quadratics, iterations=8, weights=weights)
    np.testing.assert_allclose(result.x, x, rtol=0, atol=1e-12)
    np.testing.assert_allclose(result.weights.toarray(), A, rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("method", "compress", "per_link"),
    [
        (d3gd.PerronD3GD(step_size=0.1, perron="known"), "int8", 300 + 8),
        (d3gd.PerronD3GD(step_size=0.1, perron="known"), "bf16", 600),
        (d3gd.PerronD3GD(step_size=0.1, perron="known"), "topk:0.01", 3 * 8),
        (d3gd.DiDGD(step_size=0.1), "int8", 300 + 8 + 6 * 8),  # Perron trackers travel as they are
        (d3gd.PushDIGing(step_size=0.01), "int8", 2 * (300 + 8) + 8),  # and so does mass
    ],
    ids=str,
)
def test_bytes_are_counted_as_they_are_sent(method, compress, per_link):
    quadratics = d3gd.problems.quadratic(agents=6, dim=300)
    small = d3gd.Compressed(method=method, compress=compress)
    result = d3gd.run(small, DIRECTED, quadratics, iterations=3, every=1, metrics=["bytes"])
    assert np.diff(result.metrics["bytes"]).tolist() == [DIRECTED.link_count * per_link] * 3


def test_ranks_send_what_is_counted():
    """With one agent per rank, the bytes that went from rank to rank are those of the metric."""
    quadratics = d3gd.problems.quadratic(agents=6, dim=300)
    small = d3gd.Compressed(method=d3gd.PushPull(step_size=0.01), compress="int8")

    def rank(transport):
        net = d3gd.network.Network(
            DIRECTED, d3gd.weights.metropolis(DIRECTED), transport=transport, needs="out-degrees"
        )
        s = small.init(net, np.zeros((1, 300)))
        found = net.bytes_sent
        for k in range(4):
            s = advance(small, net, quadratics.restrict(net.agents), s, k)
        return transport.each(np.array([net.bytes_sent, net.halo.wire_bytes, found])).sum(axis=0)

    counted, sent, found = on_threads(6, rank)[0]
    assert counted == sent == found + 4 * DIRECTED.link_count * 2 * (300 + 8)


@pytest.mark.parametrize("method", [d3gd.PerronD3GD, d3gd.FROST, d3gd.QGMomentum])
def test_agents_discover_the_weights_as_they_are_before_damping(method):
    graph, weights = random_network(3)
    quadratics = d3gd.problems.quadratic(agents=6, dim=10, seed=1)
    known, discovered = (
        d3gd.Compressed(method=method(step_size=0.05, rule="fixed", perron=perron), compress="topk:0.3")
        for perron in ("known", "discovered")
    )
    ends = [d3gd.run(small, graph, quadratics, iterations=8, weights=weights) for small in (known, discovered)]
    assert np.array_equal(ends[0].x, ends[1].x)
    assert np.array_equal(ends[0].weights.data, ends[1].weights.data)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_runs_are_equal_on_any_ranks_and_resumed_on_others(dtype, tmp_path):
    method = d3gd.Local(method=d3gd.PerronD3GD(step_size=0.03), every=2)
    small = d3gd.Compressed(method=method, compress="topk:0.3")
    noisy = d3gd.problems.digits_classification(agents=6, batch=8, alpha=0.1)
    run = {"algorithm": small, "graph": DIRECTED, "problem": noisy, "dtype": dtype, "metrics": ["bytes"]}
    whole = d3gd.run(**run, iterations=12)
    for count in (2, 6):
        for result in on_threads(count, lambda rank: d3gd.run(**run, iterations=12, transport=rank)):
            assert np.array_equal(result.x, whole.x)
    on_threads(2, lambda rank: d3gd.run(**run, iterations=7, transport=rank, out=tmp_path / "run"))
    resumed = on_threads(
        3, lambda rank: d3gd.run(**run, iterations=12, transport=rank, out=tmp_path / "run", resume=True)
    )[0]
    assert np.array_equal(resumed.x, whole.x)
    assert resumed.metrics["bytes"][-1] == whole.metrics["bytes"][-1]


@pytest.mark.parametrize("compress", ["int8", "topk:0.4", Halves()], ids=named)
def test_it_is_a_method_like_any_other(compress):
    report = d3gd.check_method(d3gd.Compressed(method=d3gd.FROST(step_size=0.05), compress=compress), show=False)
    assert report.passed, str(report)


def test_mistakes_are_told():
    perron = d3gd.PerronD3GD(step_size=0.1)
    for make, message in [
        (lambda: d3gd.Compressed(method=None), "method is NoneType"),
        (lambda: d3gd.Compressed(method=d3gd.Compressed(method=perron)), "method is Compressed"),
        (lambda: d3gd.Compressed(method=d3gd.Centralized(step_size=0.1)), "sees all agents' values"),
        (lambda: d3gd.Compressed(method=perron, compress="zip"), "compress = 'zip'"),
        (lambda: d3gd.Compressed(method=perron, damping=0.0), "damping = 0"),
        (lambda: d3gd.Local(method=d3gd.Compressed(method=perron), every=2), r"Compressed\(method=d3gd.Local"),
    ]:
        with pytest.raises(SettingsError, match=message):
            make()
    quadratics = d3gd.problems.quadratic(agents=6, dim=3)
    small, biased = d3gd.Compressed(method=perron), d3gd.Conditions(loss=0.1, biased=True)
    with pytest.raises(d3gd.D3GDError, match="receivers adding up all that was sent"):
        d3gd.run(small, DIRECTED, quadratics, iterations=3, conditions=d3gd.Conditions(loss=0.1))
    with pytest.raises(SettingsError, match="need every message to arrive at once"):
        d3gd.run(small, DIRECTED, quadratics, iterations=3, conditions=biased)
    pruned = d3gd.Compressed(method=d3gd.ACGT(step_size=0.1))
    with pytest.raises(SettingsError, match="a method prunes links"):
        d3gd.run(pruned, d3gd.graphs.complete(6), quadratics, iterations=3)


def test_what_a_method_needs_is_said_of_it_and_not_of_what_is_around_it():
    local = d3gd.Local(method=d3gd.EXTRA(step_size=0.1), optimizer=d3gd.Momentum())
    for algorithm in (local, d3gd.Compressed(method=local, compress="int8")):
        with pytest.raises(d3gd.errors.GraphError, match="EXTRA needs undirected links"):
            d3gd.run(algorithm, d3gd.graphs.ring(4), d3gd.problems.quadratic(agents=4, dim=2), iterations=1)
