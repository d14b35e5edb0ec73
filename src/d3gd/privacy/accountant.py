"""The epsilon of a sequence of noisy gradients, by Google's dp-accounting."""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from d3gd.errors import D3GDError
from d3gd.validation import count, within

_GRID = 1e-3  # of privacy losses; the library rounds them up, so that epsilon is never too small


def epsilon(spent: Sequence[tuple[float, float, int]], delta: float) -> float:
    """Return the epsilon of Poisson-sampled Gaussian mechanisms that follow one another.

    Privacy loss distributions are composed, for data sets that differ in one example which one of them replaces by
    nothing (the library's ``REPLACE_SPECIAL``).

    Args:
        spent: For each kind of evaluation its noise multiplier, the probability of an example to be drawn, and how
            many there were.
        delta: The probability delta.

    Example:
        >>> round(epsilon([(10.0, 1.0, 100)], 1e-5), 3)  # one Gaussian mechanism with noise 1
        4.377
    """
    return _epsilon(tuple(each for each in spent if each[2]), delta)


@lru_cache(maxsize=1024)  # records ask for the same number again
def _epsilon(spent: tuple[tuple[float, float, int], ...], delta: float) -> float:
    if not spent:
        return 0.0
    dp, pld = _library()
    accountant = pld.PLDAccountant(dp.NeighboringRelation.REPLACE_SPECIAL, _GRID)
    for noise, sample, steps in spent:
        if sample >= 1:  # Gaussian mechanisms compose to a Gaussian mechanism
            accountant.compose(dp.GaussianDpEvent(noise / math.sqrt(steps)))
        else:
            accountant.compose(dp.PoissonSampledDpEvent(sample, dp.GaussianDpEvent(noise)), steps)
    return float(accountant.get_epsilon(delta))


def noise_for(epsilon: float, *, steps: int, sample: float = 1.0, delta: float = 1e-5) -> float:
    """Return the smallest noise multiplier whose epsilon is at most a given one.

    Args:
        epsilon: The epsilon.
        steps: The number of evaluations of the gradient, mostly one per iteration.
        sample: The probability of an example to be drawn: the batch over the number of the agent's examples.
        delta: The probability delta.

    Example:
        >>> round(noise_for(3.0, steps=300, sample=0.2), 2)
        4.94
    """
    within("epsilon", epsilon, 0, math.inf, closed="()")
    within("sample", sample, 0, 1, closed="(]")
    within("delta", delta, 0, 1, closed="()")
    count("steps", steps, least=1)
    low, high = 0.0, 1.0
    while _epsilon(((high, sample, steps),), delta) > epsilon:
        low, high = high, 2 * high
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        # Below a tenth of the upper end an epsilon would be huge, and slow to compute.
        enough = middle > high / 10 and _epsilon(((middle, sample, steps),), delta) <= epsilon
        low, high = (low, middle) if enough else (middle, high)
    return high


def _library() -> tuple[Any, Any]:
    try:
        import dp_accounting
        from dp_accounting import pld
    except ImportError as error:
        raise D3GDError(
            f"privacy needs dp-accounting ({error}), which computes epsilon; install it: pip install 'd3gd[privacy]'"
        ) from None
    return dp_accounting, pld
