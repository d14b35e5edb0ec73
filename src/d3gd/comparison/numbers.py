"""Quantiles of possibly infinite values, the time at which a curve reaches a level, and their formats."""

from collections.abc import Sequence

import numpy as np

from d3gd.arrays import Floats


def quantile(values: Sequence[float], q: float) -> float:
    """Return a quantile as NumPy does, but also for infinite values: the median of 1, inf, inf is inf."""
    ordered = sorted(values)
    place = q * (len(ordered) - 1)
    below, above = ordered[int(np.floor(place))], ordered[int(np.ceil(place))]
    share = place % 1
    return below if share == 0 or below == above else float((1 - share) * below + share * above)


def reached(iterations: Floats, curve: Floats, level: float) -> float:
    """Return the iteration from which a curve stays at or below a level, or infinity if it ends above.

    The curve is interpolated exponentially between records.

    Example:
        >>> k = np.arange(0, 1001, 50.0)
        >>> round(reached(k, np.exp(-0.01 * k), np.exp(-1.23)), 9)
        123.0
    """
    above = np.flatnonzero(~(curve <= level))
    if above.size == 0:
        return float(iterations[0])
    last = int(above[-1])
    if last == len(curve) - 1:
        return np.inf
    if not 0 < curve[last + 1] <= curve[last] < np.inf:
        return float(iterations[last + 1])
    share = np.log(curve[last] / level) / np.log(curve[last] / curve[last + 1])
    return float(iterations[last] + share * (iterations[last + 1] - iterations[last]))


def shown(value: float) -> str:
    """Format a ratio with two digits.

    Example:
        >>> [shown(x) for x in (0.0512, 0.00031, 3e-7, 123.4, np.inf, np.nan)]
        ['0.051', '0.00031', '3e-7', '123', '∞', '-']
    """
    if np.isnan(value):
        return "-"
    if np.isinf(value):
        return "∞"
    if 1e-4 <= value < 1e4:
        return f"{value:.0f}" if value >= 10 else f"{value:.2g}"
    mantissa, exponent = f"{value:.1e}".split("e")
    return "0" if value == 0 else f"{float(mantissa):g}e{int(exponent)}"


def strict(value: float) -> float | str | None:
    """Convert a number to strict JSON with five digits: infinity becomes a word, NaN becomes null.

    Example:
        >>> [strict(x) for x in (1 / 3, np.inf, np.nan)]
        [0.33333, 'inf', None]
    """
    return None if np.isnan(value) else "inf" if np.isinf(value) else float(f"{value:.5g}")
