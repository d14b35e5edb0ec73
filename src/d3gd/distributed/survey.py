"""Discovery: agents flood whom they hear, and with what weights, until every agent knows the whole network."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from d3gd.arrays import Bools, Floats, Ints
from d3gd.digraph import Digraph
from d3gd.distributed.halo import Halo
from d3gd.distributed.sets import Bits, pack, unpack
from d3gd.errors import GraphError

_NUMBER = 8  # bytes
_GATHERED = 1 << 21  # numbers per chunk of gathered sets: 16 MB


@dataclass(frozen=True, eq=False)
class Survey:
    """What every agent knows of the network once the agents have told each other.

    Attributes:
        graph: The network, without labels.
        a0: The initial weights over all edges of the network, in CSR order.
        rounds: The rounds it took: the diameter of the network, which every agent works out from its own table, so that
            all begin iteration 0 together.
    """

    graph: Digraph
    a0: Floats
    rounds: int


class Edges(NamedTuple):
    """The in-edges of some agents, in CSR order.

    Attributes:
        indptr: Agent i's edges are those from ``indptr[i]`` to ``indptr[i + 1]``.
        columns: The source of every edge, as a position among the agents that are heard.
    """

    indptr: Ints
    columns: Ints

    def hop(self, told: Bits) -> Bits:
        """Return, for each agent, the union of the sets that the agents it hears have told."""
        known = np.empty((len(self.indptr) - 1, told.shape[1]), dtype=np.uint64)
        limit, first = max(1, _GATHERED // told.shape[1]), 0
        while first < len(known):
            last = max(first + 1, int(np.searchsorted(self.indptr, self.indptr[first] + limit, side="right")) - 1)
            edges = slice(self.indptr[first], self.indptr[last])
            starts = self.indptr[first:last] - edges.start
            np.bitwise_or.reduceat(told[self.columns[edges]], starts, axis=0, out=known[first:last])
            first = last
        return known


class Rows:
    """The rows that a process holds, each once, regardless of how many of its agents know it.

    A row is an agent, whom it hears, and with what weights. In a message it takes 2 k + 1 numbers, where k counts the
    agent among its sources: the agent, k, the k - 1 others and k weights.

    Args:
        n: The number of agents in the network.
        agents: The agents whose rows the process has from the start.
        indptr: Where their rows begin and end.
        sources: Their sources, ascending in each row.
        weights: Their weights.

    Attributes:
        lengths: The sources of every agent's row; 0 where the row is unknown.
    """

    def __init__(self, n: int, agents: Ints, indptr: Ints, sources: Ints, weights: Floats) -> None:
        self.n, self._sources, self._weights = n, sources, weights
        self.lengths, self._starts = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
        self.lengths[agents], self._starts[agents] = np.diff(indptr), indptr[:-1]

    @property
    def numbers(self) -> Ints:
        """The numbers in a message with each agent's row."""
        return 2 * self.lengths + 1

    def message(self, whose: Ints) -> Ints:
        """Return a message with the rows of some agents."""
        lengths = self.lengths[whose]
        places = _ranges(self._starts[whose], lengths)
        sources, weights = self._sources[places], self._weights[places]
        others = sources[sources != np.repeat(whose, lengths)]
        return np.concatenate([whose, lengths, others, weights.view(np.int64)])

    def add(self, whose: Ints, message: Ints) -> None:
        """Add the rows of some agents from a message; those that are known stay."""
        count = len(whose)
        lengths, rest = message[count : 2 * count], message[2 * count :]
        links = int(lengths.sum()) - count
        rows = np.arange(count)
        keys = np.concatenate([np.repeat(rows, lengths - 1) * self.n + rest[:links], rows * self.n + whose])
        sources, weights = np.sort(keys) % self.n, rest[links:].view(np.float64)
        new = self.lengths[whose] == 0
        places = _ranges((np.cumsum(lengths) - lengths)[new], lengths[new])
        ends = self._sources.size + np.cumsum(lengths[new])
        self.lengths[whose[new]], self._starts[whose[new]] = lengths[new], ends - lengths[new]
        self._sources = np.concatenate([self._sources, sources[places]])
        self._weights = np.concatenate([self._weights, weights[places]])

    def network(self) -> tuple[Digraph, Floats]:
        """Return the graph and the weights that all rows make up."""
        places = _ranges(self._starts, self.lengths)
        indptr = np.concatenate([[0], np.cumsum(self.lengths)])
        weights = self._weights[places]
        weights.setflags(write=False)
        return Digraph(self.n, indptr, self._sources[places]), weights


class Discovery:
    """The flood of rows.

    In every round each agent sends the rows that are new to it along its out-links, at first its own. After r rounds
    it knows the rows of those from whom it is at most r links away. A table that holds the row of every source it names
    holds everyone from whom there is a path: on a strongly connected graph, all.

    Args:
        halo: The exchange with other ranks.
        rows: The rows of the block's agents; those of others arrive.
        edges: The block's in-edges.

    Attributes:
        known: Whose rows each of the block's agents knows.
        told: Whose rows each agent that the block hears has sent, the block's own agents first.
        rounds: The rounds so far.
    """

    def __init__(self, halo: Halo, rows: Rows, edges: Edges) -> None:
        self._halo, self._rows, self._edges = halo, rows, edges
        own, self._own = halo.block.agents, slice(0, len(halo.block.agents))
        self.known = pack(own[:, None] == np.arange(rows.n))
        self.told: Bits = np.zeros((len(halo.block.heard), self.known.shape[1]), dtype=np.uint64)
        self.rounds = 0

    def advance(self) -> bool:
        """Make a round, and return whether it brought any of the block's agents a new row."""
        fresh = self.known & ~self.told[self._own]
        self.told[self._own] = self.known
        if self._halo.transport.ranks > 1:
            told, messages = self._halo.forward(unpack(fresh, self._rows.n), lambda whose, _: self._rows.message(whose))
            self.told |= pack(told)
            for whose, message in messages.values():
                self._rows.add(whose, message.view(np.int64))
        before, self.known = self.known, self._edges.hop(self.told)
        self.rounds += 1
        return not np.array_equal(before, self.known)

    def bytes_sent(self) -> Ints:
        """Return the bytes that the source of each of the block's edges has sent along each of its out-edges."""
        numbers = [int(self._rows.numbers[unpack(told, self._rows.n)].sum()) for told in self.told]
        sent: Ints = _NUMBER * np.array(numbers)[self._edges.columns]
        return sent

    def complete(self) -> Bools:
        """Return which agents know all n rows: on a strongly connected graph, those whose tables are closed."""
        full: Bools = (self.known == pack(np.ones(self._rows.n, dtype=bool))).all(axis=1)
        return full


def survey(halo: Halo, rows: Rows, edges: Edges) -> tuple[Survey, Ints]:
    """Let agents tell each other whom they hear; return what all know then, and the bytes sent along each edge.

    Args:
        halo: The exchange with other ranks.
        rows: The rows of the block's agents; those of all others are added.
        edges: The block's in-edges.
    """
    flood, last, judged = Discovery(halo, rows, edges), rows.n - 1, False  # no path is longer
    while flood.rounds < last:
        news, full = flood.advance(), flood.complete()
        if halo.transport.ranks == 1:
            # With all tables at hand, there is no need to work out when the last one is complete.
            if full.all() or not news:
                break
        elif full.any() and not judged:
            # A graph that is not strongly connected has no diameter, so that nobody can know when others are done.
            last, judged = _diameter(rows.network()[0]) or last, True
    graph, a0 = _found(flood, rows, halo)
    return Survey(graph, a0, flood.rounds), flood.bytes_sent()


def _found(flood: Discovery, rows: Rows, halo: Halo) -> tuple[Digraph, Floats]:
    """Return the network, or raise an error, on all ranks, if there are agents whose rows do not reach everyone."""
    with halo.transport.together():
        short = np.flatnonzero(~flood.complete())
        if short.size:
            agent = halo.block.agents[short[:1]]
            missing = np.flatnonzero(~unpack(flood.known[short[0]], rows.n))
            raise GraphError(
                f"{halo.names(agent)} never hears of {halo.names(missing)}: the graph is not strongly connected; add "
                f"links out of {halo.names(missing[:1])}, or draw a denser graph"
            )
        graph, a0 = rows.network()
        graph.require_strongly_connected()
    return graph, a0


def _diameter(graph: Digraph) -> int | None:
    """Return the diameter, or None if the graph is not strongly connected; faster than a search from every agent."""
    edges, rounds = Edges(graph.indptr, graph.sources), 0
    known = pack(np.eye(graph.n, dtype=bool))
    full = pack(np.ones(graph.n, dtype=bool))
    while not (known == full).all():
        before, known, rounds = known, edges.hop(known), rounds + 1
        if np.array_equal(before, known):
            return None
    return rounds


def _ranges(starts: Ints, lengths: Ints) -> Ints:
    """Return ``starts[0], starts[0] + 1, ...``, ``lengths[0]`` numbers of them, and so on."""
    ends = np.cumsum(lengths)
    return np.repeat(starts - ends + lengths, lengths) + np.arange(lengths.sum())
