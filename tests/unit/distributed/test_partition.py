"""Agents on ranks: each once, evenly, with few links between ranks, and boundaries that both sides agree on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import d3gd
from d3gd.distributed.partition import Partition, partition
from tests.helpers.strategies import digraphs


@st.composite
def divided(draw):
    graph = draw(digraphs(max_n=14))
    return graph, partition(graph, draw(st.integers(1, graph.n)))


def natural(graph, ranks):
    return Partition(graph, np.arange(graph.n) * ranks // graph.n)


@given(divided())
def test_every_agent_has_one_rank_and_ranks_are_even(case):
    graph, parts = case
    assert np.array_equal(np.sort(np.concatenate(parts.agents)), np.arange(graph.n))
    assert np.array_equal(np.sort(np.concatenate(parts.edges)), np.arange(graph.sources.size))
    sizes = [len(agents) for agents in parts.agents]
    assert max(sizes) - min(sizes) <= 1


@given(divided())
def test_the_cut_is_never_worse_than_that_of_consecutive_agents(case):
    graph, parts = case
    assert parts.cut <= natural(graph, len(parts.agents)).cut


@given(divided())
def test_borders_are_what_the_links_say(case):
    graph, parts = case
    links = list(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True))
    assert parts.cut == sum(parts.owner[a] != parts.owner[b] for a, b in links)
    blocks = [parts.block(rank) for rank in range(len(parts.agents))]
    for rank, block in enumerate(blocks):
        heard = {a for a, b in links if parts.owner[b] == rank}
        assert set(block.heard.tolist()) == heard
        assert len(block.heard) == len(heard)
        assert block.heard[: len(block.agents)].tolist() == block.agents.tolist()
        assert set(block.receives) == {parts.owner[a] for a in heard} - {rank}
        for peer, places in block.receives.items():
            # What a rank sends, in its order, is what the other has places for.
            assert block.heard[places].tolist() == blocks[peer].agents[blocks[peer].sends[rank]].tolist()
        assert all(rank in blocks[peer].receives for peer in block.sends)


@given(digraphs(min_n=2))
def test_one_agent_a_rank_needs_no_search(graph):
    parts = partition(graph, graph.n)
    assert parts.cut == graph.link_count


@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_hidden_clusters_are_found(ranks):
    """Groups of six that all hear each other, joined in a ring, with their agents' numbers dealt out."""
    names = np.arange(6 * ranks).reshape(6, ranks).T  # group g holds g, g + ranks, ...
    inside = [(a, b) for group in names.tolist() for a in group for b in group]
    ring = [(int(names[g, 0]), int(names[(g + 1) % ranks, 0])) for g in range(ranks)]
    graph = d3gd.Digraph.from_edges(names.size, inside + ring)
    assert partition(graph, ranks).cut == ranks


def test_more_ranks_than_agents_are_refused():
    with pytest.raises(d3gd.D3GDError, match="4 ranks for 3 agents; start at most 3"):
        partition(d3gd.graphs.ring(3), 4)
