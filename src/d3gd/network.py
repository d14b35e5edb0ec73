"""The operations with which algorithms compute on agents and edges."""

import math
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from d3gd.arrays import Array, Bools, Floats, Ints
from d3gd.distributed.agents import Agents
from d3gd.distributed.coding import Held
from d3gd.distributed.received import Received, require_received
from d3gd.errors import D3GDError
from d3gd.kernels import Meter
from d3gd.kernels.buffers import LARGE, Buffers
from d3gd.kernels.plain import Plain
from d3gd.kernels.threads import rowwise

if TYPE_CHECKING:
    from d3gd.kernels.compiled import Compiled
    from d3gd.kernels.wide import Wide

_WIDE = 1 << 13  # numbers of a model from which mixing and updating it in one pass pays
_SORTING = 16  # cost of projecting one edge's value, in numbers
_GATHERED = 1 << 16  # numbers per chunk of the distances, so that buffers stay in the cache
_DOUBLE = np.dtype(np.float64)


class Network(Agents):
    """A block of agents, the edges into them, and all operations across edges.

    An algorithm computes on a network and does not depend on which rank holds which agents. Per-agent values are arrays
    whose first axis is the block's agents; per-edge values are flat vectors over the block's edges in CSR order,
    including the self-loops. What agents know and how they send it is in :class:`d3gd.distributed.agents.Agents`; this
    class computes with what arrived.
    """

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
        rows[np.arange(len(self.agents)), self.agents] = 1.0
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

    def own(self, Y: Floats) -> Floats:
        """Return the agent's own entry :math:`[y_i]_i` of each agent's n-vector, as a column."""
        own: Floats = Y.take(self._diagonal)[:, None]
        return own

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

    def _kernels(self, width: int) -> "Plain | Compiled":
        """Return the kernels for ``width`` numbers per edge."""
        return self._compiled if self._meter.compiled(self._all_edges * width) else self._plain

    @cached_property
    def _all_edges(self) -> int:
        """The number of edges of the whole network, so that all ranks choose the same kernels."""
        return self.given.graph.sources.size

    @cached_property
    def _diagonal(self) -> Ints:
        """The own entry of each agent's n-vector, in all of them flattened."""
        diagonal: Ints = np.arange(len(self.agents)) * self.n + self.agents
        return diagonal

    @cached_property
    def _meter(self) -> Meter:
        return Meter()

    @cached_property
    def _buffers(self) -> Buffers:
        return Buffers(LARGE)

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
