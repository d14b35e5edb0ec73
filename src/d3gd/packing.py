"""What goes into which message when a rank exchanges rows with its peers."""

import math
from typing import NamedTuple, TypeAlias

import numpy as np

from d3gd.arrays import Array, Ints
from d3gd.errors import TransportError
from d3gd.memory import Memory
from d3gd.partition import Block

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


class Packing:
    """How the arrays of a round travel.

    Arrays are packed into one message per peer. One that is large by the measure of the transport travels by itself,
    from where it is to where it is wanted, as does an array alone. Both sides follow the same rule.

    Args:
        block: The rank's part of the network.
        kind: The arrays.
        large: From how many bytes on rows of an array travel by themselves.

    Attributes:
        what: The round in words; ranks whose words differ do not fit together.
        wire_bytes: What the rank sends in one round.
    """

    def __init__(self, block: Block, kind: Kind, large: float) -> None:
        for name, dtype, _ in kind:
            if dtype not in _EXCHANGED:
                raise TransportError(
                    f"{name} holds {dtype} numbers; ranks exchange float64 and float32 only: convert it"
                )
        self.what = "round " + ", ".join(f"{name} {dtype}{list(row)}" for name, dtype, row in kind)
        # The widest numbers first, so that all stay aligned in a packed message.
        self._kind = sorted(kind, key=lambda array: -array[1].itemsize)
        self._large = large
        self._sends = [
            message
            for peer, rows in block.sends.items()
            for message in self._messages(peer, _as_slice(rows), len(rows))
        ]
        self._receives = [
            message
            for peer, places in block.receives.items()
            for message in self._messages(peer, places, places.stop - places.start)
        ]
        self.wire_bytes = sum(message.size for message in self._sends)

    def sends(self, arrays: dict[str, Array], memory: Memory) -> list[tuple[int, Array]]:
        """Return the messages to send: rows where they are, if they lie together, or else a copy."""
        messages: list[tuple[int, Array]] = []
        for peer, rows, pieces, size in self._sends:
            first = np.ascontiguousarray(arrays[pieces[0].name])
            if len(pieces) == 1 and isinstance(rows, slice):
                messages.append((peer, first[rows]))
                continue
            packed = memory.empty((size,), np.uint8)
            for name, dtype, shape, place in pieces:
                piece = packed[place].view(dtype).reshape(shape)
                if isinstance(rows, slice):
                    piece[:] = arrays[name][rows]
                else:
                    np.take(arrays[name], rows, axis=0, out=piece, mode="clip")  # "raise" would copy once more
            messages.append((peer, packed))
        return messages

    def receives(
        self, inbox: dict[str, Array], memory: Memory
    ) -> tuple[list[tuple[int, Array]], list[tuple[Array, Array]]]:
        """Return the messages to receive, and what to copy where afterwards.

        Args:
            inbox: Arrays for the rows of all whom the block hears.
            memory: Where to take memory from.
        """
        messages: list[tuple[int, Array]] = []
        unpack: list[tuple[Array, Array]] = []
        for peer, places, pieces, size in self._receives:
            if len(pieces) == 1:
                messages.append((peer, inbox[pieces[0].name][places]))
                continue
            packed = memory.empty((size,), np.uint8)
            messages.append((peer, packed))
            for name, dtype, shape, place in pieces:
                unpack.append((inbox[name][places], packed[place].view(dtype).reshape(shape)))
        return messages, unpack

    def _messages(self, peer: int, rows: slice | Ints, count: int) -> list[_Message]:
        large = [array for array in self._kind if count * _row_bytes(array) >= self._large]
        small = [array for array in self._kind if count * _row_bytes(array) < self._large]
        messages: list[_Message] = []
        for group in [*([array] for array in large), *([small] if small else [])]:
            ends = np.cumsum([0, *(count * _row_bytes(array) for array in group)]).tolist()
            pieces = [
                _Piece(name, dtype, (count, *row), slice(start, end))
                for (name, dtype, row), start, end in zip(group, ends[:-1], ends[1:], strict=True)
            ]
            messages.append(_Message(peer, rows, pieces, ends[-1]))
        return messages


def _row_bytes(array: tuple[str, np.dtype, tuple[int, ...]]) -> int:
    _, dtype, row = array
    return int(dtype.itemsize * math.prod(row))


def _as_slice(rows: Ints) -> slice | Ints:
    first, last = int(rows[0]), int(rows[-1]) + 1
    return slice(first, last) if last - first == len(rows) else rows
