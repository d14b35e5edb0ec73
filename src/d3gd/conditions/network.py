"""An unreliable network: the network's operations on the messages that have arrived."""

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from d3gd.arrays import CSR, Array, Bools, Floats, Ints
from d3gd.conditions.settings import Conditions, mask
from d3gd.digraph import Digraph
from d3gd.distributed.halo import Halo
from d3gd.distributed.inbox import Inbox
from d3gd.distributed.knowledge import Needs
from d3gd.distributed.received import Received, require_received
from d3gd.errors import SettingsError
from d3gd.network import Network
from d3gd.random import keyed_uniform
from d3gd.state import Mail, PerEdge, keep
from d3gd.transports.base import Transport

_LOSS, _LINKS, _PAUSES, _DELAYS = 101, 102, 103, 104  # streams of random numbers
_ROUNDING = 1e-9  # tolerance of row sums of one


class Post(NamedTuple):
    """The state of the network between iterations: messages in flight and pausing agents."""

    away: Annotated[Bools, "common"]  # (n,)      agents that pause at random
    due: PerEdge  # (edges, slots)                arrival of the last messages; infinite if lost
    mail: Mail  # each (edges, slots, 1 + width)  the messages and their arrival


class Late(Received):
    """The newest row that each edge has delivered, with where it lies among the messages of the edge.

    Args:
        rows: A row per edge.
        box: The messages, (edges, slots, 1 + width), each after its arrival.
        slots: The slot of each edge's row.
    """

    __slots__ = ("box", "slots")

    def __init__(self, rows: Floats, box: Floats, slots: Ints) -> None:
        super().__init__(rows)
        self.box, self.slots = box, slots


class ConditionedNetwork(Network):
    """The network's operations on the messages that have arrived.

    :meth:`open` and :meth:`close` delimit an iteration. ``open`` determines which agents are active, which edges
    deliver, and which earlier messages are read now. A message stays in slot ``k mod (delay + 1)`` of its edge until
    that slot is reused, so that an interrupted iteration can be repeated: it writes the same values again.

    Args:
        graph: The union of the links of all iterations.
        weights: The initial weights.
        conditions: What happens to messages and agents.
        seed: The key of all draws.
        needs: What algorithms may read.
        transport: The ranks.
        halo: The exchange with other processes, if it is not that of the transport.
        dtype: The precision of models.
    """

    reliable = False

    def __init__(
        self,
        graph: Digraph,
        weights: CSR,
        conditions: Conditions,
        *,
        seed: int = 0,
        needs: Needs = "all agents",
        transport: Transport | None = None,
        halo: Halo | None = None,
        dtype: npt.DTypeLike = np.float64,
    ) -> None:
        super().__init__(graph, weights, seed=seed, needs=needs, transport=transport, halo=halo, dtype=dtype)
        block = self.halo.block
        self._what, self._key = conditions, seed
        self._from, self._to = graph.sources[block.edges], graph.targets[block.edges]
        self._ids = graph.keys[block.edges]
        row = np.zeros(graph.n, dtype=np.int64)
        row[block.heard] = np.arange(len(block.heard))
        self._theirs, self._mine = row[self._from], row[self._to]  # rows of an exchange, per edge
        starts = np.searchsorted(self._to, self.agents)
        self._ends = np.append(starts, len(self._to))
        count = len(self._to)
        self._late_matrix = csr_array((self.a0, np.arange(count), self._ends), shape=(len(self.agents), count))
        self._loop = np.flatnonzero(self.loops)[np.searchsorted(self.agents, self._to)]  # of the target, per edge
        self._slots = conditions.delay + 1
        self._mask = lru_cache(maxsize=64)(self._masked)  # graphs recur if they are used in turn
        self._k, self._calls = 0, 0
        self._post = Post(np.zeros(graph.n, dtype=bool), np.full((count, self._slots * self._buffered), np.inf), {})
        self._away = self._post.away
        self._since: Ints = np.zeros(graph.n, dtype=np.int64)  # the iteration at which an agent joins
        for agent, first, until in conditions.absences:
            if first == 0:
                self._since[agent] = max(until, self._since[agent])
        self._joins: Bools = np.zeros(graph.n, dtype=bool)
        self._sending: Bools = ~self.loops
        self._arrived: Bools = np.ones(count, dtype=bool)

    def require_heard(self) -> None:
        """Raise an error, or warn, where the conditions keep agents from being heard."""
        self._what.require_heard(self.given.graph)

    @property
    def _buffered(self) -> bool:
        return self._what.delay > 0

    def open(self, k: int, post: Post) -> None:
        """Begin iteration ``k`` with the state that the last one left."""
        what, self._k, self._calls = self._what, k, 0
        away = post.away
        if what.pause > 0:
            draw = keyed_uniform(self._key, np.arange(self.n), k, 1, _PAUSES)[:, 0]
            away = np.where(away, draw >= what.back, draw < what.pause)
        self._post, self._away = post._replace(away=away), away
        gone = [agent for agent, first, until in what.absences if first <= k < until]
        if gone:
            self._away = away.copy()
            self._away[gone] = True
        self._joins = self._since == k + 1  # they listen
        self._sending = self._active(k) & ~self._away[self._from] & ~self.loops
        delivers = self._sending | self.loops
        if what.loss > 0:
            delivers &= (self._draw(k, _LOSS) >= what.loss) | self.loops
        self._arrived = delivers
        if self._buffered:
            slot = k % self._slots
            post.due[:, slot] = np.where(delivers, k + self._lateness(k), np.inf)
            for box in post.mail.values():
                box[:, slot, 0] = np.inf
            self._arrived = np.any(post.due <= k, axis=1)

    def close(self) -> Post:
        """End the iteration and return the network's state."""
        return self._post

    def hold(self, old: Any, new: Any) -> Any:
        """Return the new state, with the old rows of pausing agents; those that are about to join take a model over."""
        if not self._away.any():
            return new
        held = keep(old, new, {"agent": self._away[self.agents], "edge": self._away[self._to]})
        joins = self._joins[self.agents]
        if not joins.any() or not hasattr(new, "x"):
            return held
        return held._replace(x=np.where(joins[:, None], new.x, held.x))

    def exchange(self, *, over: Bools | None = None, **arrays: Array) -> Inbox:
        """Send each agent's rows along its out-edges; the inbox holds the newest messages that have arrived."""
        if over is not None:
            raise SettingsError(
                "a method prunes links, which needs every message to arrive at once, so that both ends agree; choose "
                "one that does not, such as DIGing"
            )
        inbox = super().exchange(**arrays)
        if not self._buffered:
            return inbox
        call, self._calls = self._calls, self._calls + 1
        # A copy per edge: neighbours may read the same agent at different times.
        return Inbox({name: self._newest(f"{call}_{name}", getattr(inbox, name).joined()) for name in arrays})

    def relay(self, table: Floats, fresh: Bools) -> tuple[Floats, Bools]:
        """Raise an error: a row crosses an edge once, so a lost one would leave agents with different tables."""
        raise SettingsError(
            "a rule floods the network while it runs, which needs every message to arrive at once; choose one that "
            'does not, such as rule = "fixed"'
        )

    def mix(self, a: Floats, received: Received, *, double: bool = False, kept: Floats | float = 1.0) -> Floats:
        r"""Return :math:`\sum_j a_{ij}^k x_j` over the messages that have arrived."""
        self._require(received, a)
        a = self._renormalized(a)
        if not self._buffered:
            return super().mix(a, received, double=double)
        rows = received.joined().astype(np.float64 if double else received.dtype, copy=False)
        self._late_matrix.data = a.astype(rows.dtype, copy=False)
        mixed: Floats = self._late_matrix @ rows
        return mixed

    def echo(self, a: Floats, received: Received, sent: Floats) -> Floats:
        r"""Return :math:`\sum_j a_{ij}^k m_i^{(j)}`: own messages, each as old as the one that arrived from j."""
        if not isinstance(received, Late):
            return super().echo(a, received, sent)
        self._require(received, a)
        own = received.box[self._loop, received.slots, 1:].reshape(received.shape)
        sent_at = self._k - (self._k - received.slots) % self._slots
        absent = sent_at < self._since[self._to]  # it sent nothing then, and has nothing to compare
        own[absent] = received.joined()[absent]
        self._late_matrix.data = self._renormalized(a)
        echoed: Floats = self._late_matrix @ own
        return echoed

    def dot(self, v: Floats, received: Received, origin: Floats | None = None) -> Floats:
        r"""Return :math:`\langle v_i, x_j - o_i \rangle` for every edge, with the own row for missing ones."""
        rows = self._copies(received)
        if origin is not None:
            rows = rows - self.spread(origin)
        # Sums have the order of the kernels, so that ideal conditions do not change a bit.
        values: Floats = np.add.reduce(rows * self.spread(v), axis=1).astype(np.float64)
        return values

    def along(self, received: Received, edges: slice = slice(None)) -> Floats:
        """Return the row read along every edge; the agent's own if nothing arrived."""
        return self._copies(received)[edges]

    def arrived(self) -> Bools:
        """Return a mask of the edges that have a message to read, sent in this iteration or delayed until it."""
        return self._arrived

    def heard(self, received: Received) -> Iterator[tuple[slice, Floats]]:
        """Yield, for every agent, the slice of its in-edges and their rows; its own row if nothing arrived."""
        rows = self._copies(received)
        for first, last in pairwise(self._ends):
            yield slice(first, last), rows[first:last]

    def _copies(self, received: Received) -> Floats:
        require_received(received)
        rows = received.joined()
        if self._buffered:
            return rows
        copies: Floats = rows[np.where(self._arrived, self._theirs, self._mine)]
        return copies

    def _renormalized(self, a: Floats) -> Floats:
        """Return weights that are zero on missing messages, with rows that sum to one if they did before."""
        joins = self._joins[self._to] & self.loops
        if self._arrived.all() and not joins.any():
            return a
        kept = np.where(self._arrived & ~joins, a, 0.0)
        whole, left = self.reduce(a), self.reduce(kept)
        averages = np.abs(whole - 1) <= _ROUNDING
        alone = averages & (left == 0)
        kept[self.loops] = np.where(alone, whole, kept[self.loops])
        return kept * self.spread(np.where(averages & ~alone, whole / np.where(left == 0, 1.0, left), 1.0))

    def _newest(self, name: str, rows: Floats) -> "Late":
        """Store the rows sent now, and return the newest row that each edge has delivered."""
        mail, slot, count = self._post.mail, self._k % self._slots, len(self._to)
        fresh = rows[self._theirs].reshape(count, -1)
        shape = (count, self._slots, 1 + fresh.shape[1])
        if name not in mail or mail[name].shape != shape:
            mail[name] = np.zeros(shape)
            mail[name][:, :, 0] = np.inf
        box = mail[name]
        box[:, slot, 0], box[:, slot, 1:] = self._post.due[:, slot], fresh
        age = np.where(box[:, :, 0] <= self._k, (self._k - np.arange(self._slots)) % self._slots, self._slots)
        newest = age.argmin(axis=1)
        copies = box[np.arange(count), newest, 1:]
        missing = age[np.arange(count), newest] == self._slots
        copies[missing] = rows[self._mine[missing]].reshape(-1, fresh.shape[1])
        return Late(copies.reshape(count, *rows.shape[1:]).astype(rows.dtype, copy=False), box, newest)

    def _active(self, k: int) -> Bools:
        """Return a mask of the block's active links."""
        what = self._what
        there: Bools = np.ones(len(self._to), dtype=bool)
        if callable(what.graphs):
            there = mask(self.given.graph, what.graphs(k))[self.halo.block.edges]
        elif what.graphs is not None:
            there = self._mask(k // what.period % len(what.graphs))
        return there & (self._draw(k, _LINKS) < what.links) if what.links < 1 else there

    def _masked(self, turn: int) -> Bools:
        graphs: Any = self._what.graphs
        return mask(self.given.graph, graphs[turn])[self.halo.block.edges]

    def _lateness(self, k: int) -> Floats:
        """Return the delay, in iterations, of each edge's message of iteration ``k``."""
        most = self._what.delay
        if self._what.delays == "all":
            late = np.full(len(self._to), float(most))
        else:
            late = np.floor((most + 1) * self._draw(k if self._what.delays == "each message" else 0, _DELAYS))
        return np.where(self.loops, 0.0, late)

    def _draw(self, k: int, stream: int) -> Floats:
        return keyed_uniform(self._key, self._ids, k, 1, stream)[:, 0]
