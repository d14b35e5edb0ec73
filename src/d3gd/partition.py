"""Agents on ranks: who lives where, and whose rows cross from one rank to another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from d3gd.arrays import Ints
from d3gd.digraph import Digraph
from d3gd.errors import SettingsError


@dataclass(frozen=True, eq=False)
class Block:
    """The agents of one rank and what crosses its border.

    Attributes:
        agents: The rank's agents, ascending.
        edges: The places of the edges into them in the graph's CSR order.
        heard: Whose rows they read: first the rank's own agents, then others' by rank, each ascending, so that
            what comes from a rank has one place in memory.
        sends: For every rank that hears this one, which of the rank's agents it hears, as places in ``agents``.
        receives: For every rank that this one hears, where its rows go in ``heard``.
    """

    agents: Ints
    edges: Ints
    heard: Ints
    sends: Mapping[int, Ints]
    receives: Mapping[int, slice]


@dataclass(frozen=True, eq=False)
class Partition:
    """The agents of a graph divided among ranks.

    Args:
        graph: The graph.
        owner: The rank of every agent.

    Example:
        >>> from d3gd.graphs import ring
        >>> parts = partition(ring(6), 2)
        >>> parts.owner, parts.cut
        (array([0, 0, 0, 1, 1, 1]), 2)
        >>> parts.block(0).agents, parts.block(0).heard
        (array([0, 1, 2]), array([0, 1, 2, 5]))
    """

    graph: Digraph
    owner: Ints

    @cached_property
    def agents(self) -> list[Ints]:
        """Every rank's agents."""
        return [np.flatnonzero(self.owner == rank) for rank in range(int(self.owner.max()) + 1)]

    @cached_property
    def edges(self) -> list[Ints]:
        """The places of the edges into every rank's agents."""
        home = self.owner[self.graph.targets]
        return [np.flatnonzero(home == rank) for rank in range(len(self.agents))]

    @property
    def cut(self) -> int:
        """How many links run between ranks."""
        return int(np.count_nonzero(self.owner[self.graph.targets] != self.owner[self.graph.sources]))

    def block(self, rank: int) -> Block:
        """Return one rank's part."""
        agents, others = self.agents[rank], [peer for peer in range(len(self.agents)) if peer != rank]
        sends = {peer: np.flatnonzero(np.isin(agents, self._heard(peer))) for peer in others}
        heard = self._heard(rank)
        theirs = {peer: heard[self.owner[heard] == peer] for peer in others}
        ends = len(agents) + np.cumsum([0, *map(len, theirs.values())])
        return Block(
            agents=agents,
            edges=self.edges[rank],
            heard=np.concatenate([agents, *theirs.values()]),
            sends={peer: rows for peer, rows in sends.items() if rows.size},
            receives={
                peer: slice(a, b)
                for peer, a, b in zip(others, ends[:-1].tolist(), ends[1:].tolist(), strict=True)
                if a < b
            },
        )

    def _heard(self, rank: int) -> Ints:
        return np.unique(self.graph.sources[self.edges[rank]])


def partition(graph: Digraph, ranks: int) -> Partition:
    """Divide agents among ranks: equal numbers to within one, few links between ranks, always in the same way.

    Consecutive agents of an ordering go to one rank. Two orderings are tried, the agents' own and reverse
    Cuthill-McKee, which puts neighbours close to each other; the one that cuts fewer links is taken.

    Args:
        graph: The graph.
        ranks: How many ranks there are, at most one per agent.

    Returns:
        The partition.

    References:
        Cuthill and McKee, *Reducing the bandwidth of sparse symmetric matrices*, Proc. 24th ACM Conference, 1969.
    """
    if ranks > graph.n:
        raise SettingsError(f"{ranks} ranks for {graph.n} agents; start at most {graph.n}, one per agent")
    if ranks == 1:
        return Partition(graph, np.zeros(graph.n, dtype=np.int64))
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    ones = graph.matrix(np.ones(graph.sources.size))
    near = reverse_cuthill_mckee((ones + ones.T).tocsr(), symmetric_mode=True)
    return min((_cut_up(graph, order, ranks) for order in (np.arange(graph.n), near)), key=lambda parts: parts.cut)


def _cut_up(graph: Digraph, order: Ints | Sequence[int], ranks: int) -> Partition:
    owner = np.empty(graph.n, dtype=np.int64)
    owner[np.asarray(order)] = np.arange(graph.n) * ranks // graph.n
    return Partition(graph, owner)
