"""The verbs in which every algorithm speaks of agents and edges."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from d3gd.arrays import CSR, Array, Bools, Floats, Ints
from d3gd.errors import D3GDError
from d3gd.graphs import Digraph
from d3gd.halo import Halo
from d3gd.random import keyed_uniform
from d3gd.simplex import RowSimplices
from d3gd.spectrum import perron
from d3gd.transports.alone import Alone
from d3gd.transports.base import Transport

_GATHERED = 1 << 16  # numbers that `dot` gathers at a time, so that its buffers stay in the cache


class Inbox:
    """What a block's agents receive along their in-edges, one array per name that was sent; waited for at first use.

    Args:
        arrived: Waits for all arrays and returns them.
    """

    def __init__(self, arrived: Callable[[], dict[str, Array]]) -> None:
        self._arrived = arrived

    def __getattr__(self, name: str) -> Floats:
        try:
            return self._arrived()[name]
        except KeyError:
            raise AttributeError(f"nothing named {name!r} was sent") from None


class Network:
    """A block of agents, the edges into them, and the only ways to compute across edges.

    An algorithm is handed a network and never asks where the agents live. Per-agent values are arrays whose first
    axis is the block's agents; per-edge values are flat vectors over the block's edges in CSR order, an agent's own
    self-loop included.

    Attributes:
        n: The number of agents in the whole network.
        graph: Who hears whom in the whole network, known to all from the set-up.
        agents: The indices of this block's agents.
        a0: The initial weights over the block's edges, :math:`A^0`.
        everywhere_a0: The initial weights over all edges of the network, known to all from the set-up.
        dtype: The precision of models; weights over edges, and what says how agents count, are always in double.
        bytes_sent: What :meth:`exchange` has sent over all edges into the block so far; self-loops are free.
        halo: The block's border, for the engine; algorithms have no use for it.
        reliable: Whether every message arrives, and at once; see :mod:`d3gd.conditions`.
    """

    reliable = True

    def __init__(
        self,
        graph: Digraph,
        weights: CSR,
        *,
        seed: int = 0,
        sees_all: bool = True,
        transport: Transport | None = None,
        dtype: npt.DTypeLike = np.float64,
    ) -> None:
        self.n = graph.n
        self.dtype = np.dtype(dtype)
        self.graph = graph
        self.halo = Halo(graph, transport or Alone())
        block = self.halo.block
        self.agents: Ints = block.agents
        self.everywhere_a0: Floats = weights.data
        self.bytes_sent = 0
        self._seed = seed
        self._sees_all = sees_all
        self._edges = block.edges
        self.a0: Floats = self.block(weights.data)
        self._rows: Ints = np.searchsorted(self.agents, graph.targets[block.edges])
        self._sources: Ints = graph.sources[block.edges]
        self._place: Ints = np.full(graph.n, -1)
        self._place[block.heard] = np.arange(len(block.heard))
        # Entries in the order of the agents they come from: sums along a row then run alike on any number of ranks.
        self._columns: Ints = self._place[self._sources]
        self._starts: Ints = np.searchsorted(self._rows, np.arange(len(self.agents)))
        self._links = len(block.edges) - len(self.agents)
        indptr = np.append(self._starts, len(block.edges))
        shape = (len(self.agents), len(block.heard))
        self._matrix = csr_array((self.a0, self._columns, indptr), shape=shape)
        self._simplices = RowSimplices(indptr)

    def exchange(self, **arrays: Array) -> Inbox:
        """Send each agent's rows along its out-edges: the only communication there is.

        It returns at once, and the inbox is waited for at first use. What is sent must stay as it is.
        """
        numbers = sum(array[0].nbytes for array in arrays.values())
        self.bytes_sent += self._links * numbers
        return Inbox(self.halo.exchange(arrays))

    def relay(self, table: Floats, fresh: Bools) -> tuple[Floats, Bools]:
        """Pass on what others have told: each agent sends the fresh rows of its table, with whose they are.

        Args:
            table: (agents, n, r); row l of an agent's table is what agent l once told.
            fresh: (agents, n); the rows to send.

        Returns:
            The tables as heard, (agents, n, r), and which of their rows arrived, (agents, n).
        """
        told, news = self.halo.relay(table, fresh)
        heard = news[self._columns]
        sent = int(np.count_nonzero(heard)) - int(np.count_nonzero(fresh))
        self.bytes_sent += sent * (table[0, 0].nbytes + 8)
        carrier = np.maximum.reduceat(np.where(heard, self._sources[:, None], -1), self._starts, axis=0)
        return told[self._place[carrier], np.arange(self.n)], carrier >= 0

    def mix(self, a: Floats, received: Floats) -> Floats:
        r"""Return :math:`\sum_j a_{ij} x_j` for every agent i."""
        self._matrix.data = a.astype(received.dtype, copy=False)
        mixed: Floats = self._matrix @ received
        return mixed

    def dot(self, v: Floats, received: Floats, origin: Floats | None = None) -> Floats:
        r"""Return :math:`\langle v_i, x_j - o_i \rangle` for every edge j -> i; without an origin, o = 0.

        A constant added to all of a row's values changes no projection on the simplex, so the origin is free to
        choose; near the received models it spares the digits that their common part would cost.
        """
        values = np.empty(len(self._columns))
        edges = max(1, _GATHERED // v.shape[1])
        for first in range(0, len(values), edges):
            here = slice(first, first + edges)
            rows = self._rows[here]
            difference = received[self._columns[here]]
            if origin is not None:
                difference -= origin[rows]
            values[here] = np.einsum("ed,ed->e", v[rows], difference)
        return values

    def heard(self, received: Floats) -> Iterator[tuple[slice, Floats]]:
        """Yield, for every agent, the places of its in-edges and the rows that came along them."""
        ends = [*self._starts, len(self._columns)]
        for first, last in pairwise(ends):
            yield slice(first, last), received[self._columns[first:last]]

    def project(self, edges: Floats) -> Floats:
        """Project each agent's edge values onto its probability simplex."""
        return self._simplices(edges)

    def reduce(self, edges: Floats, how: Any = np.add) -> Floats:
        """Return one value per agent from its in-edges: their sum, or with ``np.maximum`` their largest."""
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
        """Return values in the precision of the models, so that models computed with them stay in it."""
        return values.astype(self.dtype, copy=False)

    def eye(self) -> Floats:
        """Return the unit vector :math:`e_i` of each agent, as the rows of an array."""
        rows = np.zeros((len(self.agents), self.n))
        rows[np.arange(len(self.agents)), self.agents] = 1.0
        return rows

    def scatter(self, edges: Floats) -> Floats:
        """Return each agent's n-vector with its in-edges' values at those they come from."""
        rows = np.zeros((len(self.agents), self.n))
        rows[self._rows, self._sources] = edges
        return rows

    def own(self, Y: Floats) -> Floats:
        """Return the agent's own entry :math:`[y_i]_i` of each agent's n-vector, as a column."""
        return self.precise(Y[np.arange(len(self.agents)), self.agents][:, None])

    def draw(self, k: int) -> Floats:
        """Return a uniform number per agent, keyed by (seed, agent, iteration)."""
        return keyed_uniform(self._seed, self.agents, k, 1)[:, 0]

    def everyone(self, values: Array) -> Array:
        """Return all agents' values: global knowledge, refused to whatever claims to be decentralized."""
        self._require_sight()
        return self.halo.everyone(values)

    def perron(self, a: Floats) -> Floats:
        """Return the left Perron vector of the whole network's weights: global knowledge as well."""
        self._require_sight()
        return perron(self.graph.matrix(self.halo.everywhere(a)))

    def _require_sight(self) -> None:
        if not self._sees_all:
            raise D3GDError(
                "a decentralized algorithm asked for all agents' values; agents know only what arrives along their "
                'in-edges: use net.exchange, or declare the algorithm with needs = "all agents"'
            )
