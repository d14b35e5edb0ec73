"""Sketches: short vectors with the same inner products, on average, sent in place of long ones."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from d3gd.arrays import Floats, Ints
from d3gd.random import keyed_uniform

_STREAM = 1  # of the keyed draws, distinct from those of mini-batches and participation


@dataclass(frozen=True)
class Sketch:
    r"""A seeded linear map :math:`S: R^d \to R^s` with :math:`E \langle Su, Sv \rangle = \langle u, v \rangle`.

    Each coordinate is added, with a random sign, to one random entry of the sketch (a count sketch): d additions, no
    d x s matrix, and the same map for every agent that knows the seed. The variance of
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
        order, signs, starts = _placement(self)
        sketches: Floats = np.add.reduceat(rows[:, order] * signs, starts, axis=1)
        return sketches


@lru_cache(maxsize=8)
def _placement(sketch: Sketch) -> tuple[Ints, Floats, Ints]:
    """Return the coordinates sorted by their entry, their signs in that order, and where each entry starts."""
    draws = keyed_uniform(sketch.seed, np.arange(sketch.dim), 0, 3, stream=_STREAM)
    entries = (draws[:, 0] * sketch.size).astype(np.int64)
    # The first s coordinates of a random permutation get one entry each, so that none is empty.
    entries[np.argsort(draws[:, 1], kind="stable")[: sketch.size]] = np.arange(sketch.size)
    order = np.argsort(entries, kind="stable")
    signs = np.where(draws[order, 2] < 0.5, -1.0, 1.0)
    return order, signs, np.searchsorted(entries[order], np.arange(sketch.size))
