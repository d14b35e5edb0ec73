"""Euclidean projection onto the probability simplex, for rows of unequal length at once."""

import numpy as np

from d3gd.arrays import Floats, Ints


class RowSimplices:
    r"""One probability simplex per CSR row.

    The projection of :math:`v` on :math:`\{p \ge 0, \sum_j p_j = 1\}` is :math:`p_j = \max(v_j - \theta, 0)`
    with the one :math:`\theta` that makes the sum 1; sorting finds it exactly.

    Rows are padded to the next power of two and handled a bucket of equal widths at a time: at most twice the
    memory of the edges, no Python loop over agents, and a row's result never depends on the other rows.

    Example:
        >>> RowSimplices(np.array([0, 2, 3]))(np.array([0.9, 0.5, -4.0]))
        array([0.7, 0.3, 1. ])

    References:
        Held, Wolfe and Crowder, *Validation of subgradient optimization*, Mathematical Programming 6, 1974.
    """

    def __init__(self, indptr: Ints) -> None:
        lengths = np.diff(indptr)
        widths = 1 << np.ceil(np.log2(lengths)).astype(np.int64)
        self._buckets: list[tuple[Ints, Ints]] = []
        for width in np.unique(widths):
            rows = np.flatnonzero(widths == width)
            slots = np.arange(width)
            inside = slots < lengths[rows, None]
            # Slots past a row's end read one extra entry that holds -inf: it never enters the support.
            places = np.where(inside, indptr[rows, None] + slots, indptr[-1])
            self._buckets.append((places, np.arange(1, width + 1)))

    def __call__(self, values: Floats) -> Floats:
        """Project each row of the flat edge vector ``values``."""
        padded = np.append(values, -np.inf)
        projected = np.empty_like(padded)
        for places, counts in self._buckets:
            rows = padded[places]
            rows -= rows.max(axis=1, keepdims=True)  # else a row of huge numbers would not sum to one
            descending = -np.sort(-rows, axis=1)
            excess = np.cumsum(descending, axis=1) - 1.0
            support = np.count_nonzero(descending * counts > excess, axis=1)
            theta = excess[np.arange(len(rows)), support - 1] / support
            projected[places] = np.maximum(rows - theta[:, None], 0.0)
        return projected[:-1]
