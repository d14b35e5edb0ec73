"""Compiled sums of the sigmoid problem, bitwise equal to the plain ones; see :mod:`d3gd.kernels.compiling`."""

import math

import numpy as np
from numba.extending import register_jitable

from d3gd.arrays import Floats, Ints
from d3gd.kernels.buffers import LARGE, Buffers
from d3gd.kernels.compiling import WHOLE, Kernel, Signature, compiled, given, made
from d3gd.kernels.threads import in_parts
from d3gd.problems.sigmoid import slope

_slope = register_jitable(slope)


@register_jitable
def _score(samples, labels, model, scores):  # type: ignore[no-untyped-def]
    """Write the score of each sample's own class, under one agent's model, to ``scores``."""
    count, features, zero = samples.shape[0], samples.shape[1], model[0] - model[0]
    fours = count - count % 4
    for m in range(0, fours, 4):  # four interleaved sums hide the latency of additions
        p, q, r, s = samples[m], samples[m + 1], samples[m + 2], samples[m + 3]
        t, u = model[labels[m] * features :], model[labels[m + 1] * features :]
        v, w = model[labels[m + 2] * features :], model[labels[m + 3] * features :]
        a, b, c, d = zero, zero, zero, zero
        for f in range(features):
            a += p[f] * t[f]
            b += q[f] * u[f]
            c += r[f] * v[f]
            d += s[f] * w[f]
        scores[m], scores[m + 1], scores[m + 2], scores[m + 3] = a, b, c, d
    for m in range(fours, count):
        p, t, a = samples[m], model[labels[m] * features :], zero
        for f in range(features):
            a += p[f] * t[f]
        scores[m] = a


def _scores(first, last, X, y, theta, scores):  # type: ignore[no-untyped-def]
    for i in range(first, last):
        _score(X[i], y[i], theta[i], scores[i])


def _gradients(first, last, X, y, theta, count, regularization, gradients):  # type: ignore[no-untyped-def]
    features, slopes, one = X.shape[2], np.empty(X.shape[1], dtype=X.dtype), count / count
    for i in range(first, last):
        samples, labels, model, row = X[i], y[i], theta[i], gradients[i]
        _score(samples, labels, model, slopes)
        for m in range(len(slopes)):
            s = one / (one + math.exp(-slopes[m]))
            slopes[m] = _slope(s) / count
        row[:] = 0
        for m in range(len(slopes)):
            part, sample, weight = row[labels[m] * features :], samples[m], slopes[m]
            for f in range(features):
                part[f] += weight * sample[f]
        for c in range(len(row)):
            row[c] += regularization * model[c]


_SIGNATURES: dict[Kernel, Signature] = {
    _scores: lambda f: (given(f, 3), given(WHOLE, 2), given(f, 2), made(f, 2)),
    _gradients: lambda f: (given(f, 3), given(WHOLE, 2), given(f, 2), f, f, made(f, 2)),
}


class CompiledSums:
    """The sigmoid of samples' scores, each of which involves one class of its agent's model.

    Args:
        X: Features, (agents, samples, features).
        y: Labels, (agents, samples).
    """

    def __init__(self, X: Floats, y: Ints) -> None:
        self._X, self._y = np.ascontiguousarray(X), np.ascontiguousarray(y)
        self._buffers = Buffers(LARGE)

    def scores(self, x: Floats) -> Floats:
        """Return the score of every sample's own class under its agent's model."""
        scores = np.empty(self._y.shape, dtype=x.dtype)
        compiled(_scores, _SIGNATURES[_scores], x.dtype)(0, len(x), self._X, self._y, np.ascontiguousarray(x), scores)
        return scores

    def gradients(self, x: Floats, regularization: float) -> Floats:
        """Return every agent's gradient: the mean of features times the sigmoid's slope, plus the regularization.

        SciPy's sigmoid is 1 / (1 + exp(-score)) with the C library's exponential, and so is this one.
        """
        x = np.ascontiguousarray(x)
        gradients = self._buffers.empty(x.shape, x.dtype)
        kernel, count = compiled(_gradients, _SIGNATURES[_gradients], x.dtype), self._X.shape[1]
        arrays = self._X, self._y, x, count, regularization, gradients
        in_parts(kernel, range(len(x) + 1), self._y.shape[1] * self._X.shape[2], *arrays)
        return gradients
