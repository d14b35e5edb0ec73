"""Rounds between ranks as threads: received rows, their buffers, and the bytes sent."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import d3gd
from d3gd.network import Network
from d3gd.transports.alone import Alone
from tests.helpers.strategies import digraphs, examples


class Shelf(Alone):
    """A rank among several in one process: messages wait on a shelf until somebody takes them."""

    def __init__(self, rank, ranks, shelf, large):
        self.rank, self.ranks, self.large, self._shelf = rank, ranks, large, shelf

    def _start(self, sends, receives, tag):
        shelf = self._shelf
        for peer, array in sends:
            shelf.setdefault((self.rank, peer, tag), []).append(array.copy())

        def finish():
            for peer, array in receives:
                array[:] = shelf[(peer, self.rank, tag)].pop(0)

        return finish


def networks(graph, ranks, large=np.inf):
    shelf = {}
    weights = d3gd.weights.metropolis(graph)
    return [Network(graph, weights, transport=Shelf(rank, ranks, shelf, large)) for rank in range(ranks)]


@examples(50)
@given(digraphs(min_n=2), st.data())
def test_a_round_brings_what_one_process_would_see(graph, data):
    nets = networks(graph, data.draw(st.integers(2, graph.n)), data.draw(st.sampled_from([1, 40, np.inf])))
    whole = Network(graph, d3gd.weights.metropolis(graph))
    rng = np.random.default_rng(0)
    arrays = {"t": rng.normal(size=graph.n), "x": rng.normal(size=(graph.n, 3)).astype(np.float32)}
    arrays |= {"Y": rng.normal(size=(graph.n, 2, 2)), "s": rng.normal(size=(graph.n, 1)).astype(np.float32)}
    # All post before anyone's message is there to take: an exchange does not wait, its inbox does.
    boxes = [net.exchange(**{name: array[net.agents] for name, array in arrays.items()}) for net in nets]
    for net, box in zip(nets, boxes, strict=True):
        for name, array in arrays.items():
            assert getattr(box, name).dtype == array.dtype
            assert np.array_equal(getattr(box, name).joined(), array[net.halo.block.heard])
        assert np.array_equal(net.mix(net.a0, box.x), whole.mix(whole.a0, whole.exchange(x=arrays["x"]).x)[net.agents])
    assert sum(net.bytes_sent for net in nets) == graph.link_count * (8 + 12 + 32 + 4)
    if len(nets) == graph.n:
        assert sum(net.halo.wire_bytes for net in nets) == sum(net.bytes_sent for net in nets)


@examples(50)
@given(digraphs(min_n=2), st.data())
def test_a_round_over_some_links_brings_their_rows_and_zeros(graph, data):
    graph = d3gd.Digraph.from_edges(graph.n, [*graph.edges, *graph.edges[:, ::-1]])
    nets = networks(graph, data.draw(st.integers(2, graph.n)), data.draw(st.sampled_from([1, 40, np.inf])))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    x, t = rng.normal(size=(graph.n, 3)), rng.normal(size=graph.n).astype(np.float32)
    nothing = np.full_like(x, np.nan)
    used = np.triu(rng.random((graph.n, graph.n)) < data.draw(st.floats(0, 1)), 1)
    used = (used | used.T)[graph.targets, graph.sources]
    count = np.count_nonzero(used & (graph.sources != graph.targets))
    for _ in range(2):
        before = [net.halo.wire_bytes for net in nets], [net.bytes_sent for net in nets]
        # What lies in memory from the last round must not be met again.
        boxes = [net.exchange(x=nothing[net.agents], t=t[net.agents]) for net in nets]
        for box in boxes:
            _ = box.x, box.t
        del boxes, box
        boxes = [net.exchange(over=net.block(used), x=x[net.agents], t=t[net.agents]) for net in nets]
        for net, box in zip(nets, boxes, strict=True):
            heard = net.halo.block.heard
            edges = net.block(used)
            sources = graph.sources[net.halo.block.edges]
            comes = np.isin(heard, sources[edges]) | np.isin(heard, net.agents)
            assert np.array_equal(box.x.joined(), np.where(comes[:, None], x[heard], 0))
            assert np.array_equal(box.t.joined(), np.where(comes, t[heard], 0))
        links = graph.link_count + count
        assert sum(net.bytes_sent for net in nets) - sum(before[1]) == links * 28
        if len(nets) == graph.n:
            assert sum(net.halo.wire_bytes for net in nets) - sum(before[0]) == links * 28


@examples(20)
@given(digraphs(min_n=2, max_n=8), st.sampled_from([np.float64, np.float32]), st.data())
def test_a_relay_brings_what_one_process_would_see_and_counts_what_travels(graph, dtype, data):
    n, ranks = graph.n, data.draw(st.integers(2, graph.n))
    rng = np.random.default_rng(1)
    told, fresh = rng.normal(size=(n, 3)).astype(dtype), rng.random((n, n)) < 0.5
    table = np.broadcast_to(told, (n, n, 3))
    whole = Network(graph, d3gd.weights.metropolis(graph))
    expected, news = whole.relay(table, fresh)
    nets = networks(graph, ranks)
    found = [None] * ranks
    barrier = threading.Barrier(ranks, timeout=20)
    for net in nets:  # a relay waits twice: all have to have sent before anyone takes
        start = net.halo.transport._start

        def waiting(*messages, start=start):
            finish = start(*messages)
            barrier.wait()
            return finish

        net.halo.transport._start = waiting

    def relay(net):
        found[net.halo.transport.rank] = net.relay(table[net.agents], fresh[net.agents])

    threads = [threading.Thread(target=relay, args=(net,)) for net in nets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    for net, (rows, arrived) in zip(nets, found, strict=True):
        assert np.array_equal(arrived, news[net.agents])
        assert np.array_equal(rows[arrived], expected[net.agents][arrived])
    assert sum(net.bytes_sent for net in nets) == whole.bytes_sent
    if ranks == n:
        assert sum(net.halo.wire_bytes for net in nets) == whole.bytes_sent


def test_what_a_method_keeps_of_an_inbox_is_never_overwritten():
    nets = networks(d3gd.graphs.ring(2), 2)
    kept = []
    for value in range(6):
        boxes = [net.exchange(x=np.full((1, 4), float(10 * value + net.agents[0]))) for net in nets]
        kept.append((boxes[0].x, 10 * value + 1))
        del boxes
    for rows, value in kept:
        assert (rows.joined()[1:] == value).all()


def test_an_inbox_that_nobody_keeps_leaves_its_memory_to_the_next():
    nets = networks(d3gd.graphs.ring(2), 2)
    addresses = set()
    for _ in range(5):
        boxes = [net.exchange(x=np.ones((1, 4))) for net in nets]
        addresses.add(boxes[0].x.joined().ctypes.data)
        del boxes
    assert len(addresses) == 1


@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_large_rounds_copy_no_rows_of_their_own_until_somebody_wants_all_in_one_array(ranks):
    graph = d3gd.graphs.erdos_renyi(5, 0.5, seed=3)
    x = np.random.default_rng(0).normal(size=(5, 1 + (1 << 18) // graph.sources.size))
    v, whole = np.ones_like(x), Network(graph, d3gd.weights.metropolis(graph))
    everything = whole.exchange(x=x).x
    nets = networks(graph, ranks)
    own = [x[net.agents] for net in nets]
    boxes = [net.exchange(x=rows) for net, rows in zip(nets, own, strict=True)]
    for net, box, rows in zip(nets, boxes, own, strict=True):
        assert box.x.parts()[0] is rows
        assert np.array_equal(net.mix(net.a0, box.x), whole.mix(whole.a0, everything)[net.agents])
        assert np.array_equal(net.dot(v[net.agents], box.x), net.block(whole.dot(v, everything)))
        assert np.array_equal(box.x.joined(), x[net.halo.block.heard])


@pytest.mark.parametrize(("large", "lengths"), [(112, [1, 6]), (113, [7]), (np.inf, [7])])
def test_runs_of_rows_leave_from_where_they_are_if_they_are_large(large, lengths):
    sent = []

    class Watched(Shelf):
        def _start(self, sends, receives, tag):
            sent.extend(array for _, array in sends)
            return super()._start(sends, receives, tag)

    graph, x = d3gd.graphs.exponential(16), np.random.default_rng(0).normal(size=(8, 4))
    net = Network(graph, d3gd.weights.metropolis(graph), transport=Watched(0, 2, {}, large))
    assert net.halo.block.sends[1].tolist() == [0, 2, 3, 4, 5, 6, 7]  # 7 rows of 32 bytes in two runs
    net.exchange(x=x)
    assert [array.nbytes // 32 for array in sent] == lengths
    assert all(np.shares_memory(array, x) for array in sent) == (len(lengths) > 1)
