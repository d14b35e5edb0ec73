"""What is accepted as weights: square matrices of numbers that are not negative, with rows that sum to one."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from d3gd.arrays import CSR, Floats
from d3gd.digraph import Digraph
from d3gd.errors import GraphError, WeightsError


def as_weights(matrix: CSR | Floats) -> CSR:
    """Return a copy of a matrix, dense or sparse, as float CSR; check that it is square, finite and not negative."""
    try:
        given: Any = matrix if issparse(matrix) else np.asarray(matrix)
        if given.dtype.kind not in "biuf":  # no dates, texts or complex numbers
            raise TypeError
        if issparse(given) and given.format in ("csr", "csc", "bsr"):
            if (given.indptr[1:] < given.indptr[:-1]).any():  # SciPy looks for it only if the last one is positive
                raise ValueError
            given.check_format(full_check=True)  # or compiled code would index out of bounds
        A: Any = csr_array(given, dtype=np.float64, copy=True)
    except (TypeError, ValueError):
        raise WeightsError(
            "the weights are not a matrix of real numbers, or a damaged sparse one; give n rows of n numbers"
        ) from None
    if A.ndim != 2 or A.shape[0] != A.shape[1] or A.shape[0] == 0:
        raise WeightsError(f"the weights have shape {A.shape}; they must be square, one row and column per agent")
    A.sum_duplicates()
    bad = np.flatnonzero(~(np.isfinite(A.data) & (A.data >= 0)))
    if bad.size:
        row = int(np.searchsorted(A.indptr, bad[0], side="right")) - 1
        raise WeightsError(
            f"weight A[{row}, {A.indices[bad[0]]}] = {A.data[bad[0]]:g} ({bad.size} such weights); weights must be "
            f"finite and not negative"
        )
    return A


def require_row_sums(A: CSR) -> None:
    """Raise a :class:`WeightsError` that names a row, unless all rows sum to one (to 1e-9)."""
    sums = A.sum(axis=1)
    off = np.flatnonzero(np.abs(sums - 1) > 1e-9)
    if off.size:
        raise WeightsError(
            f"row {off[0]} of the weights sums to {sums[off[0]]:.10g} ({off.size} such rows); every row must sum to "
            f"one: divide it by its sum"
        )


def connecting(matrix: CSR | Floats) -> CSR:
    """Return a copy of row-stochastic weights without zeros; check that the others connect all agents."""
    from scipy.sparse.csgraph import connected_components

    A = as_weights(matrix)
    require_row_sums(A)
    A.eliminate_zeros()
    if connected_components(A, connection="strong")[0] > 1:
        entries = A.tocoo()
        try:
            Digraph.from_edges(A.shape[0], np.column_stack([entries.col, entries.row])).require_strongly_connected()
        except GraphError as error:
            raise WeightsError(f"counting only links with positive weight, {error}") from None
    return A
