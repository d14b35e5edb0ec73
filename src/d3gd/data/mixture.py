"""The paper's synthetic data: Gaussian classes in Dirichlet proportions."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from d3gd.arrays import Floats, Ints
from d3gd.data.checks import check_alpha, check_block, check_room, check_sizes
from d3gd.errors import ProblemError
from d3gd.random import generator
from d3gd.validation import CLASSES, count

_MEANS, _AGENT, _TEST = 0, 1, 2  # key tags: one independent family of draws each


def class_means(*, seed: int, classes: int, features: int) -> Floats:
    """Means of the classes, N(0, I) each, keyed by the seed alone; shape (classes, features)."""
    return generator(seed, _MEANS).standard_normal((classes, features))


def dirichlet_mixture(
    *,
    agents: int,
    alpha: float | Sequence[float],
    seed: int = 0,
    classes: int = 10,
    features: int = 10,
    samples: int = 100,
    block: Ints | Sequence[int] | None = None,
) -> tuple[Floats, Ints]:
    r"""Samples of Gaussian classes, in proportions that differ from agent to agent.

    .. math::
        \mu_c \sim N(0, I), \qquad p_i \sim \mathrm{Dirichlet}(\alpha_i), \qquad
        m_i \sim \mathrm{Multinomial}(M, p_i), \qquad x \sim N(\mu_c, I) \text{ for } m_{ic} \text{ samples}

    Every agent has its own key (seed, agent), so a block generated alone is bitwise equal to its rows of the whole.

    Args:
        agents: Number of agents in the network.
        alpha: Concentration, one for all or one per agent; small means that an agent sees few classes.
        seed: Key of all draws.
        classes: Number of classes.
        features: Number of features.
        samples: Samples of each agent.
        block: Agents whose data to generate; by default all.

    Returns:
        Features of shape (block, samples, features) and labels of shape (block, samples), sorted by class.

    Example:
        >>> X, y = dirichlet_mixture(agents=50, alpha=0.1, block=[7])
        >>> X.shape, y.shape
        ((1, 100, 10), (1, 100))
    """
    sizes = check_sizes(agents=agents, classes=classes, features=features, samples=samples)
    agents, classes, features, samples = sizes
    count("classes", classes, least=1, most=CLASSES, error=ProblemError)
    concentration, chosen = check_alpha(alpha, agents), check_block(block, agents)
    check_room(agents=chosen.size, samples=samples, features=features)
    means = class_means(seed=seed, classes=classes, features=features)
    X, y = np.empty((chosen.size, samples, features)), np.empty((chosen.size, samples), dtype=np.int64)
    for row, agent in enumerate(chosen.tolist()):
        draw = generator(seed, _AGENT, agent)
        proportions = dirichlet(draw, float(concentration[agent]), classes)
        y[row] = np.repeat(np.arange(classes), draw.multinomial(samples, proportions))
        X[row] = means[y[row]] + draw.standard_normal((samples, features))
    return X, y


def mixture_test_set(*, seed: int, classes: int, features: int, samples: int) -> tuple[Floats, Ints]:
    """Test samples of the same Gaussian classes, all equally likely, with a separate key."""
    draw = generator(seed, _TEST)
    y = draw.integers(classes, size=samples)
    X = class_means(seed=seed, classes=classes, features=features)[y]
    return X + draw.standard_normal((samples, features)), y


def mixture_with_test_set(
    *, test_samples: int, seed: int, classes: int, features: int, **train: Any
) -> tuple[Floats, Ints, tuple[Floats, Ints] | None]:
    """The draws of `dirichlet_mixture` and `mixture_test_set` from one seed; None without test samples."""
    test_samples = count("test_samples", test_samples, least=0, error=ProblemError)
    X, y = dirichlet_mixture(seed=seed, classes=classes, features=features, **train)
    if not test_samples:
        return X, y, None
    check_room(test_samples=test_samples, features=features)
    return X, y, mixture_test_set(seed=seed, classes=classes, features=features, samples=test_samples)


def dirichlet(draw: np.random.Generator, alpha: float, classes: int) -> Floats:
    r"""One symmetric Dirichlet draw that stays finite for any positive alpha.

    Uses that :math:`\Gamma(\alpha) \sim \Gamma(\alpha + 1)\, U^{1/\alpha}` and normalizes the logarithms:
    for alpha near zero every gamma variate itself underflows.
    """
    logs = np.log(draw.standard_gamma(alpha + 1.0, size=classes))
    logs += np.log1p(-draw.random(classes)) / alpha
    shares = np.exp(logs - logs.max())
    proportions: Floats = shares / shares.sum()
    return proportions
