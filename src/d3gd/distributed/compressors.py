r"""Compressors: rows of numbers as few bytes, with an error that is smaller than the rows.

They act on the difference between what an agent would send and the copies that its receivers hold, and whatever is lost
is part of the next difference. So they need not be unbiased, only contract: :math:`\|x - C(x)\|^2 \le (1 - \delta)
\|x\|^2` with :math:`\delta > 0`.
"""

import math
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from d3gd.arrays import Floats
from d3gd.errors import SettingsError
from d3gd.validation import is_number, plain, shown

Bytes: TypeAlias = npt.NDArray[np.uint8]
Numbers: TypeAlias = npt.NDArray[np.int8]


@runtime_checkable
class Compressor(Protocol):
    r"""What turns rows into bytes and back, row by row: a row's bytes depend on that row alone.

    Attributes:
        damping: :math:`\zeta` in (0, 1]: agents mix with :math:`(1 - \zeta) I + \zeta A`. The more iterations a number
            may wait until it is sent, the smaller it has to be.
    """

    @property
    def damping(self) -> float:
        """See above."""

    def encode(self, rows: Floats) -> Bytes:
        """Return the bytes of each row, (agents, bytes); their number is the same for all rows of one length."""

    def decode(self, message: Bytes, width: int) -> Floats:
        """Return what the bytes say, (agents, width)."""


class _Rounded:
    """Whole numbers in blocks with a scale each: multiples of a fraction of the largest number of the block."""

    damping = 1.0
    largest: int
    block: int  # numbers that share a scale
    halved: bool  # whether scales travel in two bytes

    def encode(self, rows: Floats) -> Bytes:
        """Return the scales, then the numbers."""
        blocks = _blocks(rows, self.block)
        scales = self._scales_packed((np.abs(blocks).max(axis=2) / self.largest).astype(np.float32))
        units = self._scales_unpacked(scales)[:, :, None].astype(rows.dtype)  # as receivers find them
        ratios = np.divide(blocks, units, out=np.zeros_like(blocks), where=units != 0)
        numbers = np.rint(np.clip(ratios, -self.largest, self.largest)).astype(np.int8)
        flat = np.ascontiguousarray(numbers.reshape(len(rows), -1)[:, : rows.shape[1]])
        return np.concatenate([scales, self._packed(flat)], axis=1)

    def decode(self, message: Bytes, width: int) -> Floats:
        """Return the numbers times their scales."""
        block = min(width, self.block)
        size = (2 if self.halved else 4) * -(-width // block)
        scales = self._scales_unpacked(message[:, :size])
        numbers = self._unpacked(np.ascontiguousarray(message[:, size:]))[:, :width]
        values: Floats = numbers * np.repeat(scales, block, axis=1)[:, :width]
        return values

    def _scales_packed(self, scales: Floats) -> Bytes:
        return BF16().encode(scales) if self.halved else scales.view(np.uint8)

    def _scales_unpacked(self, packed: Bytes) -> Floats:
        if self.halved:
            return BF16().decode(packed, packed.shape[1] // 2)
        return np.ascontiguousarray(packed).view(np.float32).astype(np.float64)

    def _packed(self, numbers: Numbers) -> Bytes:
        return numbers.view(np.uint8)

    def _unpacked(self, packed: Bytes) -> Numbers:
        return packed.view(np.int8)


@dataclass(frozen=True)
class Int8(_Rounded):
    r"""One byte per number, and a scale, 4 bytes, for every 256 of them.

    Numbers are rounded to multiples of 1/127 of the largest of their block: :math:`1 - \delta \le 256 / 254^2`.

    Example:
        >>> message = Int8().encode(np.array([[-1.0, 0.5, 0.0]]))
        >>> message.shape, Int8().decode(message, 3).round(2)
        ((1, 7), array([[-1. ,  0.5,  0. ]]))
    """

    largest, block, halved = 127, 256, False


@dataclass(frozen=True)
class Int4(_Rounded):
    r"""Half a byte per number, and a scale, 2 bytes, for every 64 of them.

    Numbers are rounded to multiples of 1/7 of the largest of their block. A block of that one and others of half a
    multiple is the worst, :math:`63 / (4 \cdot 7^2 + 63)` but for the rounding of scales: :math:`1 - \delta \le 1/4`.

    Example:
        >>> message = Int4().encode(np.array([[-1.0, 0.4, 0.0]]))
        >>> message.shape, Int4().decode(message, 3).round(2)
        ((1, 4), array([[-1.  ,  0.43,  0.  ]]))
    """

    largest, block, halved = 7, 64, True

    def _packed(self, numbers: Numbers) -> Bytes:
        even = np.pad(numbers, ((0, 0), (0, numbers.shape[1] % 2))).view(np.uint8) & 0xF
        return (even[:, ::2] | even[:, 1::2] << 4).astype(np.uint8)

    def _unpacked(self, packed: Bytes) -> Numbers:
        pairs = np.stack([packed << 4, packed & 0xF0], axis=2).view(np.int8) >> 4  # shifts keep the sign
        return pairs.reshape(len(packed), -1)


@dataclass(frozen=True)
class BF16:
    r"""Two bytes per number: the upper half of a float32, rounded to nearest, so that :math:`1 - \delta \le 2^{-16}`.

    Example:
        >>> BF16().decode(BF16().encode(np.array([[1.0, -0.1]])), 2)
        array([[ 1.        , -0.10009766]])
    """

    damping = 1.0

    def encode(self, rows: Floats) -> Bytes:
        """Return the upper halves."""
        bits = np.ascontiguousarray(rows, dtype=np.float32).view(np.uint32)
        halves = (bits + (((bits >> 16) & 1) + 0x7FFF)) >> 16
        halves = np.where(np.isnan(rows), 0x7FC0, halves)  # rounding would overflow
        return halves.astype(np.uint16).view(np.uint8)

    def decode(self, message: Bytes, width: int) -> Floats:
        """Return the numbers, with zeros for the lower halves."""
        halves = np.ascontiguousarray(message).view(np.uint16).astype(np.uint32)
        values: Floats = (halves << 16).view(np.float32).astype(np.float64)
        return values


@dataclass(frozen=True)
class TopK:
    r"""The largest numbers alone, by their size, each with its place: 8 bytes for each of them.

    Numbers travel in single precision. :math:`\delta` is at least the share, for all rows.

    Args:
        share: The share of the numbers that are sent; at least one is.

    Example:
        >>> TopK(0.5).decode(TopK(0.5).encode(np.array([[0.1, -3.0, 2.0, 0.0]])), 4)
        array([[ 0., -3.,  2.,  0.]])
    """

    share: float

    def __post_init__(self) -> None:
        if not (is_number(self.share) and 0 < self.share <= 1):
            raise SettingsError(f"topk:{shown(self.share)}: it must be a share in (0, 1], as in topk:0.01")
        object.__setattr__(self, "share", float(plain(self.share)))

    @property
    def damping(self) -> float:
        """A number is sent every 1 / share iterations, or later."""
        return self.share

    def encode(self, rows: Floats) -> Bytes:
        """Return the places in ascending order, then the numbers."""
        width = rows.shape[1]
        count = max(1, math.ceil(self.share * width))
        if count < width:
            places = np.sort(np.argpartition(-np.abs(rows), count - 1, axis=1)[:, :count], axis=1)
        else:
            places = np.tile(np.arange(width), (len(rows), 1))
        values = np.take_along_axis(rows, places, axis=1).astype(np.float32)
        return np.concatenate([places.astype(np.uint32).view(np.uint8), values.view(np.uint8)], axis=1)

    def decode(self, message: Bytes, width: int) -> Floats:
        """Return rows that are zero but for these numbers."""
        half = message.shape[1] // 2
        places = np.ascontiguousarray(message[:, :half]).view(np.uint32).astype(np.int64)
        values = np.ascontiguousarray(message[:, half:]).view(np.float32)
        rows = np.zeros((len(message), width))
        np.put_along_axis(rows, np.minimum(places, width - 1), values.astype(np.float64), axis=1)
        return rows


_NAMED: dict[str, Compressor] = {"int8": Int8(), "int4": Int4(), "bf16": BF16()}


def compressor(given: Any) -> Compressor:
    """Return a compressor by its name, or a user's own.

    Args:
        given: ``"int8"``, ``"int4"``, ``"bf16"``, ``"topk:0.01"`` with a share of the numbers, or an object with
            ``encode``, ``decode`` and ``damping``.

    Example:
        >>> compressor("topk:0.01")
        TopK(share=0.01)
    """
    if isinstance(given, str):
        name, _, share = given.strip().lower().partition(":")
        if name in _NAMED and not share:
            return _NAMED[name]
        if name == "topk":
            try:
                return TopK(float(share))
            except ValueError:
                pass
    elif isinstance(given, Compressor) and not isinstance(given, type):
        if not (is_number(given.damping) and 0 < given.damping <= 1):
            raise SettingsError(f"damping = {shown(given.damping)} of {_name(given)}: it must be in (0, 1]; 1 is none")
        return given
    raise SettingsError(
        f'compress = {shown(given)}: it must be "int8", "int4", "bf16" or "topk:" with a share, such as "topk:0.01", '
        "or an object with encode, decode and damping (d3gd.distributed.compressors.Compressor)"
    )


def encoded(by: Compressor, rows: Floats) -> Bytes:
    """Return the bytes of rows, or raise an error that names what a user's compressor returned."""
    message = by.encode(rows)
    if not isinstance(message, np.ndarray) or message.dtype != np.uint8 or message.shape[:1] != rows.shape[:1]:
        raise SettingsError(f"{_name(by)}.encode returned {_described(message)}; return uint8, one row per row given")
    return message


def decoded(by: Compressor, message: Bytes, width: int) -> Floats:
    """Return what bytes say, or raise an error that names what a user's compressor returned."""
    rows = by.decode(message, width)
    if not isinstance(rows, np.ndarray) or rows.dtype.kind != "f" or rows.shape != (len(message), width):
        wanted = f"floats of shape {(len(message), width)}"
        raise SettingsError(f"{_name(by)}.decode returned {_described(rows)}; return {wanted}")
    return rows


def _blocks(rows: Floats, block: int) -> Floats:
    """Return rows in blocks, the last filled up with zeros."""
    count, width = rows.shape
    block = min(width, block)
    short = -width % block
    whole = rows if not short else np.pad(rows, ((0, 0), (0, short)))
    return whole.reshape(count, -1, block)


def _name(value: Any) -> str:
    return type(value).__name__


def _described(value: Any) -> str:
    return f"{value.dtype} of shape {value.shape}" if isinstance(value, np.ndarray) else f"a {_name(value)}"
