"""The kernels in NumPy and SciPy."""

from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from d3gd.arrays import CSR, Floats, Ints
from d3gd.kernels.rows import Rectangle, rectangles
from d3gd.kernels.simplex import RowSimplices

_GATHERED = 1 << 16  # numbers per chunk of `dot`, so that its buffers stay in the cache


class Plain:
    """Mixing, inner products along edges, and projection, for the edges of a CSR structure.

    Args:
        indptr: The start of each agent's in-edges.
        columns: The received row of each edge.
        heard: The number of received rows.
    """

    def __init__(self, indptr: Ints, columns: Ints, heard: int) -> None:
        self._indptr, self._columns, self._heard = indptr, np.ascontiguousarray(columns), heard
        self._memory = np.empty(0)

    def mix(self, a: Floats, received: Floats, dtype: Any) -> Floats:
        r"""Return :math:`\sum_j a_{ij} x_j`, summed in the order of the edges, in a given precision."""
        matrix, x = self._matrix, received.reshape(len(received), -1).astype(dtype, copy=False)
        matrix.data = a.astype(dtype, copy=False)  # a new matrix would cost more than the product
        mixed: Floats = matrix @ x
        return mixed.reshape(-1, *received.shape[1:])

    def dot(self, v: Floats, received: Floats, origin: Floats | None) -> Floats:
        r"""Return :math:`\langle v_i, x_j - o_i \rangle` on every edge."""
        values, d = np.empty(len(self._columns) + 1, dtype=received.dtype), v.shape[1]
        for whole, columns in self._gathers:
            agents = max(1, _GATHERED // max(1, columns.shape[1] * d))
            for first in range(0, len(columns), agents):
                some = slice(first, first + agents)
                rows = some if isinstance(whole.rows, slice) else whole.rows[some]
                places = whole.places[some]
                difference = self._scratch(places.size * d, received.dtype).reshape(*places.shape, d)
                received.take(columns[some], axis=0, out=difference, mode="clip")
                if origin is not None:
                    difference -= origin[rows, None]
                # One sum over d per edge, independent of other edges: bitwise equal for any block of agents.
                difference *= v[rows, None]
                values[places] = np.add.reduce(difference, axis=2)
        return values[:-1]

    def _scratch(self, size: int, dtype: Any) -> Floats:
        """Return a reused buffer, since page faults on new memory cost more than the computation."""
        if self._memory.size < size or self._memory.dtype != dtype:
            self._memory = np.empty(size, dtype=dtype)
        return self._memory[:size]

    def project(self, edges: Floats) -> Floats:
        """Project each agent's edge values onto its probability simplex."""
        return self._simplices(edges)

    @cached_property
    def _matrix(self) -> CSR:
        shape = len(self._indptr) - 1, self._heard
        return csr_array((np.empty(len(self._columns)), self._columns, self._indptr), shape=shape)

    @cached_property
    def _gathers(self) -> list[tuple[Rectangle, Ints]]:
        padded = np.append(self._columns, 0)  # padding reads any row; the result is not used
        return [(rectangle, padded[rectangle.places]) for rectangle in rectangles(self._indptr)]

    @cached_property
    def _simplices(self) -> RowSimplices:
        return RowSimplices(self._indptr)
