"""Di-DGD on Figure 1's loss, as one would write it in thirty lines of vectorised NumPy: the benchmark's yardstick."""

import numpy as np


def gradients(x, X, onehot, regularization):
    """The gradient of the printed loss, all classes: X (n, M, F), onehot (n, M, K), x (n, K F)."""
    n, samples, features = X.shape
    theta = x.reshape(n, -1, features)
    scores = onehot * (X @ theta.transpose(0, 2, 1))
    s = 1 / (1 + np.exp(-scores))
    slopes = onehot * s * (1 - s) / samples
    return (slopes.transpose(0, 2, 1) @ X).reshape(n, -1) + regularization * x


def didgd(A, X, y, classes, step_size, iterations, regularization=1e-4):
    """Run Di-DGD from zero with the dense or sparse weights A and return the models."""
    n, _, features = X.shape
    onehot = np.eye(classes)[y]
    x, Y = np.zeros((n, classes * features)), np.eye(n)
    for _ in range(iterations):
        g = gradients(x, X, onehot, regularization)
        x = A @ x - step_size * g / (n * np.diag(Y)[:, None])
        Y = A @ Y
    return x
