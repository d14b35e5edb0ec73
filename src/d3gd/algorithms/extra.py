"""EXTRA: decentralized gradient descent corrected by its own past."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from d3gd.algorithms.base import Algorithm, Gradient
from d3gd.arrays import Floats
from d3gd.network import Network
from d3gd.schedules import Schedule, at
from d3gd.state import PerAgent
from d3gd.validation import positive


class EXTRAState(NamedTuple):
    """The memory of EXTRA."""

    x: PerAgent  # (agents, d)  models
    m: PerAgent  # (agents, d)  what is taken back: (x + W x) / 2 - gamma g of iteration k - 1; its sum is that of x


@dataclass(frozen=True, kw_only=True)
class EXTRA(Algorithm[EXTRAState]):
    r"""EXTRA: the difference of two DGD iterations, of which one mixes with half the weights.

    .. math::
        x_i^{k+1} = x_i^k + \sum_j w_{ij} x_j^k
                    - \tfrac12 \Big( x_i^{k-1} + \sum_j w_{ij} x_j^{k-1} \Big)
                    - \gamma (g_i^k - g_i^{k-1}), \qquad
        x_i^1 = \sum_j w_{ij} x_j^0 - \gamma g_i^0

    Where the models come to rest, what is added and what is taken back cancel only if all agree; and since W is
    symmetric, the mean of all models moves along the mean gradient at every iteration. So they rest at a stationary
    point, with the traffic of DGD.

    Args:
        step_size: :math:`\gamma`, a number or a function of the iteration.

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

    step_size: float | Schedule

    needs = "undirected links"
    relies_on = "corrections that sum to zero, which needs columns that sum to one every time"
    exact = True

    def __post_init__(self) -> None:
        positive("step_size", self.step_size)

    def init(self, net: Network, x0: Floats) -> EXTRAState:
        """Start from ``x0``; taking it back makes the first iteration one of DGD."""
        return EXTRAState(x=x0, m=x0.astype(np.float64))

    def step(self, net: Network, gradient: Gradient, s: EXTRAState, k: int) -> EXTRAState:
        """Mix and step, less what the previous iteration brought with half the weights."""
        sent = net.exchange(x=s.x)
        push = at(self.step_size, k) * gradient()  # while messages are on their way
        mixed = net.mix(net.a0, sent.x, double=True)
        new = s.x + mixed - push - s.m
        x = net.precise(new)
        # What rounding takes from x is taken from m too: the sum of x - m must not drift.
        return EXTRAState(x=x, m=(s.x + mixed) / 2 - push - net.residual(new, x))
