"""A block of agents: what they know, what their method may read of it, and what they tell each other."""

import math
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from d3gd.arrays import CSR, Array, Bools, Floats, Ints
from d3gd.digraph import Digraph
from d3gd.distributed import survey as discovery
from d3gd.distributed.coding import Coding
from d3gd.distributed.halo import Halo
from d3gd.distributed.inbox import Inbox
from d3gd.distributed.knowledge import Needs, knows, require_knowledge, stronger
from d3gd.distributed.traffic import Traffic
from d3gd.errors import D3GDError
from d3gd.random import keyed_uniform
from d3gd.spectrum import perron
from d3gd.transports.alone import chosen
from d3gd.transports.base import Transport

_VECTORS = 2000**2  # limit on the numbers in the n-vectors of a block's agents
_COPIED = 1 << 15  # bytes up to which own and received rows are copied into one array
_LINKS = 3  # the stream of the draws of links, distinct from those of agents


class Agents:
    """A block of agents and the edges into them.

    Attributes:
        n: The number of agents in the whole network, which every agent is given.
        agents: The indices of this block's agents.
        a0: The initial weights over the block's edges, :math:`A^0`.
        loops: Mask of the self-loops among the block's edges.
        dtype: The precision of models; edge weights and Perron weights are always in double precision.
        seed: The key of random draws, the same on all ranks.
        traffic: The bytes that the links into the block have carried so far.
        halo: The exchange with other ranks, for the engine; algorithms do not use it.
        given: The whole network as this process was given it, also for the engine.
        needs: What algorithms on this network may read: see :attr:`d3gd.Algorithm.needs`.
        reliable: Whether every message arrives without delay; see :mod:`d3gd.conditions`.
        repeatable: Whether an iteration can be taken again: messages between sites are sent once.
        coding: How messages are compressed, if they are.
        damping: The factor of weights under compression; methods that choose weights use :func:`damped`.
    """

    reliable = True
    repeatable = True

    def __init__(
        self,
        graph: Digraph,
        weights: CSR,
        *,
        seed: int = 0,
        needs: Needs = "all agents",
        transport: Transport | None = None,
        halo: Halo | None = None,
        dtype: npt.DTypeLike = np.float64,
    ) -> None:
        self.n = graph.n
        self.dtype = np.dtype(dtype)
        self.given, self.needs = discovery.Survey(graph, weights.data, rounds=0), needs
        self.halo = halo or Halo(graph, chosen(transport))
        block = self.halo.block
        self.agents: Ints = block.agents
        self.coding: Coding | None = None
        self.damping = 1.0
        self.seed = seed
        self._survey: discovery.Survey | None = None
        self._edges = block.edges
        self.a0: Floats = self.block(weights.data)
        self._rows: Ints = np.searchsorted(self.agents, graph.targets[block.edges])
        self._sources: Ints = graph.sources[block.edges]
        self.loops: Bools = self._sources == graph.targets[block.edges]
        self._place: Ints = np.full(graph.n, -1)
        self._place[block.heard] = np.arange(len(block.heard))
        # Entries in the order of their sources: sums along a row then have the same order on any number of ranks.
        self._columns: Ints = self._place[self._sources]
        self._starts: Ints = np.searchsorted(self._rows, np.arange(len(self.agents)))
        self._indptr: Ints = np.append(self._starts, len(block.edges))
        self.traffic = Traffic(len(block.edges) - len(self.agents))
        self._sending: Bools | None = None  # the links that carry what is sent; by default all

    @property
    def out_degrees(self) -> Ints:
        """The number of out-neighbours of each agent of the block, for methods whose agents know who hears them."""
        require_knowledge(self.needs, "out-degrees", "out-degrees", "what arrives along in-edges")
        return self._out_degrees

    @property
    def bytes_sent(self) -> int:
        """Bytes sent so far over all edges into the block; self-loops are free."""
        return self.traffic.total

    def require_heard(self) -> None:
        """Raise an error, or warn, where it is known beforehand that nobody will hear some agent."""

    def permit(self, needs: Needs) -> None:
        """Let algorithms read what these needs include, besides what they may already read."""
        self.needs = stronger(self.needs, needs)

    def begin(self, k: int) -> int:
        """Begin iteration ``k``, and return it; a network of sites returns a later one if others are further on."""
        return k

    def age(self, k: int) -> int:
        """Return the number of iterations of a method before ``k``; sites count from the last change of the network."""
        return k

    def renewed(self, algorithm: Any, state: Any) -> Any:
        """Return the state to begin an iteration with; a network of sites may have changed, with the length of y."""
        return state

    def take(self, algorithm: Any, gradient: Any, state: Any, k: int) -> Any:
        """Return a method's state after iteration ``k``, which has begun."""
        return algorithm.step(self, gradient, state, k)

    def exchange(self, *, over: Bools | None = None, **arrays: Array) -> Inbox:
        """Send each agent's rows along its out-edges: the only way to communicate.

        It returns at once; the inbox waits at first use. The arrays must not change afterwards.

        Args:
            over: The edges in use, a mask over the block's edges, if links are undirected and both ends agree; by
                default all. Rows of unused edges are undefined; their weights must be zero.
            arrays: The rows to send, by name.
        """
        if self.coding is not None:
            return self.coding.exchange(self.halo, self._carry, arrays, over)
        return self._carry(arrays, over)

    def _carry(self, arrays: dict[str, Array], over: Bools | None) -> Inbox:
        """Exchange arrays as they are, and count their bytes."""
        used = self._sending if over is None else over & ~self.loops
        self.traffic = self.traffic.plus(sum([array.nbytes // len(array) for array in arrays.values()]), used)
        return Inbox(*self.halo.exchange(arrays, self._apart, over))

    def relay(self, table: Floats, fresh: Bools) -> tuple[Floats, Bools]:
        """Flood rows along the edges: each agent forwards the new rows of its table with their agents' indices.

        Args:
            table: (agents, n, r); row l of an agent's table comes from agent l, and is the same in all tables.
            fresh: (agents, n); the rows to send.

        Returns:
            The received tables, (agents, n, r), and a mask of the rows that arrived, (agents, n).
        """
        tables, news = self.halo.relay(table, fresh)
        heard = news[self._columns]
        rows = np.where(self.loops, 0, np.count_nonzero(heard, axis=1))
        self.traffic = self.traffic.along(rows * (table[0, 0].nbytes + 8))
        carrier = np.maximum.reduceat(np.where(heard, self._sources[:, None], -1), self._starts, axis=0)
        return tables[self._place[carrier], np.arange(self.n)], carrier >= 0

    def survey(self) -> discovery.Survey:
        """Let the agents tell each other whom they hear and with what weights, until all know the whole network.

        The rounds and bytes that this takes count as any others do. Call it in ``init``; what is known stays known, so
        that further calls cost nothing. A method that needs ``"the network"`` gets what it was given, in no round.

        Returns:
            The graph, the initial weights over all its edges, and the number of rounds.
        """
        if self._survey is None and knows(self.needs, "the network"):
            self._survey = self.given  # nothing is left to discover
        if self._survey is None:
            self._require_memory(-(-self.n // self.halo.transport.ranks))
            weights = self.block(self.given.a0)  # as they are without the damping of compression
            rows = discovery.Rows(self.n, self.agents, self._indptr, self._sources, weights)
            self._survey, sent = discovery.survey(self.halo, rows, discovery.Edges(self._indptr, self._columns))
            self.traffic = self.traffic.along(np.where(self.loops, 0, sent))
            # Where an agent's edges stand among all is known from now on; a rank may have been given its own rows only.
            self._edges = np.flatnonzero(np.isin(self._survey.graph.targets, self.agents))
        return self._survey

    def everyone(self, values: Array) -> Array:
        """Return all agents' values: global knowledge, refused to decentralized methods."""
        require_knowledge(self.needs, "all agents", "all agents' values", "net.exchange")
        return self.halo.everyone(values)

    def perron(self, a: Floats) -> Floats:
        """Return the left Perron vector of the whole network's weights: also global knowledge."""
        require_knowledge(self.needs, "all agents", "all agents' weights in use", "net.exchange")
        return perron(self.given.graph.matrix(self.halo.everywhere(a)))

    def draw(self, k: int) -> Floats:
        """Return a uniform number per agent, keyed by (seed, agent, iteration)."""
        return keyed_uniform(self.seed, self.agents, k, 1)[:, 0]

    def draw_links(self, k: int) -> Floats:
        """Return a uniform number per edge, keyed by (seed, link, iteration): the same at both ends of a link."""
        targets = self.agents[self._rows]
        links = np.minimum(self._sources, targets) * self.n + np.maximum(self._sources, targets)
        return keyed_uniform(self.seed, links, k, 1, _LINKS)[:, 0]

    def block(self, edges: Floats) -> Floats:
        """Return this block's part of a vector over all edges of the network."""
        return edges if len(self.agents) == self.n else edges[self._edges]

    def _require_memory(self, agents: int) -> None:
        """Raise an error if an n-vector for each of so many agents is too much for a process."""
        if agents * self.n > _VECTORS:
            raise D3GDError(
                f"an n-vector for each of {agents} agents on one process is too much for n = {self.n}; use "
                'perron="known", which takes the network as known beforehand, or more ranks'
            )

    def _apart(self, shape: tuple[int, ...]) -> bool:
        """Whether to keep own and received rows of an array of this shape separate."""
        return 8 * math.prod(shape) >= _COPIED

    @cached_property
    def _out_degrees(self) -> Ints:
        return self.given.graph.out_degrees[self.agents]
