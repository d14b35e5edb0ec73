"""Softmax regression with label skew: on a data set that is divided, or on synthetic data."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from d3gd.arrays import Array, Ints
from d3gd.data.bundled import digits
from d3gd.data.split import hold_out, split_by_label
from d3gd.problems.classification import of_mixture
from d3gd.problems.softmax import SoftmaxRegression, class_count, softmax_regression


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
    """Softmax regression on any labelled data set, divided equally among agents with label skew.

    Args:
        X: Features, shape (samples, features).
        y: Integer labels of 0 or more, shape (samples,).
        agents: Number of agents.
        alpha: Dirichlet concentration of the agents' class proportions, one for all or one per agent.
        seed: Key of the division and of the mini-batches.
        regularization: Factor of half the squared norm.
        batch: Samples for a gradient, drawn with replacement; None: all.
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
        classes=class_count([np.asarray(y)]),
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
        batch: Samples for a gradient, drawn with replacement; None: all.
        test_fraction: Share of the samples held out for the accuracy; 0 for none.

    Returns:
        The problem; see `label_skewed_classification`.
    """
    divided: dict[str, Any] = {"agents": agents, "alpha": alpha, "seed": seed, "test_fraction": test_fraction}
    divided |= {"regularization": regularization, "batch": batch}
    return label_skewed_classification(*digits(), **divided)._made_by("digits_classification", **divided)


def mixture_classification(
    *,
    agents: int = 20,
    alpha: float | Sequence[float] = 0.1,
    seed: int = 0,
    classes: int = 10,
    features: int = 10,
    samples: int = 100,
    regularization: float = 1e-3,
    batch: int | None = None,
    test_samples: int = 1000,
    block: Ints | Sequence[int] | None = None,
) -> SoftmaxRegression:
    """Softmax regression on the Gaussian classes of `d3gd.data.dirichlet_mixture`: convex, without dependencies.

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
        >>> problem = mixture_classification(agents=4, features=5)
        >>> problem.agents, problem.dim
        (4, 50)
    """
    return of_mixture(
        lambda X, y, **settings: softmax_regression(list(zip(X, y, strict=True)), **settings),
        "mixture_classification",
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
