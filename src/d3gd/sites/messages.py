"""What sites say to each other: a header in MessagePack and, for models, raw bytes."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeAlias

import msgspec
import numpy as np

from d3gd.arrays import Array
from d3gd.errors import D3GDError

PROTOCOL = 2
_DTYPES = ("<f8", "<f4", "<i8", "|u1")
NAME = r"[\w.-]{1,64}"  # of sites and sessions: nothing that could control a terminal or leave a folder
_MOST = 10_000  # sites in a table
MOST_GOT = 64  # acknowledgements in a message
_Name = Annotated[str, msgspec.Meta(pattern=f"^{NAME}$", max_length=64)]
_Word = Annotated[str, msgspec.Meta(max_length=256)]
_Whole = Annotated[int, msgspec.Meta(ge=0)]


class UnfitError(D3GDError):
    """A message that is dropped; its text says why."""


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """What every message says.

    Attributes:
        protocol: The version of this format.
        session: The name of the training that it belongs to.
        sender: The name of the site that sends it.
        boot: When the sender's process was started, in nanoseconds: a later one replaces an earlier one.
        number: Consecutive for one receiver, so that it finds out what was repeated and the sender what was lost.
        at: The iteration at which the sender is.
        oldest: The first iteration whose messages the sender can repeat.
        knows: The receiver's ``boot``, if it is known.
        seen: The largest ``number`` that the sender has received from the receiver.
        got: The numbers of data that have arrived since the last message.
    """

    protocol: _Whole
    session: _Name
    sender: _Name
    boot: _Whole
    number: _Whole
    at: _Whole = 0
    oldest: _Whole = 0
    knows: _Whole = 0
    seen: _Whole = 0
    got: Annotated[tuple[_Whole, ...], msgspec.Meta(max_length=MOST_GOT)] = ()


class Hello(Message, frozen=True, kw_only=True, tag="hello"):
    """The first message: what must be equal at both ends.

    Attributes:
        version: The sender's version of d3gd.
        clock: Its time, in seconds since 1970.
        settings: What it runs, in words.
    """

    version: _Word
    clock: float
    settings: Annotated[dict[_Word, Annotated[str, msgspec.Meta(max_length=2000)]], msgspec.Meta(max_length=64)]


class Row(msgspec.Struct, frozen=True):
    """What a site says of itself to all: whom it hears.

    Attributes:
        version: Replaced by a larger one if the site's file has changed.
        hears: The names of the sites that it hears.
        samples: The number of its samples, if objectives are weighed by them.
        changed: The iteration at which it joined, or at which the sites that it hears changed; 0 if that never was.
    """

    version: _Whole
    hears: Annotated[tuple[_Name, ...], msgspec.Meta(max_length=_MOST)]
    samples: _Whole = 0
    changed: _Whole = 0


class Rows(Message, frozen=True, kw_only=True, tag="rows"):
    """All that the sender knows of the network; passed on along the links."""

    rows: Annotated[dict[_Name, Row], msgspec.Meta(max_length=_MOST)]


class Beat(Message, frozen=True, kw_only=True, tag="beat"):
    """A sign of life.

    Attributes:
        rows: A digest of the last :class:`Rows` from the receiver.
        ended: How the sender's run ended, such as ``"completed"``; empty while it goes on.
    """

    rows: _Word = ""
    ended: _Word = ""


class Spec(msgspec.Struct, frozen=True):
    """One array of a message."""

    name: _Word
    dtype: _Word
    shape: Annotated[tuple[_Whole, ...], msgspec.Meta(max_length=8)]


class Data(Message, frozen=True, kw_only=True, tag="data"):
    """A round's arrays, whose bytes follow in frames of their own.

    Attributes:
        iteration: The iteration that they belong to.
        turn: The number of the round in it.
        edition: The network in which they were computed: see :class:`d3gd.sites.membership.Edition`.
        arrays: Their names, dtypes and shapes.
    """

    iteration: _Whole
    turn: _Whole
    edition: _Word = ""
    arrays: Annotated[tuple[Spec, ...], msgspec.Meta(max_length=64)]


class Ack(Message, frozen=True, kw_only=True, tag="ack"):
    """Nothing but what every message says: that data have arrived."""


Any_: TypeAlias = Hello | Rows | Beat | Data | Ack
_decoder: msgspec.msgpack.Decoder[Any_] = msgspec.msgpack.Decoder(Any_)
_encoder = msgspec.msgpack.Encoder()


class _Version(msgspec.Struct):
    protocol: int


def encode(message: Message) -> bytes:
    """Return the header of a message."""
    return _encoder.encode(message)


def decode(header: Any) -> Any_:
    """Return a message from its header, or raise an :class:`UnfitError`."""
    try:
        message = _decoder.decode(header)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise UnfitError(f"a message that cannot be read ({_version(header) or error})") from None
    if message.protocol != PROTOCOL:
        raise UnfitError(_foreign(message.protocol))
    return message


def _version(header: Any) -> str:
    try:
        found = msgspec.msgpack.decode(header, type=_Version).protocol
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return ""
    return _foreign(found) if found != PROTOCOL else ""


def _foreign(found: int) -> str:
    return f"it speaks version {found} of the protocol, this site {PROTOCOL}; install the same d3gd at both ends"


def describe(arrays: Mapping[str, Array]) -> tuple[Spec, ...]:
    """Return the header's part for some arrays.

    Example:
        >>> describe({"x": np.zeros((1, 3))})
        (Spec(name='x', dtype='<f8', shape=(1, 3)),)
    """
    return tuple(
        Spec(name, array.dtype.newbyteorder("<").str, tuple(map(int, array.shape))) for name, array in arrays.items()
    )


def unpack(specs: Sequence[Spec], frames: Sequence[Any], bound: float) -> dict[str, Array]:
    """Return the arrays of a message, or raise an :class:`UnfitError` if any of them is not sound.

    Args:
        specs: What the header says of them.
        frames: Their bytes.
        bound: The largest number that is not absurd.
    """
    if len(frames) != len(specs) or len({spec.name for spec in specs}) != len(specs):
        raise UnfitError(f"{len(specs)} arrays in {len(frames)} frames")
    arrays: dict[str, Array] = {}
    for spec, frame in zip(specs, frames, strict=True):
        if spec.dtype not in _DTYPES:
            raise UnfitError(f"numbers of type {spec.dtype!r}; only {', '.join(_DTYPES)} are sent")
        size = np.dtype(spec.dtype).itemsize
        for length in spec.shape:
            size *= length
        if size != len(frame):
            raise UnfitError(f"{len(frame)} bytes for an array of shape {list(spec.shape)}")
        array = np.frombuffer(frame, dtype=spec.dtype).reshape(spec.shape)
        # One comparison finds NaN, infinite and absurd numbers.
        if array.size and array.dtype.kind == "f" and not max(-array.min(), array.max()) <= bound:
            raise UnfitError(f"{spec.name!r} holds {_worst(array)}, which no sound model does")
        arrays[spec.name] = array
    return arrays


def _worst(array: Array) -> str:
    if np.isnan(array).any():
        return "NaN"
    return f"numbers up to {np.abs(array).max():.3g}"
