"""The operations with which algorithms compute on agents and edges."""

import math
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from d3gd.arrays import CSR, Array, Bools, Floats, Ints
from d3gd.distributed import survey as discovery
from d3gd.distributed.coding import Coding, Held
from d3gd.distributed.halo import Halo
from d3gd.distributed.inbox import Inbox
from d3gd.distributed.knowledge import Needs, knows, require_knowledge, stronger
from d3gd.distributed.received import Received, require_received
from d3gd.errors import D3GDError
from d3gd.graphs import Digraph
from d3gd.kernels import Meter
from d3gd.kernels.buffers import LARGE, Buffers
from d3gd.kernels.plain import Plain
from d3gd.kernels.threads import rowwise
from d3gd.random import keyed_uniform
from d3gd.spectrum import perron
from d3gd.transports.alone import chosen
from d3gd.transports.base import Transport

if TYPE_CHECKING:
    from d3gd.kernels.compiled import Compiled
    from d3gd.kernels.wide import Wide

_VECTORS = 2000**2  # limit on the numbers in the n-vectors of a block's agents
_COPIED = 1 << 15  # bytes up to which own and received rows are copied into one array
_WIDE = 1 << 13  # numbers of a model from which mixing and updating it in one pass pays
_SORTING = 16  # cost of projecting one edge's value, in numbers
_GATHERED = 1 << 16  # numbers per chunk of the distances, so that buffers stay in the cache
_DOUBLE = np.dtype(np.float64)
_LINKS = 3  # the stream of the draws of links, distinct from those of agents


class Network:
    """A block of agents, the edges into them, and all operations across edges.

    An algorithm computes on a network and does not depend on which rank holds which agents. Per-agent values are arrays
    whose first axis is the block's agents; per-edge values are flat vectors over the block's edges in CSR order,
    including the self-loops.

    Attributes:
        n: The number of agents in the whole network, which every agent is given.
        agents: The indices of this block's agents.
        a0: The initial weights over the block's edges, :math:`A^0`.
        loops: Mask of the self-loops among the block's edges.
        dtype: The precision of models; edge weights and Perron weights are always in double precision.
        bytes_sent: Bytes sent so far over all edges into the block; self-loops are free.
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
        self.bytes_sent = 0
        self.coding: Coding | None = None
        self.damping = 1.0
        self._seed = seed
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
        self._links = len(block.edges) - len(self.agents)
        self._all_edges = graph.sources.size  # of the whole network, so that all ranks choose the same kernels
        self._indptr: Ints = np.append(self._starts, len(block.edges))
        self._places: Ints = np.arange(len(self.agents))
        self._diagonal: Ints = self._places * self.n + self.agents  # of an n-vector per agent, flattened
        self._meter, self._buffers = Meter(), Buffers(LARGE)

    @property
    def graph(self) -> Digraph:
        """The whole network, for methods whose agents know it beforehand; others have to :meth:`survey` it."""
        require_knowledge(self.needs, "the network", "the graph", "net.survey().graph")
        return self.given.graph

    @property
    def everywhere_a0(self) -> Floats:
        """The initial weights over all edges of the network, for the same methods as :attr:`graph`."""
        require_knowledge(self.needs, "the network", "all agents' weights", "net.survey().a0")
        return self.given.a0

    @property
    def out_degrees(self) -> Ints:
        """The number of out-neighbours of each agent of the block, for methods whose agents know who hears them."""
        require_knowledge(self.needs, "out-degrees", "out-degrees", "what arrives along in-edges")
        return self._out_degrees

    def permit(self, needs: Needs) -> None:
        """Let algorithms read what these needs include, besides what they may already read."""
        self.needs = stronger(self.needs, needs)

    def begin(self, k: int) -> int:
        """Begin iteration ``k``, and return it; a network of sites returns a later one if others are further on."""
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
        links = self._links if over is None else int(np.count_nonzero(over & ~self.loops))
        self.bytes_sent += links * sum([array.nbytes // len(array) for array in arrays.values()])
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
        sent = int(np.count_nonzero(heard)) - int(np.count_nonzero(fresh))
        self.bytes_sent += sent * (table[0, 0].nbytes + 8)
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
            rows = discovery.Rows(self.n, self.agents, self._indptr, self._sources, self.a0)
            self._survey, sent = discovery.survey(self.halo, rows, discovery.Edges(self._indptr, self._columns))
            self.bytes_sent += sent
            # Where an agent's edges stand among all is known from now on; a rank may have been given its own rows only.
            self._edges = np.flatnonzero(np.isin(self._survey.graph.targets, self.agents))
        return self._survey

    def mix(self, a: Floats, received: Received, *, double: bool = False, kept: Floats | float = 1.0) -> Floats:
        r"""Return :math:`\sum_j a_{ij} x_j` for every agent i.

        Args:
            a: One weight per edge.
            received: What an exchange brought: ``inbox.x``.
            double: Compute in double precision, whatever was sent: for sums over agents that must be conserved.
            kept: The factor with which a sender keeps what compression withheld: the sum of its column of the weights,
                where that is what conserves sums; 1 for rows that sum to one.
        """
        self._require(received, a)
        shape, dtype = received.shape, _DOUBLE if double else received.dtype
        if self._meter.compiled(self._all_edges * (shape[1] if len(shape) == 2 else math.prod(shape[1:]))):
            mixed = self._compiled.mix(a, *received.parts(), dtype)
        else:
            mixed = self._plain.mix(a, received.joined(), dtype)
        return (mixed + kept * received.withheld).astype(dtype) if isinstance(received, Held) else mixed

    def wide(self, received: Received) -> "Wide | None":
        """Return the kernels that mix large models and update them in one pass; None if these do not suit.

        They suit few agents with large models, where every message arrives: one row is one piece of work.
        """
        shape = received.shape
        if len(self.agents) > 1 or not self.reliable or len(shape) != 2 or shape[1] < _WIDE:
            return None
        return self._wide if self._meter.compiled(self._all_edges * shape[1]) else None

    def place(self, like: Array) -> Array:
        """Return memory for a result like an array of the state: new memory, since the old state stays as it is."""
        return self._buffers.empty(like.shape, like.dtype)

    def echo(self, a: Floats, received: Received, sent: Floats) -> Floats:
        r"""Return :math:`\sum_j a_{ij} m_i^{(j)}`: what an agent itself sent when its in-neighbours sent what arrived.

        On a reliable network that is what it has just sent. Where messages are late, the difference to :meth:`mix`
        compares rows of the same iteration, so that common progress since then is not mistaken for disagreement.

        Args:
            a: One weight per edge; rows sum to one.
            received: What an exchange brought: ``inbox.m``.
            sent: What the block's agents sent in it.
        """
        self._require(received, a)
        return sent

    def dot(self, v: Floats, received: Received, origin: Floats | None = None) -> Floats:
        r"""Return :math:`\langle v_i, x_j - o_i \rangle` for every edge j -> i; without an origin, o = 0.

        A constant added to all of a row's values does not change their projection onto the simplex, so any origin
        serves; one near the received models avoids the cancellation of digits in their common part.
        """
        require_received(received)
        self._require_rows(v, received)
        values = self._kernels(v.shape[1]).dot(v, received.joined(), origin)
        return values.astype(np.float64, copy=False)

    def rowwise(
        self, equation: Callable[..., Array], *rows: Array, out: Array | None = None, **numbers: float
    ) -> Array:
        """Evaluate an equation agent by agent, without intermediate results as large as a state.

        Methods write their equations with :func:`d3gd.rules.updates.rowwise`, which calls this.

        Args:
            equation: A function of arrays and numbers; an agent's row of its result depends on the same rows only.
            rows: Its arguments, each with a row per agent; the first has the shape of the result.
            out: An input that is no longer needed and was not sent; the result may overwrite it.
            numbers: Its other arguments.
        """
        first = rows[0]
        result = self._buffers.empty(first.shape, first.dtype) if out is None else out
        if self._meter.compiled(first.size):
            from d3gd.kernels.fused import evaluate  # slow to import, and small networks never need it

            if evaluate(equation, rows, numbers, result):
                return result
        return rowwise(partial(equation, **numbers), *rows, out=result)

    def heard(self, received: Received) -> Iterator[tuple[slice, Floats]]:
        """Yield, for every agent, the slice of its in-edges and the rows received along them."""
        require_received(received)
        for first, last in pairwise(self._indptr):
            yield slice(first, last), received.joined()[self._columns[first:last]]

    def along(self, received: Received, edges: slice = slice(None)) -> Floats:
        """Return the row received along every edge, or some of them; along self-loops, the agent's own."""
        require_received(received)
        rows: Floats = received.joined()[self._columns[edges]]
        return rows

    def arrived(self) -> Bools:
        """Return a mask of the edges along which a message has arrived; on a reliable network, all."""
        return np.ones(len(self._columns), dtype=bool)

    def distances(self, x: Floats, received: Received) -> Floats:
        r"""Return :math:`\|x_j - x_i\|` for every edge j -> i, bitwise equal at both ends of a link."""
        values, piece = np.empty(len(self._columns)), max(1, _GATHERED // x.shape[1])
        for first in range(0, len(values), piece):
            some = slice(first, first + piece)
            away = self.along(received, some) - x[self._rows[some]]
            away *= away
            values[some] = np.sqrt(np.add.reduce(away, axis=1))
        return values

    def project(self, edges: Floats) -> Floats:
        """Project each agent's edge values onto its probability simplex."""
        return self._kernels(_SORTING).project(edges)

    def reduce(self, edges: Floats, how: Any = np.add) -> Floats:
        """Return one value per agent from its in-edges: their sum, or with ``np.maximum`` their maximum."""
        reduced: Floats = how.reduceat(edges, self._starts)
        return reduced

    def spread(self, values: Array) -> Array:
        """Return each agent's value on each of its in-edges."""
        spread: Array = values[self._rows]
        return spread

    def block(self, edges: Floats) -> Floats:
        """Return this block's part of a vector over all edges of the network."""
        return edges if len(self.agents) == self.n else edges[self._edges]

    def precise(self, values: Floats) -> Floats:
        """Return values in the precision of the models, so that results keep it."""
        if values.dtype == self.dtype:
            return values
        precise: Floats = self._buffers.empty(values.shape, self.dtype)
        precise[...] = values
        return precise

    def residual(self, values: Floats, sent: Floats) -> Floats | float:
        """Return what rounding to the precision of messages took away; zero where nothing was rounded."""
        return 0.0 if values.dtype == sent.dtype else values - sent

    def eye(self) -> Floats:
        """Return the unit vector :math:`e_i` of each agent, as the rows of an array."""
        rows = self.vectors()
        rows[self._places, self.agents] = 1.0
        return rows

    def scatter(self, edges: Floats) -> Floats:
        """Return an n-vector per agent that holds its in-edges' values at the indices of their sources."""
        rows = self.vectors()
        rows[self._rows, self._sources] = edges
        return rows

    def vectors(self) -> Floats:
        """Return an n-vector of zeros per agent, or raise an error if they would take too much memory."""
        self._require_memory(len(self.agents))
        return np.zeros((len(self.agents), self.n))

    def _require_memory(self, agents: int) -> None:
        """Raise an error if an n-vector for each of so many agents is too much for a process."""
        if agents * self.n > _VECTORS:
            raise D3GDError(
                f"an n-vector for each of {agents} agents on one process is too much for n = {self.n}; use "
                'perron="known", which takes the network as known beforehand, or more ranks'
            )

    def own(self, Y: Floats) -> Floats:
        """Return the agent's own entry :math:`[y_i]_i` of each agent's n-vector, as a column."""
        own: Floats = Y.take(self._diagonal)[:, None]
        return own

    def draw(self, k: int) -> Floats:
        """Return a uniform number per agent, keyed by (seed, agent, iteration)."""
        return keyed_uniform(self._seed, self.agents, k, 1)[:, 0]

    def draw_links(self, k: int) -> Floats:
        """Return a uniform number per edge, keyed by (seed, link, iteration): the same at both ends of a link."""
        targets = self.agents[self._rows]
        links = np.minimum(self._sources, targets) * self.n + np.maximum(self._sources, targets)
        return keyed_uniform(self._seed, links, k, 1, _LINKS)[:, 0]

    def everyone(self, values: Array) -> Array:
        """Return all agents' values: global knowledge, refused to decentralized methods."""
        require_knowledge(self.needs, "all agents", "all agents' values", "net.exchange")
        return self.halo.everyone(values)

    def perron(self, a: Floats) -> Floats:
        """Return the left Perron vector of the whole network's weights: also global knowledge."""
        require_knowledge(self.needs, "all agents", "all agents' weights in use", "net.exchange")
        return perron(self.given.graph.matrix(self.halo.everywhere(a)))

    def _require(self, received: Received, a: Floats) -> None:
        """Raise an error unless the rows were received and there is one weight per edge."""
        require_received(received)
        if a.shape != self.a0.shape:
            raise D3GDError(
                f"the weights have shape {a.shape}, but this block has {len(self.a0)} edges; give one number per edge, "
                "like net.a0"
            )

    def _require_rows(self, v: Floats, received: Received) -> None:
        """Raise an error unless there is one vector per agent, as long as the received rows."""
        wanted = len(self.agents), *received.shape[1:]
        if v.shape != wanted:
            raise D3GDError(f"vectors of shape {v.shape} do not match rows of shape {received.shape}; give {wanted}")

    def _apart(self, shape: tuple[int, ...]) -> bool:
        """Whether to keep own and received rows of an array of this shape separate."""
        return 8 * math.prod(shape) >= _COPIED

    def _kernels(self, width: int) -> "Plain | Compiled":
        """Return the kernels for ``width`` numbers per edge."""
        return self._compiled if self._meter.compiled(self._all_edges * width) else self._plain

    @cached_property
    def _plain(self) -> Plain:
        return Plain(self._indptr, self._columns, len(self.halo.block.heard))

    @cached_property
    def _compiled(self) -> "Compiled":
        from d3gd.kernels.compiled import Compiled  # slow to import, and small networks never need it

        return Compiled(self._indptr, self._columns)

    @cached_property
    def _wide(self) -> "Wide":
        from d3gd.kernels.wide import Wide

        return Wide(self._indptr, self._columns)

    @cached_property
    def _out_degrees(self) -> Ints:
        return self.given.graph.out_degrees[self.agents]
