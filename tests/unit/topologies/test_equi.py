"""EquiTopo: means over all draws, in closed form."""

from itertools import product as pairs_of

import numpy as np
import pytest

from d3gd.errors import GraphError
from d3gd.topologies import equi_one_peer, equi_static
from d3gd.topologies.base import shifted
from d3gd.topologies.equi import paired
from tests.helpers.mixing import doubly_stochastic, left, product

RATIOS = [0.25, 0.5, 0.8]


def test_the_mean_of_all_shifts_of_equitopo_is_the_average():
    n, ratio = 7, 0.3
    steps = equi_one_peer(n, length=500, ratio=ratio, seed=1)
    doubly_stochastic(steps)
    shifts = {tuple(step.graph.edges[:, 0].tolist()): step.weights.toarray() for step in steps}
    assert len(shifts) == n - 1
    basis = [(W - (1 - ratio) * np.eye(n)) / ratio for W in shifts.values()]
    assert np.allclose(np.mean(basis, axis=0), 1 / n, atol=1e-12)
    assert np.allclose(product(steps), 1 / n, atol=1e-6)
    assert [step.graph.edges.tolist() for step in equi_one_peer(n, seed=3)] == [
        step.graph.edges.tolist() for step in equi_one_peer(n, seed=3)
    ]


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("n", [3, 8, 30, 101])
def test_the_expected_rate_one_way_has_a_closed_form_and_a_bound_without_n(n, ratio):
    draws = [shifted(n, shift, ratio * (n - 1) / n).weights.toarray() for shift in range(1, n)]
    share = left(draws)
    assert share == pytest.approx(1 - 2 * ratio + 2 * ratio**2 * (n - 1) / n, abs=1e-12)
    assert share <= 1 - 2 * ratio * (1 - ratio)


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("n", [3, 4, 6, 9, 16, 25])
def test_the_expected_rate_in_pairs_has_a_bound_without_n(n, ratio):
    draws = [paired(n, shift, start, ratio * (n - 1) / n) for shift in range(1, n) for start in range(n)]
    doubly_stochastic(draws)
    assert left([step.weights.toarray() for step in draws]) <= 1 - 4 / 3 * ratio * (1 - ratio)


@pytest.mark.parametrize("n", [2, 7, 12])
def test_in_pairs_nobody_exchanges_with_two_and_no_free_neighbours_are_left(n):
    steps = equi_one_peer(n, length=60, ratio=0.4, undirected=True, seed=2)
    doubly_stochastic(steps)
    for step in steps:
        W = step.weights.toarray()
        assert np.array_equal(W, W.T)
        links = W - np.diag(np.diag(W))
        assert set(np.count_nonzero(links, axis=1)) <= {0, 1}
        assert links[links > 0] == pytest.approx(0.4 * (n - 1) / n)
        source, target = step.graph.edges[0]
        shift = abs(int(target) - int(source))
        free = np.flatnonzero(~links.any(axis=1))
        assert not {(one + by) % n for one in free for by in (shift, n - shift)} & set(free.tolist())
    assert len({tuple(step.graph.edges[:, 0].tolist()) for step in steps}) > min(1, n - 2)
    assert np.allclose(product(steps), 1 / n, atol=1e-3)


@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize(("n", "degree"), [(2, 1), (9, 3), (40, 5), (5, 30)])
def test_static_weights_are_doubly_stochastic_on_few_links(n, degree, undirected):
    topology = equi_static(n, degree, undirected=undirected, seed=4)
    doubly_stochastic([topology])
    W = topology.weights.toarray()
    assert np.diag(W) == pytest.approx(1 / n)
    assert topology.graph.in_degrees.max() <= degree * (2 if undirected else 1)
    assert len(set(topology.graph.in_degrees)) == 1
    if undirected:
        assert np.array_equal(W, W.T)
        one_way = equi_static(n, degree, seed=4).weights.toarray()
        assert np.allclose(W, (one_way + one_way.T) / 2, atol=1e-15)


@pytest.mark.parametrize("n", [5, 11])
def test_the_mean_over_all_draws_of_two_static_shifts_leaves_what_the_closed_form_says(n):
    basis = {shift: shifted(n, shift, (n - 1) / n).weights.toarray() for shift in range(1, n)}
    draws = [(basis[u] + basis[v]) / 2 for u, v in pairs_of(basis, basis)]
    assert left(draws) == pytest.approx((n - 2) / (2 * n), abs=1e-12)


@pytest.mark.parametrize("n", [10, 100, 400])
def test_drawn_static_weights_mix_at_a_rate_that_does_not_depend_on_n(n):
    # The mean over all directions: a sum of squared eigenvalues of W - J, over n - 1 of them.
    found = [np.sum((equi_static(n, 8, seed=seed).weights.toarray() - 1 / n) ** 2) / (n - 1) for seed in range(60)]
    assert np.mean(found) == pytest.approx((n - 2) / (8 * n), rel=0.1)


@pytest.mark.parametrize(
    "call",
    [
        lambda: equi_static(1, 1),
        lambda: equi_static(5, 0),
        lambda: equi_static(100_000, 100_000),
        lambda: equi_one_peer(5, length=0),
    ],
)
def test_what_cannot_be_is_refused(call):
    with pytest.raises(GraphError):
        call()
