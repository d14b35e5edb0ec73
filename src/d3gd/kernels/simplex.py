"""Euclidean projection onto the probability simplex, for rows of unequal length at once."""

import numpy as np

from d3gd.arrays import Floats, Ints
from d3gd.kernels.rows import rectangles


class RowSimplices:
    r"""One probability simplex per CSR row.

    The projection of :math:`v` on :math:`\{p \ge 0, \sum_j p_j = 1\}` is :math:`p_j = \max(v_j - \theta, 0)`
    with the unique :math:`\theta` that makes the sum 1; sorting finds it exactly.

    Rows are padded to rectangles: at most twice the memory of the edges, no Python loop over
    agents, and a row's result never depends on the other rows.

    Example:
        >>> RowSimplices(np.array([0, 2, 3]))(np.array([0.9, 0.5, -4.0]))
        array([0.7, 0.3, 1. ])

    References:
        Held, Wolfe and Crowder, *Validation of subgradient optimization*, Mathematical Programming 6, 1974.
    """

    def __init__(self, indptr: Ints) -> None:
        self._rectangles: list[tuple[Ints, Floats, Ints]] = []
        for _, places in rectangles(indptr):
            agents, width = places.shape
            self._rectangles.append((places, np.arange(1.0, width + 1), width * np.arange(agents) - 1))

    def __call__(self, values: Floats) -> Floats:
        """Project each row of the flat edge vector ``values``."""
        # Padding reads one extra entry of -inf, which is never in the support.
        padded = np.append(values, values.dtype.type(-np.inf))
        projected = np.empty_like(padded)
        for places, counts, before in self._rectangles:
            rows = padded[places]
            rows -= rows.max(axis=1, keepdims=True)  # or a row of huge numbers would not sum to one
            descending = np.negative(rows)
            descending.sort(axis=1)
            np.negative(descending, out=descending)
            excess = descending.cumsum(axis=1)
            excess -= 1
            descending *= counts.astype(values.dtype, copy=False)
            support = np.add.reduce(descending > excess, axis=1)
            theta = excess.reshape(-1)[before + support] / support.astype(values.dtype)
            rows -= theta[:, None]
            projected[places] = np.maximum(rows, 0.0, out=rows)
        return projected[:-1]
