"""Problems of every kind, small enough to differentiate numerically."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import expit

from d3gd.problems import (
    Problem,
    from_functions,
    mixture_classification,
    quadratic,
    sigmoid_classification,
    softmax_regression,
)


def parts(sizes: list[int], features: int = 4, classes: int = 3, seed: int = 0):
    draw = np.random.default_rng(seed)
    return [(draw.standard_normal((m, features)), draw.integers(classes, size=m)) for m in sizes]


def logistic_functions(agents: int = 5, dim: int = 3) -> Problem:
    data = np.random.default_rng(3).standard_normal((agents, dim))
    return from_functions(
        agents=agents,
        dim=dim,
        gradient=lambda i, x: expit(data[i] @ x) * data[i],
        loss=lambda i, x: float(np.logaddexp(0.0, data[i] @ x)),
    )


class Distance(Problem):
    """A user's own subclass: only gradients and losses, everything else inherited."""

    def __init__(self, targets):
        self.targets = targets
        self.agents, self.dim = targets.shape

    def gradients(self, x, k=None):
        return x - self.targets

    def losses(self, x):
        return 0.5 * ((x - self.targets) ** 2).sum(axis=1)


MAKERS: dict[str, Callable[[], Problem]] = {
    "sigmoid": lambda: sigmoid_classification(agents=6, alpha=0.5, features=4, classes=3, samples=15),
    "sigmoid batch": lambda: sigmoid_classification(
        agents=6, features=4, classes=3, samples=15, batch=4, regularization=0.1
    ),
    "softmax equal": lambda: softmax_regression(parts([9] * 5), test=parts([8])[0]),
    "softmax uneven": lambda: softmax_regression(parts([9, 1, 17, 4, 5]), regularization=0.1),
    "softmax batch": lambda: softmax_regression(parts([9, 1, 17, 4, 5]), batch=3, seed=5),
    "mixture": lambda: mixture_classification(agents=5, features=4, classes=3, samples=15, batch=4),
    "quadratic": lambda: quadratic(agents=5, dim=4, seed=2, conditioning=30.0),
    "functions": logistic_functions,
}

ALL = pytest.mark.parametrize("name", MAKERS)


def models(problem: Problem, rows: int | None = None, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows or problem.agents, problem.dim))


def central_differences(value: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.ndarray:
    """Row r holds the derivative of value(x)[r] by x[r]."""
    step, out = 1e-5, np.empty_like(x)
    for j in range(x.shape[1]):
        shift = np.zeros(x.shape[1])
        shift[j] = step
        out[:, j] = (value(x + shift) - value(x - shift)) / (2 * step)
    return out


class Diagonal(Problem):
    """Quadratics with diagonal Hessians: cheap in any dimension."""

    def __init__(self, agents, dim, seed=0):
        rng = np.random.default_rng(seed)
        self.agents, self.dim = agents, dim
        self.h, self.b = rng.uniform(0.1, 1.0, (agents, dim)), rng.normal(size=(agents, dim))

    def gradients(self, x, k=None):
        return self.h * (x - self.b)
