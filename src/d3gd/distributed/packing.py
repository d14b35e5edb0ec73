"""What goes into which message when a rank exchanges rows with its peers."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from d3gd.arrays import Array, Ints
from d3gd.distributed.partition import Border, runs_of
from d3gd.errors import TransportError
from d3gd.transports.base import Messages, Transport

Kind: TypeAlias = tuple[tuple[str, np.dtype, tuple[int, ...]], ...]  # name, numbers and shape of a row, per array

_EXCHANGED = (np.float64, np.float32)


class _Piece(NamedTuple):
    """The part of a message that holds some rows of one array."""

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]  # the rows' number first
    place: slice  # in the message's bytes


class _Message(NamedTuple):
    """What a peer gets, or sends, in one piece of memory."""

    peer: int
    rows: slice | Ints  # which of the block's agents, or where in what it hears
    pieces: list[_Piece]
    size: int  # bytes

    @property
    def straight(self) -> bool:
        """Whether it is rows of one array as they lie in memory."""
        return len(self.pieces) == 1 and isinstance(self.rows, slice)


class Round:
    """How arrays travel, each time that these are exchanged.

    Arrays are packed into one message per peer. The rows of one that is large by the measure of the transport travel by
    themselves, from where they are to where they are wanted: in one message if they lie together, in one for each run
    of rows that do if those are still large, and else in a copy. Both sides follow the same rule.

    Args:
        border: What crosses from and to the rank.
        kind: The arrays.
        transport: The ranks; it says from how many bytes on rows travel by themselves.
        apart: Tells of which shape arrays are wanted in two parts, own rows and others.

    Attributes:
        apart: The names of those arrays.
        what: The round in words; ranks whose words differ do not fit together.
        wire_bytes: What the rank sends each time.
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
        packed = [None if m.straight else np.empty(m.size, dtype=np.uint8) for m in self._sends]
        self._packed = [(None, None) if array is None else (array, transport.buffer(array)) for array in packed]
        self._free: list[Delivery] = []
        self.wire_bytes = sum(message.size for message in self._sends)

    def sends(self, arrays: dict[str, Array]) -> Messages:
        """Return the messages to send: rows where they are, if they lie together, or else in memory of the round.

        What was sent the last time must have left.
        """
        messages: list[tuple[int, Any]] = []
        for (peer, rows, pieces, _), (packed, buffer) in zip(self._sends, self._packed, strict=True):
            if packed is None:
                together = np.ascontiguousarray(arrays[pieces[0].name])[rows]
                messages.append((peer, self._transport.buffer(together)))
                continue
            for name, dtype, shape, place in pieces:
                piece = packed[place].view(dtype).reshape(shape)
                if isinstance(rows, slice):
                    piece[:] = arrays[name][rows]
                else:
                    np.take(arrays[name], rows, axis=0, out=piece, mode="clip")  # "raise" would copy once more
            messages.append((peer, buffer))
        return messages

    def delivery(self) -> "Loan":
        """Lend memory for what arrives. Messages of the last round must have arrived."""
        free = self._free
        delivery = free.pop() if free else Delivery(self._kind, self._heard, self._receives, self._transport)
        return Loan(delivery, free)

    def _messages(self, peer: int, rows: Ints, runs: Sequence[int]) -> list[_Message]:
        """Divide arrays among messages; what is told of ``rows`` and ``runs`` is the same on both sides."""
        messages: list[_Message] = []
        small: list[tuple[str, np.dtype, tuple[int, ...]]] = []
        ends = np.cumsum([0, *runs]).tolist()
        # The widest numbers first, so that all stay aligned in a packed message.
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
    """Memory for what one round brings; fresh pages cost as much as the copy into them, so it is used again.

    Args:
        kind: The arrays.
        heard: How many rows each has.
        messages: What arrives.
        transport: The ranks.

    Attributes:
        arrays: All rows of each array; only those of others are filled by messages, and those that never come are zero.
        receives: The messages' senders, and buffers to receive them.
        unpack: What to copy where once they have arrived.
    """

    def __init__(self, kind: Kind, heard: int, messages: Sequence[_Message], transport: Transport) -> None:
        self.arrays: dict[str, Array] = {name: np.zeros((heard, *row), dtype) for name, dtype, row in kind}
        self.receives: list[tuple[int, Any]] = []
        self.unpack: list[tuple[Array, slice | Ints, Array]] = []
        for message in messages:
            peer, places, pieces, size = message
            if message.straight:
                self.receives.append((peer, transport.buffer(self.arrays[pieces[0].name][places])))
                continue
            packed = np.empty(size, dtype=np.uint8)
            self.receives.append((peer, transport.buffer(packed)))
            for name, dtype, shape, place in pieces:
                self.unpack.append((self.arrays[name], places, packed[place].view(dtype).reshape(shape)))


class Loan:
    """A delivery while somebody may read it; the end of the loan makes its memory free for another round.

    Args:
        delivery: What is lent.
        free: Where it returns to.
    """

    __slots__ = ("_free", "delivery")

    def __init__(self, delivery: Delivery, free: list[Delivery]) -> None:
        self.delivery, self._free = delivery, free

    def __del__(self) -> None:
        self._free.append(self.delivery)


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
