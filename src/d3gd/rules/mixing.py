"""Weights for fast mixing, whatever the momentum and the compression."""

import numpy as np

from d3gd.arrays import Floats
from d3gd.digraph import Digraph
from d3gd.rules.gain import MOVING_UP_TO, decay, equally_good, fastest
from d3gd.spectrum import modes
from d3gd.steady.fast import fast_weights

_STAYS = tuple(0.05 * i for i in range(11))  # shares of their weights that agents may give to themselves instead


def mixing_weights(graph: Digraph, momentum: float, most: float, damping: float = 1.0, rounds: int = 1) -> Floats:
    r"""Return weights planned for fast mixing, and under momentum lazier ones: :math:`(1 - \sigma) A + \sigma I`.

    A momentum lets modes that alternate ring: with 0.9, a difference of :math:`\mu = -0.6` keeps 0.96 of its size in an
    iteration, and hardly any gain is stable. More weight on themselves takes agents away from there. Of
    :math:`\sigma = 0, 0.05, \dots, 0.5` it is the smallest under which the slowest mode decays fastest. Modes of large
    networks are not known, and their weights are as without momentum.

    Args:
        graph: The network.
        momentum: That of the models.
        most: The largest gain of the correction; 0 if there is none.
        damping: That of compression, which comes on top.
        rounds: The number of rounds per iteration.
    """
    a = fast_weights(graph)
    if not momentum or not 1 < graph.n <= MOVING_UP_TO:
        return a
    away = damping * (1 - modes(graph.matrix(a)))

    def rate(stay: float) -> float:
        mu = (1 - (1 - stay) * away) ** rounds
        return 1 - float(decay(mu, fastest(mu, momentum, most) if most else 0.0, momentum).max())

    stay = _STAYS[equally_good(np.array([rate(stay) for stay in _STAYS]))[0]]
    lazier: Floats = (1 - stay) * a + stay * (graph.sources == graph.targets)
    return lazier
