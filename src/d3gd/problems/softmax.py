"""Softmax regression on anybody's data, one part per agent."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from d3gd.arrays import Array, Bools, Floats, Ints
from d3gd.digest import digest
from d3gd.errors import ProblemError
from d3gd.problems.base import (
    Sourced,
    as_bytes,
    check_batch,
    check_finite,
    check_ids,
    check_regularization,
    class_shares,
    real,
    row_slices,
    shares_right,
)
from d3gd.random import keyed_uniform

Part = tuple[Array, Array]


class SoftmaxRegression(Sourced):
    """Multinomial logistic regression on padded arrays; see `softmax_regression`, which makes it from parts.

    Args:
        X: Features, shape (agents, longest, features); rows beyond an agent's size are zero.
        y: Labels, shape (agents, longest).
        sizes: Samples of each agent.
        classes: Number of classes.
        regularization: Factor of half the squared norm.
        batch: Samples for a gradient; None takes all.
        seed: Of the mini-batches.
        test: Test features and labels.
        agent_ids: Global ids of the agents, the keys of their mini-batches.
    """

    def __init__(
        self,
        X: Floats,
        y: Ints,
        sizes: Ints,
        *,
        classes: int,
        regularization: float,
        batch: int | None,
        seed: int,
        test: tuple[Floats, Ints] | None,
        agent_ids: Ints,
    ) -> None:
        check_batch(batch)
        check_regularization(regularization)
        self.X, self.y, self.sizes = X, y, sizes
        self.agents, self.longest, self.features = X.shape
        self.classes, self.dim = classes, classes * self.features
        self.regularization, self.batch, self.seed, self.test = regularization, batch, seed, test
        self.agent_ids = agent_ids
        self._precise: dict[Any, Floats] = {}
        self._last: tuple[Floats, Floats] | None = None

    def _features(self, dtype: Any) -> Floats:
        """X in a precision."""
        if dtype not in self._precise:
            self._precise[dtype] = self.X.astype(dtype, copy=False)
        return self._precise[dtype]

    def gradients(self, x: Floats, k: int | None = None) -> Floats:
        """The gradient of f_i at x_i for every agent, on the mini-batch of iteration k if there is one."""
        self._check_models(x)
        x = real(x)
        X, true, sizes = self._features(x.dtype), self._true, self.sizes.astype(x.dtype)
        if self.batch is not None and k is not None:
            draws = keyed_uniform(self.seed, self.agent_ids, k, self.batch)
            chosen = (draws * self.sizes[:, None]).astype(np.int64)
            chosen += self.longest * np.arange(self.agents)[:, None]
            X = X.reshape(-1, self.features).take(chosen, axis=0)
            true = self._places(self.y.reshape(-1).take(chosen))
            sizes = np.full_like(sizes, self.batch)
        theta = self._theta(x)
        # Batched products work agent by agent: bitwise the same for any block of agents.
        p = np.matmul(theta, X.swapaxes(1, 2))
        p -= p.max(axis=1, keepdims=True)
        np.exp(p, out=p)
        p /= p.sum(axis=1, keepdims=True)
        p.reshape(-1)[true] -= 1.0
        # Padding needs no mask here: its features are zero.
        gradients: Floats = np.matmul(p, X) / sizes[:, None, None]
        return gradients.reshape(x.shape) + self.regularization * x

    def losses(self, x: Floats) -> Floats:
        """The mean cross-entropy of every agent at its own model, and the regularization."""
        scores = np.matmul(self._theta(x), self.X.swapaxes(1, 2))
        true = np.take_along_axis(scores, self.y[:, None, :], axis=1)[:, 0]
        entropies = _log_sum_exp(scores) - true
        totals = np.where(self._present, entropies, 0.0).sum(axis=1)
        losses: Floats = totals / self.sizes + self._penalty(x)
        return losses

    def sum_gradients(self, x: Floats) -> Floats:
        """All agents' samples are pooled: two flat matrix products for many rows at once.

        The losses come almost for free; they are kept, since whoever records gradients at a point mostly asks for both.
        """
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
        self._last = x.copy(), losses
        return out

    def sum_losses(self, x: Floats) -> Floats:
        """All agents' samples are pooled."""
        if self._last is not None and np.array_equal(self._last[0], x):
            return self._last[1].copy()
        X, y, weight = self._pooled
        out = self.agents * self._penalty(x)
        for rows in row_slices(len(x), self.classes * len(X)):
            scores = self._pooled_scores(x[rows])
            out[rows] += (_log_sum_exp(scores) - scores[:, y, np.arange(len(X))]) @ weight
        return out

    def accuracies(self, x: Floats) -> Floats | None:
        """Share of test samples whose true class has the largest score."""
        if self.test is None:
            return None
        return shares_right(self._theta(x), *self.test, np.maximum)

    def class_proportions(self) -> Floats:
        """The share of each class among every agent's samples, shape (agents, classes)."""
        return class_shares(self.y, self._present, self.classes)

    def restrict(self, agents: Ints | Sequence[int]) -> "SoftmaxRegression":
        """Only these agents, under the same keys and with the same padding."""
        positions = self._positions(agents)
        ids = self.agent_ids[positions]
        return SoftmaxRegression(
            self.X[positions],
            self.y[positions],
            self.sizes[positions],
            classes=self.classes,
            regularization=self.regularization,
            batch=self.batch,
            seed=self.seed,
            test=self.test,
            agent_ids=ids,
        )._inherit(self, ids)

    def common(self) -> dict[str, Any]:
        """Also the settings, and a digest of the test data."""
        return super().common() | {"settings": self._settings}

    @cached_property
    def _settings(self) -> str:
        return digest([self.classes, self.regularization, self.batch, self.seed], *(self.test or ()))

    def fingerprints(self) -> Array:
        """SHA-256 of each agent's data and key, and of the settings."""
        return as_bytes(
            digest(self._settings, agent, self.X[i, :size], self.y[i, :size])
            for i, (agent, size) in enumerate(zip(self.agent_ids.tolist(), self.sizes.tolist(), strict=True))
        )

    def _theta(self, x: Floats) -> Floats:
        return x.reshape(-1, self.classes, self.features)

    def _penalty(self, x: Floats) -> Floats:
        norms: Floats = np.einsum("rd,rd->r", x, x)
        return 0.5 * self.regularization * norms

    def _places(self, y: Ints) -> Ints:
        """Where the labels' entries are in a flattened array of shape (agents, classes, samples)."""
        agents, samples = y.shape
        rows = self.classes * np.arange(agents)[:, None] + y
        places: Ints = (samples * rows + np.arange(samples)).reshape(-1)
        return places

    @cached_property
    def _true(self) -> Ints:
        return self._places(self.y)

    @cached_property
    def _present(self) -> Bools:
        present: Bools = np.arange(self.longest) < self.sizes[:, None]
        return present

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


def _log_sum_exp(scores: Floats) -> Floats:
    """Over the classes, axis 1, without overflow."""
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
        batch: Samples for a gradient, drawn with replacement by the key (seed, agent, iteration); None: all.
        seed: Of the mini-batches.
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
    if not parts:
        raise ProblemError("parts is empty; pass one pair (X, y) per agent")
    ids = check_ids(agent_ids, len(parts))
    named = [(f"agent {agent}", part) for agent, part in zip(ids.tolist(), parts, strict=True)]
    pairs = [_checked(X, y, name) for name, (X, y) in named]
    held_out = None if test is None else _checked(*test, "the test set")
    everything = pairs if held_out is None else [*pairs, held_out]
    names = [name for name, _ in named] + ["the test set"]

    features = pairs[0][0].shape[1]
    largest = max(int(y.max()) for _, y in everything)
    classes = max(2, largest + 1) if classes is None else classes
    for name, (X, y) in zip(names, everything, strict=False):
        if X.shape[1] != features:
            raise ProblemError(
                f"{name} has {X.shape[1]} features and {names[0]} has {features}; all must have the same"
            )
        if y.max() >= classes:
            raise ProblemError(f"{name} has the label {y.max()} of {classes} classes; raise classes=")

    sizes = np.array([len(y) for _, y in pairs])
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


def _checked(X: Array, y: Array, name: str) -> tuple[Floats, Ints]:
    X, y = np.asarray(X), np.asarray(y)
    if X.ndim != 2 or X.size == 0 or y.shape != X.shape[:1]:
        raise ProblemError(
            f"{name} has X of shape {X.shape} and y of shape {y.shape}; "
            "pass (samples, features) and (samples,) with at least one sample"
        )
    if y.dtype.kind not in "iu":
        raise ProblemError(f"{name} has labels of type {y.dtype}; number the classes with integers 0, 1, 2, ...")
    if y.min() < 0:
        raise ProblemError(f"{name} has the label {y.min()}; number the classes with integers 0, 1, 2, ...")
    X = X.astype(np.float64)
    check_finite(X, f"X of {name}", ("sample", "feature"))
    return X, y.astype(np.int64)
