"""The common base of problems with labelled samples and one linear score per class."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np

from d3gd.arrays import Array, Bools, Floats, Ints
from d3gd.data.mixture import mixture_with_test_set
from d3gd.digest import digest
from d3gd.errors import ProblemError
from d3gd.problems.base import Examples, Sourced, as_bytes
from d3gd.problems.checks import check_batch, check_regularization
from d3gd.random import keyed_choices
from d3gd.validation import count

_CACHED = 1 << 16  # numbers that fit in the cache
_CHUNK = 1 << 22  # limit on the numbers in a temporary array of a metric


class LinearClassification(Sourced):
    """Labelled samples of every agent, and models that score each class by a linear function of the features.

    A model x_i is theta, shape (classes, features), flattened row by row.

    Args:
        X: Features, shape (agents, longest, features); rows beyond an agent's size are zero.
        y: Labels, shape (agents, longest).
        sizes: Samples of each agent.
        classes: Number of classes.
        regularization: Factor of half the squared norm.
        batch: Samples for a gradient, drawn with replacement by the key (seed, agent, iteration); None: all.
        seed: Seed of the mini-batches.
        test: Test features and labels.
        agent_ids: Global ids of the agents, the keys of their mini-batches.
    """

    best: np.ufunc  # np.maximum if the largest score predicts the class, np.minimum if the smallest does

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
        self.X, self.y, self.sizes, self.test, self.agent_ids = X, y, sizes, test, agent_ids
        self.agents, self.longest, self.features = X.shape
        self.classes = count("classes", classes, least=1, error=ProblemError)
        self.seed = count("seed", seed, least=0)
        self.dim = self.classes * self.features
        self.regularization, self.batch = check_regularization(regularization), check_batch(batch)
        self._last: tuple[Floats, Floats] | None = None

    @abstractmethod
    def _pooled_sums(self, x: Floats) -> tuple[Floats, Floats]:
        """`sum_gradients` and `sum_losses` of every row; computed together, the losses cost almost nothing."""

    @abstractmethod
    def _pooled_losses(self, x: Floats) -> Floats:
        """`sum_losses` alone."""

    def sum_gradients(self, x: Floats) -> Floats:
        """All agents' samples are pooled.

        The losses are cached, since metrics mostly need both at the same point.
        """
        gradients, losses = self._pooled_sums(x)
        self._last = x.copy(), losses
        return gradients

    def sum_losses(self, x: Floats) -> Floats:
        """All agents' samples are pooled."""
        if self._last is not None and np.array_equal(self._last[0], x):
            return self._last[1].copy()
        return self._pooled_losses(x)

    def accuracies(self, x: Floats) -> Floats | None:
        """Share of test samples whose true class has the best score."""
        if self.test is None:
            return None
        return shares_right(self._theta(x), *self.test, self.best)

    def class_proportions(self) -> Floats:
        """The share of each class among every agent's samples, shape (agents, classes)."""
        places = (self.classes * np.arange(self.agents)[:, None] + self.y)[self._present]
        counts = np.bincount(places, minlength=self.agents * self.classes).reshape(self.agents, self.classes)
        shares: Floats = counts / self.sizes[:, None]
        return shares

    def examples(self) -> Examples:
        """The gradient of a sample is the product of its features and of one residual per class."""
        return Examples(self.sizes, self.batch, self.agent_ids, self._clipped_sums, lambda x: self.regularization * x)

    def _clipped_sums(self, x: Floats, chosen: Bools, clip: float) -> Floats:
        residuals = self._residuals(x)
        norms = np.sqrt(np.einsum("acs,acs->as", residuals, residuals) * np.einsum("asf,asf->as", self.X, self.X))
        # A sample without a gradient needs no factor, and one that is not finite must not count at all.
        factors = np.where(norms > clip, clip / np.where(norms > 0, norms, 1.0), 1.0)
        used = (chosen & np.isfinite(norms))[:, None, :]
        sums: Floats = np.matmul(np.where(used, residuals * factors[:, None, :], 0.0), self.X)
        return sums.reshape(self.agents, self.dim)

    @abstractmethod
    def _residuals(self, x: Floats) -> Floats:
        """The derivatives of each sample's loss by its scores, (agents, classes, samples)."""

    def restrict(self, agents: Ints | Sequence[int]) -> Self:
        """Only these agents, under the same keys."""
        positions = self._positions(agents)
        return self._part(positions)._inherit(self, self.agent_ids[positions])

    @abstractmethod
    def _part(self, positions: Ints) -> Self:
        """The problem restricted to some agents."""

    def _settings(self, positions: Ints) -> dict[str, Any]:
        """The settings that a part inherits from the whole."""
        return {
            "classes": self.classes,
            "regularization": self.regularization,
            "batch": self.batch,
            "seed": self.seed,
            "test": self.test,
            "agent_ids": self.agent_ids[positions],
        }

    def common(self) -> dict[str, Any]:
        """Also the settings, and a digest of the test data."""
        return super().common() | {"settings": self._identity}

    @cached_property
    def _identity(self) -> str:
        return digest([self.classes, self.regularization, self.batch, self.seed], *(self.test or ()))

    def fingerprints(self) -> Array:
        """SHA-256 of each agent's data and key, and of the settings."""
        return as_bytes(
            digest(self._identity, agent, self.X[i, :size], self.y[i, :size])
            for i, (agent, size) in enumerate(zip(self.agent_ids.tolist(), self.sizes.tolist(), strict=True))
        )

    def _drawn(self, k: int, batch: int) -> Ints:
        """The mini-batches of iteration k: indices into the concatenated samples of all agents, (agents, batch)."""
        places = keyed_choices(self.seed, self.agent_ids, k, batch, self.sizes)
        places += self.longest * np.arange(self.agents)[:, None]
        return places

    def _theta(self, x: Floats) -> Floats:
        return x.reshape(-1, self.classes, self.features)

    def _penalty(self, x: Floats) -> Floats:
        norms: Floats = np.einsum("rd,rd->r", x, x)
        return 0.5 * self.regularization * norms

    @cached_property
    def _present(self) -> Bools:
        """Mask of the rows of X that are samples, not padding."""
        present: Bools = np.arange(self.longest) < self.sizes[:, None]
        return present


Made = TypeVar("Made", bound=Sourced)


def of_mixture(
    make: Callable[..., Made], kind: str, *, seed: int, regularization: float, batch: int | None, **drawn: Any
) -> Made:
    """A problem on the Gaussian classes of `d3gd.data.dirichlet_mixture`, which stores the call that built it.

    Args:
        make: Builds the problem from all agents' features and labels, given classes, test, agent_ids and settings.
        kind: The name of the function that was called.
        seed: Key of the data and of the mini-batches.
        regularization: Factor of half the squared norm.
        batch: Samples for a gradient.
        drawn: Arguments of `mixture_with_test_set`.
    """
    settings = {"seed": seed, "regularization": regularization, "batch": batch}
    X, y, test = mixture_with_test_set(seed=seed, **drawn)
    problem = make(X, y, classes=drawn["classes"], test=test, agent_ids=drawn["block"], **settings)
    return problem._made_by(kind, **drawn, **settings)


def real(x: Floats) -> Floats:
    """Return models in single precision unchanged, all others in double."""
    return x if x.dtype == np.float32 else x.astype(np.float64, copy=False)


def row_slices(rows: int, width: int) -> list[slice]:
    """Slices of a metric's rows, of `width` numbers each, that keep temporary arrays small."""
    step = max(1, _CHUNK // max(1, width))
    return [slice(start, start + step) for start in range(0, rows, step)]


def shares_right(theta: Floats, X: Floats, y: Ints, best: np.ufunc) -> Floats:
    """Share of the samples whose label has the best score, for every model.

    Args:
        theta: Models, shape (models, classes, features).
        X: Features, shape (samples, features).
        y: Labels.
        best: ``np.maximum`` if the largest score wins, ``np.minimum`` if the smallest does; ties go to the first class.
    """
    models, classes, _ = theta.shape
    right = np.empty(models)
    step = max(1, _CACHED // (classes * len(X)))
    for rows in (slice(first, first + step) for first in range(0, models, step)):
        some = theta[rows]
        scores = (some.reshape(-1, X.shape[1]) @ X.T).reshape(len(some), classes, len(X))
        top = best.reduce(scores, axis=1)
        hits = scores[:, y, np.arange(len(X))] == top
        if np.count_nonzero(scores == top[:, None]) > top.size:  # ties, which need the slower argmax
            winner = scores.argmax(axis=1) if best is np.maximum else scores.argmin(axis=1)
            hits = winner == y
        right[rows] = hits.mean(axis=1)
    return right
