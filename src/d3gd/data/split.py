"""Division of a labelled data set among agents, and into training and test data."""

from collections.abc import Sequence

import numpy as np

from d3gd.arrays import Array, Floats, Ints
from d3gd.data.checks import check_alpha, check_labels, check_sizes
from d3gd.data.mixture import dirichlet
from d3gd.errors import ProblemError
from d3gd.random import generator
from d3gd.validation import as_array, is_number, shown

_SPLIT, _HOLD_OUT = 4, 5  # key tags: one independent family of draws each


def split_by_label(
    X: Array,
    y: Array,
    *,
    agents: int,
    alpha: float | Sequence[float],
    seed: int = 0,
    sizes: Sequence[int] | None = None,
) -> list[tuple[Array, Array]]:
    r"""Parts of a labelled data set with Dirichlet label skew, of equal or given sizes; no sample is used twice.

    Each class is shuffled into a stack. In random order, every agent i draws class proportions
    :math:`p_i \sim \mathrm{Dirichlet}(\alpha_i)` over all classes and fills its
    :math:`\lfloor N / n \rfloor` places, or as many as ``sizes`` gives it:

    1. draw multinomial counts for the free places, from p_i restricted to the classes with samples left;
    2. take as many of each class as its stack still holds;
    3. repeat from 1 until no place is free.

    If p_i gives the remaining classes zero probability, their remaining sizes are used instead. Samples that fill no
    place stay unused. An agent's samples are sorted by class.

    Args:
        X: Features; first axis: samples.
        y: Integer labels of 0 or more, shape (samples,).
        agents: Number of parts.
        alpha: Concentration, one for all or one per agent; small means that an agent sees few classes.
        seed: Key of all draws.
        sizes: The number of samples of each agent; by default equal numbers.

    Returns:
        One pair (X, y) per agent.

    Example:
        >>> parts = split_by_label(np.arange(10.0)[:, None], np.arange(10) % 2, agents=3, alpha=0.1)
        >>> [len(labels) for _, labels in parts]
        [3, 3, 3]
        >>> parts = split_by_label(np.arange(10.0)[:, None], np.arange(10) % 2, agents=3, alpha=0.1, sizes=[1, 7, 2])
        >>> [len(labels) for _, labels in parts]
        [1, 7, 2]
    """
    X, y = _labelled(X, y)
    (agents,) = check_sizes(agents=agents)
    if agents > len(y):
        raise ProblemError(f"{len(y)} samples cannot fill {agents} agents; use 1 to {len(y)} agents")
    concentration = check_alpha(alpha, agents)
    places = [len(y) // agents] * agents if sizes is None else _places(sizes, agents, len(y))
    draw = generator(seed, _SPLIT)
    stacks = [draw.permutation(np.flatnonzero(y == c)) for c in np.unique(y)]
    left = np.array([stack.size for stack in stacks])
    chosen: dict[int, Ints] = {}
    for agent in draw.permutation(agents).tolist():
        proportions = dirichlet(draw, float(concentration[agent]), len(stacks))
        before = left.copy()
        free = places[agent]
        while free:
            taken = np.minimum(draw.multinomial(free, _available(proportions, left)), left)
            left -= taken
            free -= int(taken.sum())
        chosen[agent] = np.concatenate([s[a:b] for s, a, b in zip(stacks, left, before, strict=True)])
    return [(X[chosen[agent]], y[chosen[agent]]) for agent in range(agents)]


def _places(sizes: Sequence[int], agents: int, samples: int) -> list[int]:
    """Return the number of samples of each agent, or raise an error."""
    given = as_array("sizes", sizes, error=ProblemError)
    if given.shape != (agents,) or given.dtype.kind not in "iu" or given.min() < 1:
        raise ProblemError(f"sizes = {shown(sizes)}: it must be a list of {agents} whole numbers of 1 or more")
    places: list[int] = given.tolist()
    if sum(places) > samples:
        raise ProblemError(f"sizes sum to {sum(places)}, more than the {samples} samples; choose smaller ones")
    return places


def _available(proportions: Floats, left: Ints) -> Floats:
    """The proportions restricted to the classes with samples left."""
    open_classes = np.where(left > 0, proportions, 0.0)
    if open_classes.max() == 0.0:
        open_classes = left.astype(np.float64)
    open_classes /= open_classes.max()  # rescaled first: their sum may underflow
    shares: Floats = open_classes / open_classes.sum()
    return shares


def hold_out(X: Array, y: Array, *, fraction: float, seed: int = 0) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Hold out a stratified share of the samples as test data.

    The test set has the nearest whole number to fraction * N samples; each class contributes its proportional share
    rounded down, and the classes with the largest remainders one more.

    Args:
        X: Features; first axis: samples.
        y: Integer labels of 0 or more, shape (samples,).
        fraction: The share of samples in the test set, at least 0 and below 1.
        seed: Key of the draw.

    Returns:
        Two pairs (X, y), training and test data, each in the order of the input.

    Example:
        >>> train, test = hold_out(np.arange(10.0)[:, None], np.arange(10) % 2, fraction=0.4)
        >>> len(train[1]), test[1].tolist().count(0), test[1].tolist().count(1)
        (6, 2, 2)
    """
    X, y = _labelled(X, y)
    if not (is_number(fraction) and 0.0 <= fraction < 1.0):
        raise ProblemError(f"fraction = {shown(fraction)}; the share held out is at least 0 and below 1")
    fraction = float(fraction)
    labels, counts = np.unique(y, return_counts=True)
    wanted = fraction * counts
    shares = np.floor(wanted).astype(np.int64)
    extra = round(fraction * len(y)) - int(shares.sum())
    shares[np.argsort(shares - wanted, kind="stable")[:extra]] += 1
    draw = generator(seed, _HOLD_OUT)
    apart = np.zeros(len(y), dtype=np.bool_)
    for label, share in zip(labels, shares, strict=True):
        apart[draw.permutation(np.flatnonzero(y == label))[:share]] = True
    return (X[~apart], y[~apart]), (X[apart], y[apart])


def _labelled(X: Array, y: Array) -> tuple[Array, Array]:
    X, y = as_array("X", X, error=ProblemError), as_array("y", y, error=ProblemError)
    if X.ndim < 1 or y.ndim != 1 or len(X) != len(y) or len(y) == 0:
        raise ProblemError(f"X of shape {X.shape} and y of shape {y.shape}; pass one label per sample")
    check_labels(y, "the set")
    return X, y
