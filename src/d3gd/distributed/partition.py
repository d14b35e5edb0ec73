"""The partition of agents among ranks, and the rows that they exchange."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np

from d3gd.arrays import CSR, Ints
from d3gd.digraph import Digraph
from d3gd.errors import SettingsError

_REFINED_UP_TO = 2000  # agents: beyond that, refining takes longer than it saves
_TRIED = 16  # agents of each rank that are tried in an exchange


@dataclass(frozen=True, eq=False)
class Block:
    """The agents of one rank and the rows that it exchanges with other ranks.

    Attributes:
        agents: The rank's agents, ascending.
        edges: The indices of their in-edges in the graph's CSR order.
        heard: The agents whose rows they read: first the rank's own, then others' by rank, each ascending, so that the
            rows from a rank are contiguous.
        sends: For every rank that hears this one, the agents that it hears, as positions in ``agents``.
        receives: For every rank that this one hears, the positions of its rows in ``heard``.
        runs: For every rank that this one hears, the lengths of the contiguous runs of its rows.
    """

    agents: Ints
    edges: Ints
    heard: Ints
    sends: Mapping[int, Ints]
    receives: Mapping[int, slice]
    runs: Mapping[int, list[int]]

    @cached_property
    def border(self) -> "Border":
        """The rows exchanged over all edges."""
        receives = {peer: np.arange(places.start, places.stop) for peer, places in self.receives.items()}
        return Border(len(self.heard), self.sends, receives, self.runs)


class Border(NamedTuple):
    """The rows that a block sends and receives in a round.

    Attributes:
        heard: The number of a block's own and received rows.
        sends: The block's agents that each rank hears.
        receives: The positions of the rows of each rank.
        runs: The lengths of their contiguous runs.
    """

    heard: int
    sends: Mapping[int, Ints]
    receives: Mapping[int, Ints]
    runs: Mapping[int, list[int]]


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
        """The indices of the in-edges of every rank's agents."""
        home = self.owner[self.graph.targets]
        return [np.flatnonzero(home == rank) for rank in range(len(self.agents))]

    @property
    def cut(self) -> int:
        """The number of links between ranks."""
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
            runs={
                peer: runs_of(np.searchsorted(self.agents[peer], rows)) for peer, rows in theirs.items() if rows.size
            },
        )

    def narrowed(self, block: Block, edges: Ints) -> Border:
        """Return the rows exchanged if only some of a block's in-edges are used, in both directions.

        Args:
            block: The block.
            edges: The used edges, as indices in the graph's CSR order.
        """
        sources, targets = self.graph.sources[edges], self.graph.targets[edges]
        home = self.owner[sources]
        sends: dict[int, Ints] = {}
        receives: dict[int, Ints] = {}
        runs: dict[int, list[int]] = {}
        for peer, places in block.receives.items():
            crossing = home == peer
            theirs = np.unique(sources[crossing])
            if theirs.size:
                sends[peer] = np.searchsorted(block.agents, np.unique(targets[crossing]))
                receives[peer] = places.start + np.searchsorted(block.heard[places], theirs)
                runs[peer] = runs_of(np.searchsorted(self.agents[peer], theirs))
        return Border(len(block.heard), sends, receives, runs)

    def _heard(self, rank: int) -> Ints:
        return np.unique(self.graph.sources[self.edges[rank]])


def runs_of(places: Ints) -> list[int]:
    """Return the lengths of the runs of consecutive numbers.

    Example:
        >>> runs_of(np.array([0, 1, 2, 5, 7, 8]))
        [3, 1, 2]
    """
    ends = np.flatnonzero(np.diff(places) != 1) + 1
    return [int(length) for length in np.diff([0, *ends, len(places)])]


def partition(graph: Digraph, ranks: int) -> Partition:
    """Divide agents evenly among ranks, with few links between ranks, deterministically.

    Consecutive agents of an ordering go to one rank. Two orderings are tried, the agents' own and reverse
    Cuthill-McKee, which places neighbours close to each other; up to 2,000 agents, pairs are then exchanged as long as
    that reduces the cut. The partition with the smallest cut is returned.

    Args:
        graph: The graph.
        ranks: The number of ranks, at most one per agent.

    Returns:
        The partition.

    References:
        Cuthill and McKee, *Reducing the bandwidth of sparse symmetric matrices*, Proc. 24th ACM Conference, 1969;
        Kernighan and Lin, *An efficient heuristic procedure for partitioning graphs*, Bell System Technical Journal 49,
        1970, for the gain of an exchange.
    """
    if ranks > graph.n:
        raise SettingsError(f"{ranks} ranks for {graph.n} agents; start at most {graph.n}, one per agent")
    if ranks == 1:
        return Partition(graph, np.zeros(graph.n, dtype=np.int64))
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    ones = graph.matrix(np.ones(graph.sources.size))
    links = (ones + ones.T).tocsr()
    found: list[Partition] = []
    for order in (np.arange(graph.n), reverse_cuthill_mckee(links, symmetric_mode=True)):
        owner = np.empty(graph.n, dtype=np.int64)
        owner[order] = np.arange(graph.n) * ranks // graph.n
        if ranks < graph.n <= _REFINED_UP_TO:
            _refine(owner, links, ranks)
        found.append(Partition(graph, owner))
    return min(found, key=lambda parts: parts.cut)


def _refine(owner: Ints, links: CSR, ranks: int) -> None:
    """Exchange pairs of agents between ranks, best first, as long as that reduces the cut."""
    ties = np.stack([links[:, owner == rank].sum(axis=1) for rank in range(ranks)], axis=1)  # links of agents to ranks
    better = True
    while better:
        better = False
        for here, there in combinations(range(ranks), 2):
            while True:
                some, others = np.flatnonzero(owner == here), np.flatnonzero(owner == there)
                ours = ties[some, there] - ties[some, here]
                theirs = ties[others, here] - ties[others, there]
                # The best exchange is nearly always among the best moves.
                best, their_best = (
                    np.argsort(-ours, kind="stable")[:_TRIED],
                    np.argsort(-theirs, kind="stable")[:_TRIED],
                )
                some, others = some[best], others[their_best]
                gains = ours[best][:, None] + theirs[their_best] - 2 * links[some][:, others].toarray()
                one, other = np.unravel_index(np.argmax(gains), gains.shape)
                if gains[one, other] <= 0:
                    break
                for agent, left, joined in ((some[one], here, there), (others[other], there, here)):
                    owner[agent] = joined
                    near = slice(links.indptr[agent], links.indptr[agent + 1])
                    ties[links.indices[near], left] -= links.data[near]
                    ties[links.indices[near], joined] += links.data[near]
                better = True
