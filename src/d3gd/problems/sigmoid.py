"""The paper's classification problem with its sigmoid loss."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sparse
from scipy.special import expit

from d3gd.arrays import CSR, Floats, Ints
from d3gd.errors import ProblemError
from d3gd.kernels import Meter
from d3gd.problems.checks import check_finite, check_ids, check_pair
from d3gd.problems.classification import LinearClassification, of_mixture, real, row_slices
from d3gd.validation import as_array, count, reals


def slope(s: Any) -> Any:
    r"""Return the derivative of the sigmoid at the point where its value is s: :math:`\sigma' = \sigma - \sigma^2`."""
    return s - s * s


class SigmoidClassification(LinearClassification):
    r"""The sigmoid loss of the paper's experiments, as printed there.

    .. math::
        f_i(\theta) = \frac1M \sum_{m=1}^{M} \sum_{c=1}^{K} \frac{1}{1 + \exp(-y_{mc}\, x_m^\top \theta_c)}
        + \frac{\lambda}{2} \|\theta\|^2, \qquad y_{mc} \in \{0, 1\}

    A wrong class adds the constant 1/2, so only the true class's score has a gradient, and that score is
    pushed *down*: the predicted class is the one with the smallest score. A model x_i is theta, shape
    (classes, features), flattened row by row.

    Args:
        X: Features, shape (agents, samples, features).
        y: Labels 0, ..., classes - 1, shape (agents, samples).
        classes: K, the number of classes.
        regularization: The factor lambda.
        batch: Samples for a gradient, drawn with replacement, keyed by (seed, agent, iteration); None: all.
        seed: Seed of the mini-batches.
        test: Test features and labels.
        agent_ids: Global ids of the agents, their keys; by default 0, 1, ...

    Reference:
        The experiments section of the D3GD paper.
    """

    best = np.minimum

    def __init__(
        self,
        X: Floats,
        y: Ints,
        *,
        classes: int,
        regularization: float = 1e-4,
        batch: int | None = None,
        seed: int = 0,
        test: tuple[Floats, Ints] | None = None,
        agent_ids: Ints | Sequence[int] | None = None,
    ) -> None:
        X, y = reals("X", X, error=ProblemError), as_array("y", y, error=ProblemError)
        if X.ndim != 3 or X.size == 0 or y.shape != X.shape[:2] or y.dtype.kind not in "iu":
            raise ProblemError(
                f"X of shape {X.shape} and y of shape {y.shape} and type {y.dtype} do not match; "
                "pass floats of shape (agents, samples, features) and integers of shape (agents, samples)"
            )
        ids, classes = check_ids(agent_ids, len(X)), count("classes", classes, least=1, error=ProblemError)
        check_finite(X, "X", ("agent", "sample", "feature"), ids)
        if y.min() < 0 or y.max() >= classes:
            agent, sample = (int(p) for p in np.argwhere((y < 0) | (y >= classes))[0])
            raise ProblemError(
                f"label {y[agent, sample]} at agent {ids[agent]}, sample {sample}; labels run from 0 to {classes - 1}"
            )
        order = np.argsort(y, axis=1, kind="stable")
        super().__init__(
            np.take_along_axis(X, order[:, :, None], axis=1),
            np.take_along_axis(y, order, axis=1).astype(np.int64),
            np.full(len(X), X.shape[1]),
            classes=classes,
            regularization=regularization,
            batch=batch,
            seed=seed,
            test=None if test is None else _checked(test, X.shape[2], classes),
            agent_ids=ids,
        )
        self.samples = self.longest
        # A segment is one (agent, class): one row of theta, and a run of consecutive samples.
        self._segment: Ints = (self.y + self.classes * np.arange(self.agents)[:, None]).ravel()
        self._meter, self._sums = Meter(), dict[Any, _Sums]()

    def _in(self, dtype: Any) -> "_Sums":
        """The data in a given precision."""
        if dtype not in self._sums:
            self._sums[dtype] = _Sums(self.X.astype(dtype, copy=False), self.y, self._segment, self.classes)
        return self._sums[dtype]

    def gradients(self, x: Floats, k: int | None = None) -> Floats:
        """The gradient of f_i at x_i for every agent, on the mini-batch of iteration k if there is one."""
        self._check_models(x)
        x = real(x)
        if self.batch is not None and k is not None:
            return self._batch_gradients(x, k, self.batch)
        sums = self._in(x.dtype)
        if self._meter.compiled(self.X.size):
            compiled: Floats = sums.compiled.gradients(x, self.regularization)
            return compiled
        # CSR products sum each row's samples in order: bitwise equal for any block of agents.
        slopes = slope(expit(sums.score @ x.reshape(-1)))
        slopes /= self.samples
        sums.collect.data = slopes
        gradients: Floats = sums.collect @ sums.X.reshape(-1, self.features)
        return gradients.reshape(x.shape) + self.regularization * x

    def _residuals(self, x: Floats) -> Floats:
        """The slope of the sigmoid, at the sample's own class."""
        slopes = slope(expit(self._in(x.dtype).score @ x.reshape(-1))).reshape(self.agents, 1, self.samples)
        residuals: Floats = np.where(self.y[:, None, :] == np.arange(self.classes)[:, None], slopes, 0.0)
        return residuals

    def _batch_gradients(self, x: Floats, k: int, batch: int) -> Floats:
        chosen = self._drawn(k, batch).ravel()
        segment = self._segment.take(chosen)
        X = self._in(x.dtype).X.reshape(-1, self.features).take(chosen, axis=0)
        theta = x.reshape(-1, self.features).take(segment, axis=0)
        self._scatter.data = slope(expit(np.einsum("mf,mf->m", X, theta))) / batch
        self._scatter.indices = segment
        gradients: Floats = self._scatter @ X
        return gradients.reshape(x.shape) + self.regularization * x

    @cached_property
    def _scatter(self) -> CSR:
        """A matrix that sums a mini-batch's samples, one column each, by segment; every draw sets its entries."""
        drawn = self.agents * (self.batch or 0)
        columns = np.arange(drawn + 1)
        return sparse.csc_array(
            (np.ones(drawn), np.zeros(drawn, dtype=np.int64), columns),
            shape=(self.agents * self.classes, drawn),
        )

    def losses(self, x: Floats) -> Floats:
        """f_i(x_i), including the constant (K - 1) / 2 of the wrong classes."""
        x = real(x)
        sums = self._in(x.dtype)
        scores = sums.compiled.scores(x) if self._meter.large(self.X.size) else sums.score @ x.reshape(-1)
        s = expit(scores).reshape(self.agents, self.samples)
        losses: Floats = self._constant(x) + s.mean(axis=1)
        return losses

    def _constant(self, x: Floats) -> Floats:
        return 0.5 * (self.classes - 1) + self._penalty(x)

    def _pooled_sums(self, x: Floats) -> tuple[Floats, Floats]:
        """Pooled by class: two small matrix products each."""
        theta = self._theta(x)
        out = self.agents * self.regularization * theta
        losses = self.agents * self._constant(x)
        for c, pooled in enumerate(self._by_class):
            for rows in row_slices(len(x), len(pooled)):
                s = expit(theta[rows, c] @ pooled.T)
                out[rows, c] += slope(s) @ pooled / self.samples
                losses[rows] += s.sum(axis=1) / self.samples
        return out.reshape(-1, self.dim), losses

    def _pooled_losses(self, x: Floats) -> Floats:
        """Pooled by class: one small matrix product each."""
        out = self.agents * self._constant(x)
        theta = self._theta(x)
        for c, pooled in enumerate(self._by_class):
            for rows in row_slices(len(x), len(pooled)):
                out[rows] += expit(theta[rows, c] @ pooled.T).sum(axis=1) / self.samples
        return out

    @cached_property
    def _by_class(self) -> list[Floats]:
        return [self.X[self.y == c] for c in range(self.classes)]

    def _part(self, positions: Ints) -> "SigmoidClassification":
        return SigmoidClassification(self.X[positions], self.y[positions], **self._settings(positions))


class _Sums:
    """Sums over samples, in the precision of ``X``: as CSR products, and compiled."""

    def __init__(self, X: Floats, y: Ints, segment: Ints, classes: int) -> None:
        self.X, self._y, self._segment, self._classes = X, y, segment, classes
        self._index: Any = np.int32 if max(X.size, len(X) * classes * X.shape[2]) < 2**31 else np.int64

    @cached_property
    def score(self) -> CSR:
        """A matrix that maps the concatenated models to the score of every sample's own class."""
        total, features = self._segment.size, self.X.shape[2]
        columns = (self._segment[:, None] * features + np.arange(features)).ravel().astype(self._index)
        rows = np.arange(0, total * features + 1, features, dtype=self._index)
        shape = (total, len(self.X) * self._classes * features)
        return sparse.csr_array((self.X.reshape(-1), columns, rows), shape=shape)

    @cached_property
    def collect(self) -> CSR:
        """A matrix that sums the samples of each segment, weighted by entries set by the caller."""
        total, segments = self._segment.size, len(self.X) * self._classes
        starts = np.searchsorted(self._segment, np.arange(segments + 1)).astype(self._index)
        ones, each = np.ones(total), np.arange(total, dtype=self._index)
        return sparse.csr_array((ones, each, starts), shape=(segments, total))

    @cached_property
    def compiled(self) -> Any:
        """The same, compiled."""
        from d3gd.problems.sigmoid_kernel import CompiledSums  # slow to import and not needed for small problems

        return CompiledSums(self.X, self._y)


def _checked(test: tuple[Floats, Ints], features: int, classes: int) -> tuple[Floats, Ints]:
    X, y = check_pair(test, "the test set")
    if X.shape[1] != features or y.max() >= classes:
        raise ProblemError(
            f"the test set has {X.shape[1]} features and the label {y.max()}; the agents have {features} features and "
            f"labels from 0 to {classes - 1}"
        )
    return X, y


def sigmoid_classification(
    *,
    agents: int = 20,
    alpha: float | Sequence[float] = 0.1,
    seed: int = 0,
    classes: int = 10,
    features: int = 10,
    samples: int = 100,
    regularization: float = 1e-4,
    batch: int | None = None,
    test_samples: int = 1000,
    block: Ints | Sequence[int] | None = None,
) -> SigmoidClassification:
    """The paper's problem with its synthetic data, drawn by `d3gd.data.dirichlet_mixture`.

    Args:
        agents: Number of agents in the network.
        alpha: Dirichlet concentration of the class proportions, one for all or one per agent.
        seed: Key of the data and of the mini-batches.
        classes: Number of classes.
        features: Number of features.
        samples: Samples of each agent.
        regularization: Factor of half the squared norm.
        batch: Samples for a gradient, drawn with replacement; None: all.
        test_samples: Size of the test set, whose classes are equally likely; 0 for none.
        block: Agents whose data to generate; by default all.

    Returns:
        The problem, restricted to `block` if that is given.

    Example:
        >>> problem = sigmoid_classification(agents=4, alpha=[0.1, 100.0, 100.0, 100.0])
        >>> problem.agents, problem.dim, round(problem.loss(np.zeros((4, 100))), 6)
        (4, 100, 5.0)

    Reference:
        The experiments section of the D3GD paper.
    """
    return of_mixture(
        SigmoidClassification,
        "sigmoid_classification",
        agents=agents,
        alpha=alpha,
        classes=classes,
        features=features,
        samples=samples,
        test_samples=test_samples,
        block=block,
        seed=seed,
        regularization=regularization,
        batch=batch,
    )
