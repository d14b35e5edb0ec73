"""EXTRA: decentralized gradient descent corrected by its own past."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from d3gd.algorithms.base import Algorithm, Gradient, Heading
from d3gd.arrays import Floats
from d3gd.distributed.coding import require_undamped
from d3gd.network import Network
from d3gd.schedules import Schedule, at
from d3gd.state import PerAgent
from d3gd.validation import positive


class EXTRAState(NamedTuple):
    """The state of EXTRA."""

    x: PerAgent  # (agents, d)  models
    m: PerAgent  # (agents, d)  subtracted: (x + W x) / 2 - gamma g of iteration k - 1; has the same sum as x


@dataclass(frozen=True, kw_only=True)
class EXTRA(Algorithm[EXTRAState]):
    r"""EXTRA: the difference of two DGD iterations, the earlier one with weights (I + W) / 2.

    .. math::
        x_i^{k+1} = x_i^k + \sum_j w_{ij} x_j^k
                    - \tfrac12 \Big( x_i^{k-1} + \sum_j w_{ij} x_j^{k-1} \Big)
                    - \gamma (g_i^k - g_i^{k-1}), \qquad
        x_i^1 = \sum_j w_{ij} x_j^0 - \gamma g_i^0

    At a fixed point the added and subtracted terms cancel, which requires that all models agree. Since W is symmetric,
    the mean of all models moves along the mean gradient at every iteration. So EXTRA converges to a stationary point,
    with the traffic of DGD.

    Args:
        step_size: :math:`\gamma`, a constant or a schedule.

    Example:
        >>> import d3gd
        >>> graph, problem = d3gd.graphs.star(5), d3gd.problems.quadratic(agents=5, dim=3)
        >>> result = d3gd.run(EXTRA(step_size=0.5), graph, problem, iterations=500)
        >>> bool(abs(result.x - problem.optimum).max() < 1e-9)
        True

    References:
        Shi, Ling, Wu and Yin, *EXTRA: an exact first-order algorithm for decentralized consensus optimization*, SIAM
        Journal on Optimization 25, 2015, with :math:`\tilde W = (I + W) / 2`.
    """

    coordinatewise = True

    step_size: float | Schedule

    needs = "undirected links"
    relies_on = "corrections that sum to zero, which needs columns that sum to one in every iteration"
    exact = True

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("step_size", self.step_size)

    def init(self, net: Network, x0: Floats) -> EXTRAState:
        """Start from ``x0``; subtracting it makes the first iteration one of DGD."""
        require_undamped(net, "EXTRA")
        return EXTRAState(x=x0, m=x0.astype(np.float64))

    def step(self, net: Network, gradient: Gradient, s: EXTRAState, k: int) -> EXTRAState:
        """Mix and step, and subtract the previous iteration with weights (I + W) / 2."""
        sent = net.exchange(x=s.x)
        push = at(self.step_size, k) * gradient()  # while messages are in flight
        mixed = net.mix(net.a0, sent.x, double=True)
        new = s.x + mixed - push - s.m
        x = net.precise(new)
        # Rounding errors of x are subtracted from m too, so that the sum of x - m does not drift.
        return EXTRAState(x=x, m=(s.x + mixed) / 2 - push - net.residual(new, x))

    def heading(self, net: Network, s: EXTRAState, k: int) -> Heading:
        """What is subtracted steers."""
        return Heading(1.0, (s.m - s.x) / at(self.step_size, k))
