"""The edges into a block of agents, padded to rectangles, so that NumPy can handle many agents at once."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from d3gd.arrays import Ints


class Rectangle(NamedTuple):
    """Some agents and the indices of their in-edges, padded to the largest in-degree."""

    rows: slice | Ints  # the agents
    places: Ints  # (agents, width); beyond an agent's last edge, the number of all edges


def rectangles(indptr: Ints) -> Iterator[Rectangle]:
    """Cover all agents with rectangles that hold at most twice as many entries as there are edges.

    One rectangle if it is not too wide for most agents, else one per power of two of the in-degree.
    """
    lengths = np.diff(indptr)
    if len(lengths) * lengths.max() <= 2 * indptr[-1]:
        yield Rectangle(slice(None), _places(indptr, np.arange(len(lengths)), int(lengths.max())))
        return
    widths = 1 << np.ceil(np.log2(lengths)).astype(np.int64)
    for width in np.unique(widths):
        rows = np.flatnonzero(widths == width)
        yield Rectangle(rows, _places(indptr, rows, int(width)))


def _places(indptr: Ints, rows: Ints, width: int) -> Ints:
    places: Ints = indptr[rows, None] + np.arange(width)
    return np.where(places < indptr[rows + 1, None], places, indptr[-1])
