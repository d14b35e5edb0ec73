"""The exchange of rows between ranks: the operations of the network that need other ranks."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from d3gd.arrays import Array, Bools, Floats, Ints
from d3gd.digraph import Digraph
from d3gd.distributed.packing import Kind, Round
from d3gd.distributed.partition import Border, partition
from d3gd.distributed.received import Received
from d3gd.distributed.sets import pack, unpack
from d3gd.state import expecting, flatten, kinds, restore
from d3gd.transports.base import Transport

S = TypeVar("S")

_AT_ONCE = 1 << 20  # numbers of a message at the start, so that transports need no buffers as large as the model


class _Rounds(NamedTuple):
    """The rounds between ranks, by the arrays exchanged."""

    border: Border
    planned: dict[Kind, Round]


class Halo:
    """The rows that a rank exchanges with other ranks.

    Args:
        graph: The whole network.
        transport: The ranks.

    Attributes:
        block: This rank's part of the network.
        wire_bytes: The payload that this rank has sent to others. A row goes to a rank once, regardless of how many
            agents hear it there; with one agent per rank, the sum over ranks is the metric ``bytes``.
    """

    def __init__(self, graph: Digraph, transport: Transport) -> None:
        parts = partition(graph, transport.ranks)
        self.transport = transport
        self.block = parts.block(transport.rank)
        self.wire_bytes = 0
        self._whole = transport.ranks == 1
        self._agents, self._edges = parts.agents, parts.edges
        self._own = slice(0, len(self.block.agents))
        self._all = _Rounds(self.block.border, {})
        self._parts, self._some = parts, (np.empty(0, dtype=bool), self._all)
        self._held: Mapping[str, Array] = {}
        self._copies: Mapping[str, Array] = {}

    def exchange(
        self, arrays: dict[str, Array], apart: Callable[[tuple[int, ...]], bool], over: Bools | None = None
    ) -> tuple[Mapping[str, Received], Callable[[], None] | None]:
        """Send rows to the ranks that hear this block; return the received rows and a function that waits for them.

        Args:
            arrays: The rows to send, by name.
            apart: Whether to keep own and received rows of an array of a given shape separate: see :class:`Received`.
            over: The edges in use, a mask over the block's edges that agrees with the other ends; by default all. Rows
                that are received along no edge are zero.
        """
        if self._whole:
            return {name: Received(array) for name, array in arrays.items()}, None
        rounds = self._all if over is None else self._over(over)
        # This runs in every round while others wait: for messages of 100 kB, the calls dominate the cost.
        kind = tuple([(name, array.dtype, array.shape[1:]) for name, array in arrays.items()])
        plan = rounds.planned.get(kind)
        if plan is None:
            plan = rounds.planned[kind] = Round(rounds.border, kind, self.transport, apart)
        self.wire_bytes += plan.wire_bytes
        self.transport.settle()
        loan = plan.delivery()
        delivery = loan.delivery
        under_way = self.transport.post(plan.sends(arrays), delivery.receives, plan.what)
        rows: dict[str, Received] = {}
        for name, whole in delivery.arrays.items():
            rows[name] = Received(arrays[name], whole, loan)
            if name not in plan.apart:
                rows[name].joined()  # while messages are in flight
        if not delivery.unpack:
            return rows, under_way.wait

        def arrive() -> None:
            under_way.wait()
            for into, places, piece in delivery.unpack:
                into[places] = piece

        return rows, arrive

    def _over(self, edges: Bools) -> _Rounds:
        """Return the rounds over some edges, which mostly equal the last ones."""
        used, rounds = self._some
        if not np.array_equal(used, edges):
            rounds = _Rounds(self._parts.narrowed(self.block, self.block.edges[edges]), {})
            self._some = edges, rounds
        return rounds

    def forward(self, fresh: Bools, rows: Callable[[Ints, Ints], Array]) -> tuple[Bools, dict[int, tuple[Ints, Array]]]:
        """Send some rows of each agent along its out-links, identified by the agents that they come from.

        Copies of a row are equal, so it goes to a rank once in a round, with marks of the agents that sent it. Ranks do
        not know how much to expect, so marks and lengths go first.

        Args:
            fresh: (agents, n); whose rows each agent sends.
            rows: Returns the message with the rows of some agents, given these and the position of a sender of each.

        Returns:
            (heard, n), whose rows each agent that the block hears has sent; and from each rank the agents whose rows it
            sent, with the bytes of its message.
        """
        block, n = self.block, fresh.shape[1]
        heads: dict[int, Array] = {}
        sends: dict[int, Array] = {}
        for peer, places in block.sends.items():
            marks = fresh[places]
            whose = np.flatnonzero(marks.any(axis=0))
            sends[peer] = rows(whose, places[marks[:, whose].argmax(axis=0)]).view(np.uint8)
            heads[peer] = np.append(pack(marks).ravel(), np.uint64(sends[peer].size))
            self.wire_bytes += sends[peer].nbytes
        width = -(-n // 64)
        coming: dict[int, Array] = {
            peer: np.empty((places.stop - places.start) * width + 1, dtype=np.uint64)
            for peer, places in block.receives.items()
        }
        self.transport.swap(heads, coming, f"marks of {n}")
        receives: dict[int, Array] = {peer: np.empty(int(head[-1]), dtype=np.uint8) for peer, head in coming.items()}
        self.transport.swap(sends, receives, "rows to pass on")
        told = np.zeros((len(block.heard), n), dtype=bool)
        told[self._own] = fresh
        for peer, head in coming.items():
            told[block.receives[peer]] = unpack(head[:-1].reshape(-1, width), n)
        return told, {
            peer: (np.flatnonzero(told[block.receives[peer]].any(axis=0)), message)
            for peer, message in receives.items()
        }

    def relay(self, table: Floats, fresh: Bools) -> tuple[Floats, Bools]:
        """Return the tables of the block's sources, and a mask of their new rows; only these are sent."""
        if self._whole:
            return table, fresh
        row = np.dtype([("whose", np.int64), ("row", table.dtype, (table.shape[2],))])

        def message(whose: Ints, senders: Ints) -> Array:
            rows = np.empty(len(whose), dtype=row)
            rows["whose"], rows["row"] = whose, table[senders, whose]
            return rows

        news, messages = self.forward(fresh, message)
        tables = np.zeros((len(self.block.heard), *table.shape[1:]), dtype=table.dtype)
        tables[self._own] = table
        for peer, (whose, received) in messages.items():
            places = self.block.receives[peer]
            sender, of = np.nonzero(news[places])
            tables[places.start + sender, of] = received.view(row)["row"][np.searchsorted(whose, of)]
        return tables, news

    def copies(self, held: Mapping[str, Array]) -> Mapping[str, Array]:
        """Return what this block holds of the messages of those it hears, given what others hold of its own.

        It is known since the last iteration, or asked for if another state is continued from.
        """
        if self._whole or not held:
            return held
        if held is not self._held:
            rows, wait = self.exchange(dict(held), lambda shape: False)
            if wait is not None:
                wait()
            self._held, self._copies = held, {name: received.joined().copy() for name, received in rows.items()}
        return self._copies

    def hold(self, copies: Mapping[str, Array]) -> dict[str, Array]:
        """Keep the copies of an iteration, and return those of the block's own messages."""
        held = dict(copies) if self._whole else {name: rows[self._own] for name, rows in copies.items()}
        self._held, self._copies = held, copies
        return held

    def decoded(self, rows: Mapping[str, tuple[Array, Array]]) -> None:
        """Look at what was sent and at the copies of what was heard, once they are decoded."""

    def first(self, values: Array) -> Array:
        """Return the first agent's values, on every rank; each rank has one agent."""
        others, holds = range(1, self.transport.ranks), self.transport.rank == 0
        for start in range(0, 0 if self._whole else values.shape[1], _AT_ONCE):
            some = values[:, start : start + _AT_ONCE]
            sends = dict.fromkeys(others, some) if holds else {}
            self.transport.swap(sends, {} if holds else {0: some}, f"start {values.dtype}")
        return values

    def names(self, agents: Ints) -> str:
        """Return the names of agents, for messages."""
        return self._parts.graph.names(agents)

    def everyone(self, values: Array) -> Array:
        """Return all agents' values in agent order, on every rank."""
        return self._joined(values, self._agents)

    def everywhere(self, values: Array) -> Array:
        """Return the values of all edges in CSR order, on every rank."""
        return self._joined(values, self._edges)

    def total(self, values: Array) -> Array:
        """Return the sum over ranks. For metrics only: rounding depends on the number of ranks."""
        return values if self._whole else self.transport.each(values).sum(axis=0)

    def _joined(self, values: Array, places: Sequence[Ints], to: int | None = None) -> Array:
        if self._whole:
            return values
        parts = self.transport.gather(values, [len(place) for place in places], to)
        whole = np.empty((sum(map(len, places)), *values.shape[1:]), dtype=values.dtype)
        for place, part in zip(places, parts, strict=False):
            whole[place] = part
        return whole

    def join(self, state: Any) -> dict[str, Array]:
        """Gather the state of all agents on rank 0, as named arrays; the result on other ranks is undefined."""
        arrays, kind = flatten(state), {} if self._whole else kinds(state)
        places = {"agent": self._agents, "edge": self._edges}
        return {
            name: self._joined(array, places[kind[name]], to=0) if kind.get(name) in places else array
            for name, array in arrays.items()
        }

    def split(self, template: S, arrays: dict[str, Array]) -> S:
        """Return this rank's part of a state that only rank 0 holds, as returned by :meth:`join`.

        Args:
            template: A state of this rank, which defines names and shapes.
            arrays: The state of all agents; ignored on ranks other than 0.
        """
        if self._whole:
            return restore(template, arrays)
        places = {"agent": self._agents, "edge": self._edges}
        own: dict[str, Array] = {}
        shapes = self.transport.broadcast(json.dumps({name: array.shape[1:] for name, array in arrays.items()}))
        lengths = {"agent": len(self.block.agents), "edge": len(self.block.edges)}
        template = expecting(template, json.loads(shapes), lengths)
        kind = kinds(template)
        for name, expected in flatten(template).items():
            what = f"split {name} {expected.dtype.str}{expected.shape[1:]}"
            if self.transport.rank > 0:
                own[name] = np.empty_like(expected)
                self.transport.swap({}, {0: own[name]}, what)
                continue
            cuts: Any = places.get(kind[name], [...] * self.transport.ranks)
            parts = [np.ascontiguousarray(arrays[name][cut], dtype=expected.dtype) for cut in cuts]
            own[name] = parts[0].reshape(expected.shape)
            self.transport.swap(dict(enumerate(parts[1:], 1)), {}, what)
        return restore(template, own)
