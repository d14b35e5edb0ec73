"""The operations, each against its dense meaning."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import d3gd
from d3gd.network import Network
from tests.helpers.stepping import seven_agents
from tests.helpers.strategies import digraphs


def sent(net, x):
    """What the network's agents receive of rows x."""
    return net.exchange(x=x).x


networks = digraphs(min_n=7, max_n=7).map(lambda graph: (graph, Network(graph, d3gd.weights.metropolis(graph))))
rngs = st.integers(0, 1000).map(np.random.default_rng)


@given(networks, rngs)
def test_mix_is_the_matrix_product(case, rng):
    graph, net = case
    a, x = rng.normal(size=graph.sources.size), rng.normal(size=(7, 3))
    np.testing.assert_allclose(net.mix(a, sent(net, x)), graph.matrix(a).toarray() @ x, atol=1e-13)
    # Whatever was mixed before, the next weights alone decide.
    other = Network(graph, graph.matrix(net.a0))
    np.testing.assert_array_equal(net.mix(net.a0, sent(net, x)), other.mix(net.a0, sent(other, x)))


@given(networks, rngs)
def test_mixed_rows_do_not_depend_on_agents_they_do_not_hear(case, rng):
    graph, net = case
    x = rng.normal(size=(7, 3))
    other = x.copy()
    other[3] += 1
    deaf = graph.matrix(np.ones(graph.sources.size)).toarray()[:, 3] == 0
    assert np.array_equal(net.mix(net.a0, sent(net, x))[deaf], net.mix(net.a0, sent(net, other))[deaf])


@given(networks, rngs)
def test_dot_is_one_inner_product_per_edge(case, rng):
    graph, net = case
    v, x, o = rng.normal(size=(3, 7, 4))
    values = net.dot(v, sent(net, x), origin=o)
    expected = [v[i] @ (x[j] - o[i]) for i, j in zip(graph.targets, graph.sources, strict=True)]
    np.testing.assert_allclose(values, expected, atol=1e-13)


def test_dot_is_bitwise_the_same_in_pieces(monkeypatch):
    _graph, net = seven_agents(5)
    v, x, o = np.random.default_rng(0).normal(size=(3, 7, 4))
    whole = net.dot(v, sent(net, x), o)
    for numbers in (1, 7, 20):
        monkeypatch.setattr("d3gd.kernels.plain._GATHERED", numbers)
        assert np.array_equal(net.dot(v, sent(net, x), o), whole)


@given(networks, rngs)
def test_reduce_and_spread_are_adjoint(case, rng):
    graph, net = case
    edges, values = rng.normal(size=graph.sources.size), rng.normal(size=7)
    assert net.reduce(edges) @ values == pytest.approx(edges @ net.spread(values), abs=1e-12)
    for i in range(7):
        assert net.reduce(edges, np.maximum)[i] == edges[graph.targets == i].max()


@given(networks, rngs)
def test_project_puts_every_row_on_its_simplex(case, rng):
    graph, net = case
    projected = net.project(rng.normal(size=graph.sources.size))
    np.testing.assert_allclose(net.reduce(projected), 1, atol=1e-14)
    assert projected.min() >= 0


@given(networks, rngs)
def test_heard_is_what_the_in_edges_carry(case, rng):
    graph, net = case
    x = rng.normal(size=(7, 2))
    for i, (places, rows) in enumerate(net.heard(sent(net, x))):
        assert (graph.targets[places] == i).all()
        assert np.array_equal(rows, x[graph.sources[places]])


@given(networks, rngs)
def test_along_is_what_every_edge_brings_and_distances_are_to_it(case, rng):
    graph, net = case
    x = rng.normal(size=(7, 3))
    assert np.array_equal(net.along(sent(net, x)), x[graph.sources])
    assert net.arrived().tolist() == [True] * graph.sources.size
    expected = np.linalg.norm(x[graph.sources] - x[graph.targets], axis=1)
    np.testing.assert_allclose(net.distances(x, sent(net, x)), expected, rtol=1e-14)


@pytest.mark.parametrize("d", [1, 7, 500])
def test_both_ends_of_a_link_find_the_same_distance_and_draw(d, monkeypatch):
    graph = d3gd.graphs.complete(9)
    net = Network(graph, d3gd.weights.metropolis(graph), seed=3)
    x = np.random.default_rng(0).normal(size=(9, d))
    for values in (net.distances(x, sent(net, x)), net.draw_links(5)):
        dense = graph.matrix(values).toarray()
        assert np.array_equal(dense, dense.T)
        assert len(np.unique(dense[np.triu_indices(9, 1)])) == 36
    whole = net.distances(x, sent(net, x))
    monkeypatch.setattr("d3gd.network._GATHERED", 2 * d)
    assert np.array_equal(net.distances(x, sent(net, x)), whole)


def test_own_entries_of_unit_vectors_are_one():
    _, net = seven_agents(0)
    assert np.array_equal(net.eye(), np.eye(7))
    assert net.own(net.eye()).tolist() == [[1.0]] * 7
    assert net.own(np.arange(49.0).reshape(7, 7))[:, 0].tolist() == [0, 8, 16, 24, 32, 40, 48]


@pytest.mark.parametrize(
    "verb",
    [
        lambda net, x: net.mix(net.a0, x),
        lambda net, x: net.dot(np.zeros((7, 2)), x),
        lambda net, x: net.distances(np.zeros((7, 2)), x),
        lambda net, x: net.along(x),
        lambda net, x: next(net.heard(x)),
    ],
)
def test_what_was_never_sent_cannot_be_read(verb):
    _, net = seven_agents(0)
    with pytest.raises(d3gd.D3GDError, match="send it first"):
        verb(net, np.zeros((7, 2)))
    verb(net, net.exchange(x=np.zeros((7, 2))).x)


def test_what_was_sent_is_read_by_verbs_alone():
    _, net = seven_agents(0)
    received = net.exchange(x=np.zeros((7, 2))).x
    with pytest.raises(d3gd.D3GDError, match=r"net\.mix"):
        np.asarray(received)
    with pytest.raises(TypeError):
        received + 1


def test_a_method_that_mixes_for_free_is_stopped_in_its_first_step():
    class Free(d3gd.DiDGD):
        def step(self, net, gradient, s, k):
            return s._replace(x=net.mix(net.a0, s.x) - gradient())

    problem = d3gd.problems.quadratic(agents=5, dim=2)
    with pytest.raises(d3gd.D3GDError, match="only read what was sent"):
        d3gd.run(Free(step_size=0.1), d3gd.graphs.ring(5), problem, iterations=3)


def test_weights_and_vectors_have_to_fit():
    _, net = seven_agents(0)
    received = net.exchange(x=np.zeros((7, 2))).x
    with pytest.raises(d3gd.D3GDError, match="one number per edge"):
        net.mix(net.a0[1:], received)
    with pytest.raises(d3gd.D3GDError, match=r"give \(7, 2\)"):
        net.dot(np.zeros((6, 2)), received)


def test_where_everything_arrives_at_once_the_echo_is_what_was_sent():
    _, net = seven_agents()
    m = np.arange(14.0).reshape(7, 2)
    assert np.array_equal(net.echo(net.a0, sent(net, m), m), m)
