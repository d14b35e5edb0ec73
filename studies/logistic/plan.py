"""What the study of logistic regression compares: the problem of a file, cells and methods."""

from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

import d3gd
from d3gd.arrays import Array, Floats
from d3gd.comparison.result import Comparison
from d3gd.errors import ProblemError
from d3gd.problems import Problem
from studies.settings import BASELINE, CENTRAL, DEFAULT, FROST_, METHODS, PAPER, PUSH_PULL, network

NETWORK, ITERATIONS, SEEDS = "Erdos-Renyi 0.3 (20)", 1000, 3
REGULARIZATION, BATCH = 1e-3, 8
TARGET = 1e-3  # the loss gap whose cost is reported
NAMES = (BASELINE, PAPER, DEFAULT, "SGP", PUSH_PULL, FROST_, CENTRAL)
_STEP = 1e-5  # of the differences that give the Hessian


class Cell(NamedTuple):
    """A label skew and a batch size."""

    alpha: float
    batch: int | None

    @property
    def folder(self) -> str:
        """The name of its folder."""
        return f"alpha-{self.alpha:g}-{'full' if self.batch is None else f'batch-{self.batch}'}"

    def __str__(self) -> str:
        return f"alpha = {self.alpha:g}, " + ("all data" if self.batch is None else f"mini-batches of {self.batch}")


CELLS = tuple(Cell(alpha, batch) for alpha, batch in product((0.1, 1.0), (None, BATCH)))


class LossGap(Problem):
    r"""A strongly convex problem whose losses are measured from the optimum: :math:`F(x) - \min F`.

    Args:
        problem: The problem.
        convexity: The factor of its strong convexity, here the regularization.

    Attributes:
        within: Bound on the error of the minimum: :math:`\|\nabla F\|^2 / 2 \lambda` where it was evaluated, and not
            below the rounding of the loss.
    """

    def __init__(self, problem: Problem, convexity: float) -> None:
        self.agents, self.dim, self._whole = problem.agents, problem.dim, problem
        x = _minimizer(problem)
        self._least = float(problem.loss(x[None]))
        self._rounding = float(np.finfo(np.float64).eps) * abs(self._least)
        self.within = max(float(np.sum(problem.global_gradients(x[None]) ** 2)) / (2 * convexity), self._rounding)

    def gradients(self, x: Floats, k: int | None = None) -> Floats:
        """The gradients of the problem."""
        return self._whole.gradients(x, k)

    def losses(self, x: Floats) -> Floats:
        """Every agent's objective, less the minimum of their mean."""
        return self._whole.losses(x) - self._least

    def sum_gradients(self, x: Floats) -> Floats:
        """The gradients of the sum."""
        return self._whole.sum_gradients(x)

    def sum_losses(self, x: Floats) -> Floats:
        """The gap; below the rounding of the loss it is nothing but that."""
        gaps = self._whole.sum_losses(x) - self.agents * self._least
        return np.maximum(gaps, self.agents * self._rounding)

    def fingerprints(self) -> Array:
        """Those of the problem, which define this one."""
        return self._whole.fingerprints()


def _minimizer(problem: Problem) -> Floats:
    """Return the minimizer of F: quasi-Newton steps, and a Newton step where these end by rounding."""

    def value(x: Floats) -> tuple[float, Floats]:
        return problem.loss(x[None]), problem.global_gradients(x[None])[0]

    options: Any = {"maxiter": 10_000, "maxfun": 20_000, "ftol": 0.0, "gtol": 1e-12, "maxcor": 30}
    x: Floats = minimize(value, problem.start(), jac=True, method="L-BFGS-B", options=options).x
    shifts = _STEP * np.eye(problem.dim)
    H = (problem.global_gradients(x + shifts) - problem.global_gradients(x - shifts)) / (2 * _STEP)
    return x - np.linalg.solve((H + H.T) / 2, problem.global_gradients(x[None])[0])


@lru_cache(maxsize=1)
def samples(file: Path, sha256: str | None) -> tuple[Array, Array]:
    """Return the features and the two classes of a file."""
    X, y = d3gd.data.read_libsvm(file, sha256=sha256)
    if y.max() != 1:
        raise ProblemError(f"{file} has {y.max() + 1} classes; logistic regression needs two")
    return X, y


@lru_cache(maxsize=16)  # a process runs many methods on the same seeds
def problem(file: Path, sha256: str | None, cell: Cell, seed: int) -> LossGap:
    """Return the problem of a seed: the samples divided among agents with label skew."""
    X, y = samples(file, sha256)
    settings: dict[str, Any] = {"regularization": REGULARIZATION, "batch": cell.batch, "test_fraction": 0}
    agents = network(NETWORK, seed).n
    whole = d3gd.problems.label_skewed_classification(X, y, agents=agents, alpha=cell.alpha, seed=seed, **settings)
    return LossGap(whole, REGULARIZATION)


def comparison(
    cell: Cell, file: Path, sha256: str | None, out: Path, *, iterations: int, seeds: int, jobs: int | None
) -> Comparison:
    """Compare the methods in a cell, each at its own tuned step; runs that the folder holds are not repeated."""
    return d3gd.compare(
        partial(network, NETWORK),
        partial(problem, file, sha256, cell),
        methods={name: METHODS[name].make for name in NAMES},
        only=NAMES,
        iterations=iterations,
        metric="loss",
        target=TARGET,
        seeds=seeds,
        quick=True,  # a grid of seven steps, which grows as needed, and two seeds for tuning
        out=out / cell.folder,
        jobs=jobs,
        progress=True,
    )
