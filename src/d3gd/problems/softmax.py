"""Softmax regression on users' data, one part per agent."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from d3gd.arrays import Array, Floats, Ints
from d3gd.data.checks import check_room
from d3gd.errors import ProblemError
from d3gd.problems.checks import check_ids, check_pair
from d3gd.problems.classification import LinearClassification, real, row_slices
from d3gd.validation import CLASSES, count, shown

Part = tuple[Array, Array]


class SoftmaxRegression(LinearClassification):
    """Multinomial logistic regression on padded arrays; see `softmax_regression`, which builds it from parts."""

    best = np.maximum

    @cached_property
    def _precise(self) -> dict[Any, Floats]:
        return {}

    def _features(self, dtype: Any) -> Floats:
        """X in a given precision."""
        if dtype not in self._precise:
            self._precise[dtype] = self.X.astype(dtype, copy=False)
        return self._precise[dtype]

    def gradients(self, x: Floats, k: int | None = None) -> Floats:
        """The gradient of f_i at x_i for every agent, on the mini-batch of iteration k if there is one."""
        self._check_models(x)
        x = real(x)
        X, true, sizes = self._features(x.dtype), self._true, self.sizes.astype(x.dtype)
        if self.batch is not None and k is not None:
            chosen = self._drawn(k, self.batch)
            X = X.reshape(-1, self.features).take(chosen, axis=0)
            true = self._places(self.y.reshape(-1).take(chosen))
            sizes = np.full_like(sizes, self.batch)
        # Batched products work agent by agent: bitwise equal for any block of agents.
        # Padding needs no mask here: its features are zero.
        gradients: Floats = np.matmul(_errors(self._theta(x), X, true), X) / sizes[:, None, None]
        return gradients.reshape(x.shape) + self.regularization * x

    def _residuals(self, x: Floats) -> Floats:
        """The probability of every class, less one for the true class."""
        return _errors(self._theta(x), self.X, self._true)

    def losses(self, x: Floats) -> Floats:
        """The mean cross-entropy of every agent at its own model, and the regularization."""
        scores = np.matmul(self._theta(x), self.X.swapaxes(1, 2))
        true = np.take_along_axis(scores, self.y[:, None, :], axis=1)[:, 0]
        entropies = _log_sum_exp(scores) - true
        totals = np.where(self._present, entropies, 0.0).sum(axis=1)
        losses: Floats = totals / self.sizes + self._penalty(x)
        return losses

    def _pooled_sums(self, x: Floats) -> tuple[Floats, Floats]:
        """Two flat matrix products for many rows at once."""
        X, y, weight = self._pooled
        out, losses = np.empty_like(x), self.agents * self._penalty(x)
        for rows in row_slices(len(x), self.classes * len(X)):
            p = self._pooled_scores(x[rows])
            top, true = p.max(axis=1, keepdims=True), p[:, y, np.arange(len(X))]
            p -= top
            np.exp(p, out=p)
            sums = p.sum(axis=1)
            losses[rows] += (top[:, 0] + np.log(sums) - true) @ weight
            p *= (weight / sums)[:, None, :]
            expected = (p.reshape(-1, len(X)) @ X).reshape(-1, self.classes, self.features)
            out[rows] = (expected - self._observed).reshape(-1, self.dim)
        out += self.agents * self.regularization * x
        return out, losses

    def _pooled_losses(self, x: Floats) -> Floats:
        """One flat matrix product for many rows at once."""
        X, y, weight = self._pooled
        out = self.agents * self._penalty(x)
        for rows in row_slices(len(x), self.classes * len(X)):
            scores = self._pooled_scores(x[rows])
            out[rows] += (_log_sum_exp(scores) - scores[:, y, np.arange(len(X))]) @ weight
        return out

    def _part(self, positions: Ints) -> "SoftmaxRegression":
        """Keeps the padding."""
        data = self.X[positions], self.y[positions], self.sizes[positions]
        return SoftmaxRegression(*data, **self._settings(positions))

    def _places(self, y: Ints) -> Ints:
        """Indices of the labels' entries in a flattened array of shape (agents, classes, samples)."""
        agents, samples = y.shape
        rows = self.classes * np.arange(agents)[:, None] + y
        places: Ints = (samples * rows + np.arange(samples)).reshape(-1)
        return places

    @cached_property
    def _true(self) -> Ints:
        return self._places(self.y)

    @cached_property
    def _pooled(self) -> tuple[Floats, Ints, Floats]:
        """Every sample, its label, and its weight 1 / (size of its agent)."""
        weight = np.broadcast_to(1.0 / self.sizes[:, None], self.y.shape)
        if self.sizes.min() == self.longest:
            return self.X.reshape(-1, self.features), self.y.reshape(-1), weight.reshape(-1)
        return self.X[self._present], self.y[self._present], weight[self._present]

    @cached_property
    def _observed(self) -> Floats:
        """The weighted sum of the features of each class."""
        X, y, weight = self._pooled
        return np.stack([weight[y == c] @ X[y == c] for c in range(self.classes)])

    def _pooled_scores(self, x: Floats) -> Floats:
        """Scores of all samples under every row of x, shape (rows, classes, samples)."""
        X = self._pooled[0]
        scores: Floats = (x.reshape(-1, self.features) @ X.T).reshape(-1, self.classes, len(X))
        return scores


def _errors(theta: Floats, X: Floats, true: Ints) -> Floats:
    """Softmax of all scores, less one at the places of the true classes, (agents, classes, samples)."""
    p: Floats = np.matmul(theta, X.swapaxes(1, 2))
    p -= p.max(axis=1, keepdims=True)
    np.exp(p, out=p)
    p /= p.sum(axis=1, keepdims=True)
    p.reshape(-1)[true] -= 1.0
    return p


def _log_sum_exp(scores: Floats) -> Floats:
    """Log-sum-exp over the classes, axis 1, without overflow."""
    top = scores.max(axis=1, keepdims=True)
    values: Floats = top[:, 0] + np.log(np.exp(scores - top).sum(axis=1))
    return values


def softmax_regression(
    parts: Sequence[Part],
    *,
    regularization: float = 1e-3,
    batch: int | None = None,
    seed: int = 0,
    test: Part | None = None,
    classes: int | None = None,
    agent_ids: Ints | Sequence[int] | None = None,
) -> SoftmaxRegression:
    r"""Softmax (multinomial logistic) regression, each agent on its own data.

    .. math::
        f_i(\theta) = \frac{1}{M_i} \sum_{m=1}^{M_i} \Bigl( \log \sum_c e^{x_m^\top \theta_c}
        - x_m^\top \theta_{y_m} \Bigr) + \frac{\lambda}{2} \|\theta\|^2

    A model x_i is theta, shape (classes, features), flattened row by row. There is no intercept: append a
    constant column to X for one.

    Args:
        parts: One pair (X, y) per agent: features of shape (samples, features) and integer labels of 0
            or more. Sizes may differ.
        regularization: The factor lambda.
        batch: Samples for a gradient, drawn with replacement, keyed by (seed, agent, iteration); None: all.
        seed: Seed of the mini-batches.
        test: A pair (X, y) to measure accuracy on.
        classes: Number of classes; by default one more than the largest label.
        agent_ids: Global ids of the agents, the keys of their mini-batches; by default 0, 1, ...

    Returns:
        The problem.

    Example:
        >>> left = (np.array([[1.0, -1.0], [1.0, -2.0]]), np.array([0, 0]))
        >>> right = (np.array([[1.0, 1.0]]), np.array([1]))
        >>> problem = softmax_regression([left, right], regularization=0.0)
        >>> problem.gradients(np.zeros((2, 4)), 0)
        array([[-0.5 ,  0.75,  0.5 , -0.75],
               [ 0.5 ,  0.5 , -0.5 , -0.5 ]])
    """
    if not isinstance(parts, Sequence) or not parts:
        raise ProblemError(f"parts = {shown(parts)}: give a list with one pair (X, y) per agent")
    ids = check_ids(agent_ids, len(parts))
    names = [f"agent {agent}" for agent in ids.tolist()] + ["the test set"]
    pairs = [check_pair(part, name) for part, name in zip(parts, names, strict=False)]
    everything = pairs if test is None else [*pairs, check_pair(test, names[-1])]
    held_out = None if test is None else everything[-1]

    features = pairs[0][0].shape[1]
    found = class_count([y for _, y in everything]) if classes is None else classes
    classes = count("classes", found, least=1, error=ProblemError)
    for name, (X, y) in zip(names, everything, strict=False):
        if X.shape[1] != features:
            raise ProblemError(
                f"{name} has {X.shape[1]} features and {names[0]} has {features}; all must have the same"
            )
        if y.max() >= classes:
            raise ProblemError(f"{name} has the label {y.max()} of {classes} classes; raise classes=")

    sizes = np.array([len(y) for _, y in pairs])
    check_room(agents=len(pairs), samples=int(sizes.max()), classes=classes)
    check_room(agents=len(pairs), classes=classes, features=features)
    padded_X = np.zeros((len(pairs), sizes.max(), features))
    padded_y = np.zeros((len(pairs), sizes.max()), dtype=np.int64)
    for row, (X, y) in enumerate(pairs):
        padded_X[row, : len(y)] = X
        padded_y[row, : len(y)] = y
    return SoftmaxRegression(
        padded_X,
        padded_y,
        sizes,
        classes=classes,
        regularization=regularization,
        batch=batch,
        seed=seed,
        test=held_out,
        agent_ids=ids,
    )


def class_count(labels: Sequence[Ints]) -> int:
    """Number of classes, one more than the largest label; implausibly large labels are rejected."""
    largest, samples = max(int(y.max()) for y in labels), sum(map(len, labels))
    if largest >= max(samples, CLASSES):
        raise ProblemError(
            f"there is a label {largest} among {samples} samples; number the classes with integers 0, 1, 2, ..."
        )
    return max(2, largest + 1)
