"""Placeholder module docstring: replaced by the full section 7."""

import numpy as np

from d3gd.arrays import CSR, Floats


def design_function(A: CSR, X: Floats, G: Floats, y: Floats, step_size: float, pi: Floats) -> float:
    r"""Return the paper's design function :math:`J_k(A)`."""
    mixed = A @ X - pi @ X
    push = G / y[:, None]
    return float(np.sum(mixed**2) - 2 * step_size / len(X) * np.sum(mixed * (push - pi @ push)))
