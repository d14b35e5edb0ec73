"""What sequences of weights do to disagreement."""

import numpy as np


def product(steps):
    """The weights of all steps, one after the other."""
    total = np.eye(steps[0].graph.n)
    for step in steps:
        total = step.weights.toarray() @ total
    return total


def doubly_stochastic(steps):
    """Assert that rows and columns of every step sum to one."""
    for step in steps:
        W = step.weights.toarray()
        assert (W >= 0).all()
        assert np.allclose(W.sum(axis=0), 1, atol=1e-12)
        assert np.allclose(W.sum(axis=1), 1, atol=1e-12)


def left(W):
    """The largest share of the squared disagreement that some draws leave, in the mean over them."""
    n = W[0].shape[0]
    away = np.eye(n) - 1 / n
    return np.linalg.norm(np.mean([away @ w.T @ w @ away for w in W], axis=0), 2)
