"""Weights for mixing on large networks: the derivative by flows, balance, and what a plan brings."""

import numpy as np
import pytest

import d3gd
from d3gd.spectrum import perron, spectral_gap
from d3gd.steady import flows
from d3gd.steady.fast import fast_weights
from d3gd.steady.planner import PLANNED_UP_TO
from d3gd.transports.threads import on_threads
from d3gd.weights import balanced

CYCLE = [(0, 3), (3, 4), (4, 1), (1, 2), (2, 0)]  # source, target
CHORDS = d3gd.Digraph.from_edges(6, [*((i, (i + 1) % 6) for i in range(6)), *CYCLE])


def cost(F, draw):
    """The logarithm of the noise of a circulation, by dense matrices."""
    n, pi = len(F), F.sum(axis=1)
    A, X, J = F / pi[:, None], np.diag(1 / (n * pi)) @ flows._signs(n, draw), np.eye(n) - 1 / n
    powers = (np.linalg.matrix_power(A, k) for k in range(1, flows._TERMS + 1))
    return np.log(sum(np.sum((J @ P @ X) ** 2) for P in powers))


def test_the_derivative_by_flows_is_that_along_every_cycle():
    """Flows along a cycle keep the balance; they change shares and weights."""
    flow = balanced(CHORDS).data / 6
    slope = CHORDS.matrix(flows._slope(CHORDS, flow, np.full(6, 1 / 6), 3)).toarray()
    F, step = CHORDS.matrix(flow).toarray(), 1e-6
    for cycle in (CYCLE, [(i, (i + 1) % 6) for i in range(6)], [(2, 2)]):
        along = np.zeros((6, 6))
        for source, target in cycle:
            along[target, source] = 1
        expected = (cost(F + step * along, 3) - cost(F - step * along, 3)) / (2 * step)
        assert np.sum(slope * along) == pytest.approx(expected, rel=1e-5)


def joined(side):
    """Two exponential networks, joined by a link each way."""
    one = d3gd.graphs.exponential(side)
    links = np.column_stack([one.sources, one.targets])[one.sources != one.targets]
    return d3gd.Digraph.from_edges(2 * side, [*links.tolist(), *(links + side).tolist(), (0, side), (side, 0)])


def noise(A):
    """The variance of deviations that white noise in gradients causes, by a sum that doubles."""
    A = A.toarray()
    n, pi = len(A), perron(A)
    B, P = A - pi, np.diag(1 / (n * pi) ** 2)
    P = B @ P @ B.T
    for _ in range(14):
        P, B = P + B @ P @ B.T, B @ B
    return np.trace(P) - P.sum() / n


@pytest.mark.parametrize(
    ("graph", "faster", "quieter"),
    [
        (joined(155), 2.0, 2.0),
        (d3gd.graphs.star(310), 5.0, 5.0),
        (d3gd.graphs.random_geometric(310, 0.11, seed=0), 1.5, 1.2),
    ],
    ids=["bridge", "star", "geometric"],
)
def test_above_300_agents_weights_mix_faster_than_balanced_ones_at_nearly_equal_shares(graph, faster, quieter):
    assert graph.n > PLANNED_UP_TO
    A, before = graph.matrix(fast_weights(graph)), balanced(graph)
    assert (A.data > 0).all()
    assert A.sum(axis=1) == pytest.approx(1)
    assert graph.n * perron(A).min() >= 0.79
    assert spectral_gap(A) >= faster * spectral_gap(before)
    assert noise(A) <= noise(before) / quieter
    assert np.array_equal(fast_weights(graph), A.data)  # so that all agents choose the same


def test_where_balanced_weights_mix_fast_they_stay():
    graph = d3gd.graphs.erdos_renyi(PLANNED_UP_TO + 1, 0.05, seed=0)
    assert np.array_equal(fast_weights(graph), balanced(graph).data)


def test_ranks_choose_the_weights_of_one_process():
    """Above 600 agents the gain, too, comes from sparse products."""
    graph = d3gd.graphs.grid(25, 25)
    problem = d3gd.problems.quadratic(agents=graph.n, dim=2)
    run = {"algorithm": d3gd.PerronD3GD(step_size=0.1), "graph": graph, "problem": problem, "iterations": 5}
    whole = d3gd.run(**run)
    assert not np.array_equal(whole.weights.data, balanced(graph).data)
    for result in on_threads(2, lambda transport: d3gd.run(**run, transport=transport)):
        assert np.array_equal(result.x, whole.x)
        assert np.array_equal(result.weights.data, whole.weights.data)
        assert result.metrics["bytes"][-1] == whole.metrics["bytes"][-1]


def test_a_plan_that_does_not_balance_is_dropped(monkeypatch):
    monkeypatch.setattr(flows, "_SWEEPS", 1)
    monkeypatch.setattr(flows, "_LAST_SWEEPS", 1)
    graph = d3gd.graphs.grid(18, 18)
    assert np.array_equal(fast_weights(graph), balanced(graph).data)
