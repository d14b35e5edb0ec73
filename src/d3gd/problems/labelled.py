"""Softmax regression on one labelled set, divided among the agents by label skew."""

from collections.abc import Sequence

import numpy as np

from d3gd.arrays import Array
from d3gd.data.bundled import digits
from d3gd.data.partition import hold_out, split_by_label
from d3gd.problems.softmax import SoftmaxRegression, softmax_regression


def label_skewed_classification(
    X: Array,
    y: Array,
    *,
    agents: int = 20,
    alpha: float | Sequence[float] = 0.1,
    seed: int = 0,
    regularization: float = 1e-3,
    batch: int | None = None,
    test_fraction: float = 0.2,
) -> SoftmaxRegression:
    """Softmax regression on any labelled set: a test set held out, the rest in equal parts with label skew.

    Args:
        X: Features, shape (samples, features).
        y: Integer labels of 0 or more, shape (samples,).
        agents: Number of agents.
        alpha: Dirichlet concentration of the agents' class proportions, one for all or one per agent.
        seed: Key of the division and of the mini-batches.
        regularization: Factor of half the squared norm.
        batch: Samples for a gradient, drawn with replacement; None takes all.
        test_fraction: Share of the samples held out for the accuracy; 0 for none.

    Returns:
        The problem; see `softmax_regression`, `hold_out` and `split_by_label`.

    Example:
        >>> X, y = np.eye(4)[np.arange(40) % 4], np.arange(40) % 4
        >>> problem = label_skewed_classification(X, y, agents=4)
        >>> problem.agents, problem.dim
        (4, 16)
    """
    (train_X, train_y), test = hold_out(X, y, fraction=test_fraction, seed=seed)
    parts = split_by_label(train_X, train_y, agents=agents, alpha=alpha, seed=seed)
    return softmax_regression(
        parts,
        regularization=regularization,
        batch=batch,
        seed=seed,
        test=test if len(test[1]) else None,
        classes=max(2, int(np.max(y)) + 1),
    )


def digits_classification(
    *,
    agents: int = 20,
    alpha: float | Sequence[float] = 0.1,
    seed: int = 0,
    regularization: float = 1e-3,
    batch: int | None = None,
    test_fraction: float = 0.2,
) -> SoftmaxRegression:
    """Softmax regression on scikit-learn's digits: models of 10 x 65 numbers.

    Args:
        agents: Number of agents.
        alpha: Dirichlet concentration of the agents' class proportions, one for all or one per agent.
        seed: Key of the division and of the mini-batches.
        regularization: Factor of half the squared norm.
        batch: Samples for a gradient, drawn with replacement; None takes all.
        test_fraction: Share of the samples held out for the accuracy; 0 for none.

    Returns:
        The problem; see `label_skewed_classification`.
    """
    X, y = digits()
    problem = label_skewed_classification(
        X,
        y,
        agents=agents,
        alpha=alpha,
        seed=seed,
        regularization=regularization,
        batch=batch,
        test_fraction=test_fraction,
    )
    return problem._made_by(
        "digits_classification",
        agents=agents,
        alpha=np.asarray(alpha, dtype=np.float64).tolist(),
        seed=seed,
        regularization=regularization,
        batch=batch,
        test_fraction=test_fraction,
    )
