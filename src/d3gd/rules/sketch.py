"""Sketches: short vectors with the same inner products, on average, sent in place of long ones."""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from d3gd.arrays import Array, Floats, Ints
from d3gd.random import keyed_words

_STREAM = 1  # of the keyed draws, distinct from those of mini-batches and participation
_LONG = 1 << 18  # numbers of a vector from which the compiled kernel is worth loading
_WORD = 64  # bits


@dataclass(frozen=True)
class Sketch:
    r"""A seeded linear map :math:`S: R^d \to R^s` with :math:`E \langle Su, Sv \rangle = \langle u, v \rangle`.

    Each coordinate is added, with a random sign, to one entry of the sketch (a count sketch). A vector is divided into
    blocks of s coordinates, and every block is turned by a random number of places: two coordinates of a block never
    meet, others do with probability 1/s. So a block takes one random number and s random bits, all are read in one pass
    over the vector, and the map is the same for every agent that knows the seed. The variance of
    :math:`\langle Su, Sv \rangle` is at most :math:`2 \|u\|^2 \|v\|^2 / s`. Vectors of length s or less are kept.

    Args:
        dim: d, the length of the vectors.
        size: s, the length of their sketches.
        seed: The key of the map.

    Example:
        >>> sketch = Sketch(1000, 64)
        >>> sketch(np.ones((2, 1000))).shape
        (2, 64)

    References:
        Charikar, Chen and Farach-Colton, *Finding frequent items in data streams*, ICALP 2002.
    """

    dim: int
    size: int
    seed: int = 0

    @property
    def length(self) -> int:
        """The length of a sketch."""
        return min(self.size, self.dim)

    def __call__(self, rows: Floats) -> Floats:
        """Return the sketch of every row, in double precision."""
        if self.dim <= self.size:
            return rows.astype(np.float64, copy=False)
        if self.dim < _LONG:
            return plain(_drawn(self), self.size, rows)
        from d3gd.kernels.sketching import sketched  # slow to import, and short vectors do not need it

        return sketched(*_drawn(self), self.size, rows)


class Drawn(NamedTuple):
    """What is random of a sketch, per block."""

    bits: Array  # (blocks, words)  signs of its coordinates: 1 is minus
    turns: Ints  # (blocks,)


@lru_cache(maxsize=8)
def _drawn(sketch: Sketch) -> Drawn:
    blocks, words = -(-sketch.dim // sketch.size), -(-sketch.size // _WORD)
    draws = keyed_words(sketch.seed, np.arange(blocks), 0, words + 1, stream=_STREAM)
    return Drawn(np.ascontiguousarray(draws[:, 1:]), (draws[:, 0] % np.uint64(sketch.size)).astype(np.int64))


def plain(drawn: Drawn, size: int, rows: Floats) -> Floats:
    """Return sketches with NumPy; the compiled kernel adds in the same order.

    Coordinates that a turn carries past the end of the sketch are added up by themselves, and then to the others.
    """
    blocks = len(drawn.turns)
    bits = np.unpackbits(drawn.bits.astype("<u8").view(np.uint8), axis=1, bitorder="little")[:, :size]
    padded = np.zeros((len(rows), blocks * size))
    padded[:, : rows.shape[1]] = rows
    signed = padded.reshape(len(rows), blocks, size) * (1.0 - 2.0 * bits)
    places = drawn.turns[:, None] + np.arange(size)
    turned = np.take_along_axis(signed, np.argsort(places % size, axis=1)[None], axis=2)
    past = (np.arange(size) < drawn.turns[:, None])[None]
    sketches: Floats = np.where(past, 0.0, turned).sum(axis=1) + np.where(past, turned, 0.0).sum(axis=1)
    return sketches
