"""AC-GT: the pruned links, the agreement of both ends, and the effect on tracking."""

import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import d3gd
from d3gd.errors import SettingsError
from d3gd.network import Network
from d3gd.transports.threads import on_threads
from tests.helpers.methods import advance
from tests.helpers.stepping import network, states
from tests.helpers.strategies import examples

SETTINGS = {
    "cycle": st.integers(1, 4),
    "prune": st.floats(0, 0.95),
    "sharpness": st.sampled_from([0.0, 2.0, math.inf]),
}
DIM = 3


@st.composite
def undirected(draw, min_n=2, max_n=8):
    """Connected graphs whose links go both ways."""
    n, seed = draw(st.integers(min_n, max_n)), draw(st.integers(0, 10**6))
    tree = nx.random_labeled_tree(n, seed=seed)
    return d3gd.Digraph.from_networkx(nx.compose(tree, nx.gnp_random_graph(n, draw(st.floats(0, 1)), seed=seed)))


def setting(graph):
    """A problem, and a start where agents differ."""
    problem = d3gd.problems.quadratic(agents=graph.n, dim=DIM, seed=1)
    return problem, np.random.default_rng(0).normal(size=(graph.n, DIM))


def path_of(algorithm, graph, iterations, weights=None, seed=0):
    problem, x0 = setting(graph)
    metropolis = d3gd.weights.metropolis(graph)
    return states(algorithm, graph, metropolis if weights is None else weights, problem, iterations, x0, seed)


@examples(60)
@given(undirected(), st.fixed_dictionaries(SETTINGS))
def test_weights_are_those_of_all_links_or_metropolis_weights_of_some(graph, settings):
    algorithm = d3gd.ACGT(step_size=0.1, **settings)
    lazy = d3gd.weights.lazy(graph)
    for k, s in enumerate(path_of(algorithm, graph, 9, lazy)):
        W = graph.matrix(s.a).toarray()
        if k % algorithm.cycle == 0:
            assert np.array_equal(s.a, lazy.data)
            continue
        assert np.array_equal(W, W.T)
        left = d3gd.Digraph.from_edges(graph.n, np.argwhere(W > 0))
        assert np.array_equal(W, d3gd.weights.metropolis(left).toarray())
        # Either end may give a link up, and together they give up no more than that.
        gone = graph.in_degrees - left.in_degrees
        assert np.all(gone >= np.floor(algorithm.prune * graph.in_degrees)) or math.isinf(algorithm.sharpness)
        assert gone.sum() <= 2 * np.floor(algorithm.prune * graph.in_degrees).sum()


@examples(25)
@given(undirected(min_n=3), st.fixed_dictionaries(SETTINGS), st.data())
def test_ranks_agree_on_silence_and_carry_nothing_that_is_not_paid_for(graph, settings, data):
    algorithm, iterations, ranks = d3gd.ACGT(step_size=0.1, **settings), 7, data.draw(st.integers(2, graph.n))
    large = data.draw(st.sampled_from([1, 40, np.inf]))
    whole = path_of(algorithm, graph, iterations)
    nets, ends = on_ranks(algorithm, graph, iterations, ranks, large)
    for net, end in zip(nets, ends, strict=True):
        assert np.array_equal(end.x, whole[-1].x[net.agents])
        assert np.array_equal(end.tracker.mixed, whole[-1].tracker.mixed[net.agents])
        assert np.array_equal(end.a, net.block(whole[-1].a))
    sent = sum(net.bytes_sent for net in nets)
    moved = sum(net.halo.wire_bytes for net in nets)
    assert sent == closed_form(algorithm, graph, whole)
    assert moved == sent if ranks == graph.n else moved <= sent


def closed_form(algorithm, graph, path):
    """All links once a cycle, with two numbers more if it goes on; one more, then models and trackers, on the rest."""
    numbers = 0
    for k, s in enumerate(path[1:]):
        left = np.count_nonzero(path[k].a[graph.sources != graph.targets])
        numbers += 2 * DIM * (graph.link_count if k % algorithm.cycle == 0 else left)
        if k % algorithm.cycle == 0 and algorithm.cycle > 1:
            numbers += 2 * graph.link_count + np.count_nonzero(s.a[graph.sources != graph.targets])
    return 8 * numbers


def on_ranks(algorithm, graph, iterations, ranks, large):
    """Every rank's network and last state."""
    problem, x0 = setting(graph)

    def work(rank):
        net = Network(graph, d3gd.weights.metropolis(graph), transport=rank)
        part, s = problem.restrict(net.agents), algorithm.init(net, x0[net.agents])
        for k in range(iterations):
            s = advance(algorithm, net, part, s, k)
        return net, s

    return zip(*on_threads(ranks, work, large=large), strict=True)


def test_with_cycles_of_one_iteration_it_is_tracking_on_all_links():
    graph = d3gd.Digraph.from_networkx(nx.gnp_random_graph(9, 0.5, seed=0))
    weights = d3gd.topologies.fastest_mixing(graph)
    other = path_of(d3gd.DIGing(step_size=0.1, combine="after"), graph, 20, weights)
    for s, t in zip(path_of(d3gd.ACGT(step_size=0.1, cycle=1), graph, 20, weights), other, strict=True):
        assert np.array_equal(s.x, t.x)
        assert np.array_equal(s.tracker.mixed, t.tracker.mixed)


@pytest.mark.parametrize("sharpness", [0.0, 3.0, math.inf])
def test_if_nothing_is_pruned_it_is_tracking_with_metropolis_weights(sharpness):
    graph = d3gd.Digraph.from_networkx(nx.gnp_random_graph(9, 0.5, seed=0))
    other = path_of(d3gd.DIGing(step_size=0.1, combine="after"), graph, 20)
    algorithm = d3gd.ACGT(step_size=0.1, prune=0.0, sharpness=sharpness)
    for s, t in zip(path_of(algorithm, graph, 20), other, strict=True):
        assert np.array_equal(s.x, t.x)
        assert np.array_equal(s.tracker.mixed, t.tracker.mixed)


def test_agents_alone_for_a_cycle_still_reach_the_optimum():
    graph = d3gd.graphs.complete(8)
    problem = d3gd.problems.quadratic(agents=8, dim=DIM, seed=1)
    algorithm, alone = d3gd.ACGT(step_size=0.05, prune=0.9, sharpness=0.0), set()

    def look(snapshot):
        alone.update(np.flatnonzero(snapshot.weights.diagonal() == 1).tolist())

    result = d3gd.run(algorithm, graph, problem, iterations=3000, every=1, metrics={}, callbacks=[look])
    assert alone == set(range(8))
    np.testing.assert_allclose(result.x, np.tile(problem.optimum, (8, 1)), rtol=0, atol=1e-10)


def test_the_most_similar_fall_silent_first():
    graph = d3gd.graphs.complete(10)
    values = np.repeat([[0.0], [1.0]], 5, axis=0) + 0.01 * np.arange(10)[:, None]
    algorithm = d3gd.ACGT(step_size=0.1, prune=4 / 9, sharpness=math.inf)
    net = network(algorithm, graph, d3gd.weights.metropolis(graph))
    s = algorithm.step(net, lambda: np.zeros((10, 1)), algorithm.init(net, values), 0)
    left = graph.matrix(s.a).toarray() > 0
    groups = np.arange(10) < 5
    assert np.array_equal(left | np.eye(10, dtype=bool), (groups[:, None] != groups) | np.eye(10, dtype=bool))


@pytest.mark.parametrize("sharpness", [0.0, 3.0, math.inf])
def test_agents_that_agree_to_the_bit_prune_at_random_or_not_at_all(sharpness):
    graph = d3gd.graphs.complete(7)
    algorithm = d3gd.ACGT(step_size=0.1, sharpness=sharpness)
    net = network(algorithm, graph, d3gd.weights.metropolis(graph))
    s = algorithm.step(net, lambda: np.zeros((7, 2)), algorithm.init(net, np.ones((7, 2))), 0)
    assert np.array_equal(s.a, net.a0) == math.isinf(sharpness)


def test_another_seed_draws_other_links_and_every_cycle_new_ones():
    graph, algorithm = d3gd.graphs.complete(9), d3gd.ACGT(step_size=0.1, sharpness=0.0)
    one, same, other = (path_of(algorithm, graph, 8, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(one[1].a, same[1].a)
    assert not np.array_equal(one[1].a, other[1].a)
    assert not np.array_equal(one[1].a, one[6].a)


def test_a_run_resumed_within_a_cycle_goes_on_to_the_bit(tmp_path):
    graph, algorithm = d3gd.graphs.complete(7), d3gd.ACGT(step_size=0.1, cycle=5)
    problem = d3gd.problems.quadratic(agents=7, dim=2)
    whole = d3gd.run(algorithm, graph, problem, iterations=24)
    for iterations in (13, 24):
        result = d3gd.run(algorithm, graph, problem, iterations=iterations, out=tmp_path, resume=True)
    assert np.array_equal(result.x, whole.x)
    assert np.array_equal(result.weights.data, whole.weights.data)
    assert result.metrics["bytes"][-1] == whole.metrics["bytes"][-1]


def test_one_agent_has_nobody_to_be_silent_to():
    graph, problem = d3gd.Digraph.from_edges(1, []), d3gd.problems.quadratic(agents=1, dim=2)
    result, descent = (
        d3gd.run(method(step_size=0.5), graph, problem, iterations=50) for method in (d3gd.ACGT, d3gd.Centralized)
    )
    np.testing.assert_allclose(result.x, descent.x, rtol=0, atol=1e-12)
    assert result.metrics["bytes"][-1] == 0


def test_where_messages_may_be_missing_it_is_refused():
    graph, problem = d3gd.graphs.complete(4), d3gd.problems.quadratic(agents=4, dim=2)
    for biased, words in ((False, "ACGT does not survive loss"), (True, "ACGT needs every message to arrive")):
        with pytest.raises(SettingsError, match=words):
            d3gd.run(
                d3gd.ACGT(step_size=0.1),
                graph,
                problem,
                iterations=3,
                conditions=d3gd.Conditions(loss=0.1, biased=biased),
            )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"cycle": 0}, "cycle = 0"),
        ({"cycle": 2.5}, "cycle = 2.5"),
        ({"prune": 1.0}, "prune = 1.0"),
        ({"sharpness": -1.0}, "sharpness = -1.0"),
        ({"sharpness": math.nan}, "sharpness = nan"),
    ],
)
def test_bad_settings(arguments, words):
    with pytest.raises(SettingsError, match=words):
        d3gd.ACGT(step_size=0.1, **arguments)
