"""Di-DGD on Figure 1's loss, in thirty lines of vectorized NumPy: the baseline of the benchmarks."""

import json
import sys
import time

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


def main(file):
    """Run on a problem in a file, and print seconds and core seconds of an iteration, core seconds of a gradient."""
    data = np.load(file)
    A, X, y, classes, iterations = (data[name] for name in ("A", "X", "y", "classes", "iterations"))
    began = time.perf_counter(), time.process_time()
    x = didgd(A, X, y, int(classes), 0.1, int(iterations))
    ended = time.perf_counter(), time.process_time()
    onehot, gradient = np.eye(int(classes))[y], time.process_time()
    for _ in range(int(iterations)):
        gradients(x, X, onehot, 1e-4)
    gradient = (time.process_time() - gradient) / int(iterations)
    taken = {"seconds": ended[0] - began[0], "core": (ended[1] - began[1]) / int(iterations), "gradient": gradient}
    print(json.dumps(taken | {"version": np.__version__, "x": x.tolist()}))


if __name__ == "__main__":
    main(sys.argv[1])
