"""Packing of rows into messages between ranks."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from d3gd.arrays import Array, Ints
from d3gd.distributed.partition import Border, runs_of
from d3gd.errors import TransportError
from d3gd.transports.base import Messages, Transport

Kind: TypeAlias = tuple[tuple[str, np.dtype, tuple[int, ...]], ...]  # name, dtype and shape of a row, per array

_EXCHANGED = (np.float64, np.float32, np.uint8)


class _Piece(NamedTuple):
    """The part of a message that holds some rows of one array."""

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]  # first axis: rows
    place: slice  # in the message's bytes


class _Message(NamedTuple):
    """A message to or from a peer, in one buffer."""

    peer: int
    rows: slice | Ints  # indices of the block's agents, or of the received rows
    pieces: list[_Piece]
    size: int  # bytes

    @property
    def straight(self) -> bool:
        """Whether it is contiguous rows of one array."""
        return len(self.pieces) == 1 and isinstance(self.rows, slice)


class Round:
    """The messages of an exchange of given arrays, reused in every round.

    Arrays are packed into one message per peer. Rows of an array that is large for the transport are sent separately
    and in place: in one message if they are contiguous, in one per contiguous run if the runs are still large, and else
    as a copy. Both sides follow the same rule.

    Args:
        border: The rows to send and to receive.
        kind: The arrays.
        transport: The ranks; it defines from which size on rows are sent separately.
        apart: Whether to keep own and received rows of an array of a given shape separate.

    Attributes:
        apart: The names of those arrays.
        what: A description of the round, which must be equal on all ranks.
        wire_bytes: The bytes that the rank sends in each round.
    """

    def __init__(
        self, border: Border, kind: Kind, transport: Transport, apart: Callable[[tuple[int, ...]], bool]
    ) -> None:
        for name, dtype, _ in kind:
            if dtype not in _EXCHANGED:
                raise TransportError(
                    f"{name} holds {dtype} numbers; ranks exchange float64 and float32 only: convert it"
                )
        self.what = "round " + ", ".join(f"{name} {dtype}{list(row)}" for name, dtype, row in kind)
        self._kind, self._transport, self._heard = kind, transport, border.heard
        self.apart = {name for name, _, row in kind if apart((border.heard, *row))}
        self._sends = [
            message for peer, rows in border.sends.items() for message in self._messages(peer, rows, runs_of(rows))
        ]
        self._receives = [
            message
            for peer, places in border.receives.items()
            for message in self._messages(peer, places, border.runs[peer])
        ]
        self._packed = [None if message.straight else _packed(message, transport) for message in self._sends]
        self._free: list[Delivery] = []
        self.wire_bytes = sum(message.size for message in self._sends)

    def sends(self, arrays: dict[str, Array]) -> Messages:
        """Return the messages to send: contiguous rows in place, others copied to a buffer of the round.

        The messages of the last round must have been sent.
        """
        messages: list[tuple[int, Any]] = []
        for (peer, rows, pieces, _), packed in zip(self._sends, self._packed, strict=True):
            if packed is None:
                together = np.ascontiguousarray(arrays[pieces[0].name])[rows]
                messages.append((peer, self._transport.buffer(together)))
                continue
            buffer, places = packed
            for name, place in places:
                if isinstance(rows, slice):
                    place[:] = arrays[name][rows]
                else:
                    arrays[name].take(rows, axis=0, out=place, mode="clip")  # "raise" would make another copy
            messages.append((peer, buffer))
        return messages

    def delivery(self) -> "Loan":
        """Lend buffers for the received rows. Messages of the last round must have arrived."""
        free = self._free
        delivery = free.pop() if free else Delivery(self._kind, self._heard, self._receives, self._transport)
        return Loan(delivery, free)

    def _messages(self, peer: int, rows: Ints, runs: Sequence[int]) -> list[_Message]:
        """Divide arrays among messages; ``rows`` and ``runs`` must have equal lengths on both sides."""
        messages: list[_Message] = []
        small: list[tuple[str, np.dtype, tuple[int, ...]]] = []
        ends = np.cumsum([0, *runs]).tolist()
        # The widest dtype first, so that all arrays are aligned in a packed message.
        for array in sorted(self._kind, key=lambda array: -array[1].itemsize):
            size = len(rows) * _row_bytes(array)
            if size < self._transport.large:
                small.append(array)
            elif size >= self._transport.large * len(runs):
                messages += [_message(peer, rows[a:b], [array]) for a, b in pairwise(ends)]
            else:
                messages.append(_message(peer, rows, [array]))
        packed = [_message(peer, rows, small)] if small else []
        return [message for message in (*messages, *packed) if message.size]


class Delivery:
    """Buffers for the received rows, reused because page faults on new memory cost as much as the copy.

    Args:
        kind: The arrays.
        heard: The number of rows of each array.
        messages: The messages to receive.
        transport: The ranks.

    Attributes:
        arrays: All rows of each array; messages fill those of other ranks, and unsent rows are zero.
        receives: The messages' senders, and buffers to receive them.
        unpack: The copies to make after arrival.
    """

    def __init__(self, kind: Kind, heard: int, messages: Sequence[_Message], transport: Transport) -> None:
        self.arrays: dict[str, Array] = {name: np.zeros((heard, *row), dtype) for name, dtype, row in kind}
        self.receives: list[tuple[int, Any]] = []
        self.unpack: list[tuple[Array, slice | Ints, Array]] = []
        for message in messages:
            peer, places, pieces, _ = message
            if message.straight:
                self.receives.append((peer, transport.buffer(self.arrays[pieces[0].name][places])))
                continue
            buffer, arrived = _packed(message, transport)
            self.receives.append((peer, buffer))
            self.unpack += [(self.arrays[name], places, piece) for name, piece in arrived]


class Loan:
    """A delivery that may still be read; when the loan ends, its buffers can be reused.

    Args:
        delivery: The buffers.
        free: The list to which they return.
    """

    __slots__ = ("_free", "delivery")

    def __init__(self, delivery: Delivery, free: list[Delivery]) -> None:
        self.delivery, self._free = delivery, free

    def __del__(self) -> None:
        self._free.append(self.delivery)


def _packed(message: _Message, transport: Transport) -> tuple[Any, list[tuple[str, Array]]]:
    """Return a buffer for a message, and the place of each array in it."""
    memory = np.empty(message.size, dtype=np.uint8)
    places = [(name, memory[place].view(dtype).reshape(shape)) for name, dtype, shape, place in message.pieces]
    return transport.buffer(memory), places


def _message(peer: int, rows: Ints, arrays: Sequence[tuple[str, np.dtype, tuple[int, ...]]]) -> _Message:
    ends = np.cumsum([0, *(len(rows) * _row_bytes(array) for array in arrays)]).tolist()
    pieces = [
        _Piece(name, dtype, (len(rows), *row), slice(start, end))
        for (name, dtype, row), (start, end) in zip(arrays, pairwise(ends), strict=True)
    ]
    together = slice(int(rows[0]), int(rows[-1]) + 1)
    return _Message(peer, together if together.stop - together.start == len(rows) else rows, pieces, ends[-1])


def _row_bytes(array: tuple[str, np.dtype, tuple[int, ...]]) -> int:
    _, dtype, row = array
    return int(dtype.itemsize * math.prod(row))
