"""The links that agents prune: preferably those to neighbours with similar values."""

import math

import numpy as np

from d3gd.arrays import Bools, Floats, Ints
from d3gd.errors import SettingsError
from d3gd.validation import is_number, shown, within


def require_pruning(prune: float, sharpness: float) -> None:
    """Raise an error unless the settings leave links and prefer to prune those between similar values."""
    within("prune", prune, 0, 1)
    if not (is_number(sharpness) and sharpness >= 0):
        raise SettingsError(
            f"sharpness = {shown(sharpness)}: it must be 0 or more; inf prunes the most similar neighbours"
        )


def order(distances: Floats, unit: Floats | float, sharpness: float, draws: Floats) -> Floats:
    r"""Return a number per link; an agent prunes its links in ascending order.

    Drawing links sequentially without replacement with probabilities :math:`p_j \propto \exp(-\beta d_j / \bar d)` is
    equivalent to a race of exponential clocks with rates :math:`p_j`. The numbers are the logarithms of the clocks'
    times.

    Args:
        distances: The distance between the ends of each link.
        unit: The unit of distances, :math:`\bar d`, for all links or per link; if it is 0, so are the distances.
        sharpness: :math:`\beta`; if infinite, the distances alone decide.
        draws: A uniform number per link.

    Example:
        >>> order(np.array([3.0, 1.0]), 2.0, 1.0, np.array([0.5, 0.5])).round(3)
        array([1.133, 0.133])
    """
    if math.isinf(sharpness):
        return distances
    with np.errstate(divide="ignore"):  # a time of zero has the logarithm -inf, as it should
        clocks: Floats = np.log(-np.log1p(-draws))
    return clocks + np.divide(sharpness * distances, unit, out=np.zeros_like(distances), where=np.asarray(unit) > 0)


def given_up(agents: Ints, order: Floats, prune: float) -> Bools:
    r"""Return a mask of the links that agents prune, :math:`\lfloor \kappa d_i \rfloor` of each.

    Args:
        agents: The agent of every link, ascending.
        order: The order in which each agent prunes its links.
        prune: :math:`\kappa`, the share of links to prune.

    Example:
        >>> given_up(np.array([0, 0, 1, 1]), np.array([2.0, 1.0, 3.0, 4.0]), 0.5)
        array([False,  True,  True, False])
    """
    degrees = np.bincount(agents)
    sorted_links = np.lexsort((order, agents))
    places = np.arange(len(agents)) - (np.cumsum(degrees) - degrees)[agents]
    gone = np.zeros(len(agents), dtype=bool)
    gone[sorted_links] = places < np.floor(prune * degrees)[agents]
    return gone
