"""Momentum Tracking: agents track the mean of their momenta."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from d3gd.algorithms.base import Algorithm
from d3gd.algorithms.composed import Composed
from d3gd.algorithms.diging import DIGing
from d3gd.algorithms.local import Local
from d3gd.algorithms.optimizers import Momentum
from d3gd.schedules import Schedule
from d3gd.validation import positive, within


@dataclass(frozen=True, kw_only=True)
class MomentumTracking(Composed):
    r"""Momentum Tracking: gradient tracking of momenta in place of gradients.

    .. math::
        u_i^k &= \mu u_i^{k-1} + g_i^k, \quad u_i^{-1} = 0, \\
        s_i^k &= \sum_j w_{ij} s_j^{k-1} + u_i^k - u_i^{k-1}, \quad s_i^0 = u_i^0, \qquad
        x_i^{k+1} = \sum_j w_{ij} (x_j^k - \gamma s_j^k)

    Momentum of an agent's own gradients would carry it towards its own optimum. Here all agents step along the mean of
    their momenta in the limit: since W is symmetric, :math:`\sum_i s_i^k = \sum_i u_i^k` at every iteration, so that at
    every fixed point all agents agree on a stationary point. It is ``DIGing(combine="after")`` with
    :class:`d3gd.Momentum` (:class:`d3gd.Local`), and computed as such.

    That momentum is tracked, and that the rate does not depend on how data differ, is in the paper's abstract. Its text
    could not be consulted: that models are combined after the step, and the form of the tracker, are ours.

    Args:
        step_size: :math:`\gamma`, a constant or a schedule.
        momentum: :math:`\mu`; it multiplies the effective step size by :math:`1 / (1 - \mu)`.

    Example:
        >>> import d3gd
        >>> graph, problem = d3gd.graphs.star(5), d3gd.problems.quadratic(agents=5, dim=3)
        >>> result = d3gd.run(MomentumTracking(step_size=0.02), graph, problem, iterations=1000)
        >>> bool(abs(result.x - problem.optimum).max() < 1e-9)
        True

    References:
        Takezawa, Bao, Niwa, Sato and Yamada, *Momentum Tracking: momentum acceleration for decentralized deep learning
        on heterogeneous data*, Transactions on Machine Learning Research, 2023; arXiv 2209.15505.
    """

    step_size: float | Schedule
    momentum: float = 0.9

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("step_size", self.step_size)
        within("momentum", self.momentum, 0, 1)

    @cached_property
    def composed(self) -> Algorithm[Any]:
        """Gradient tracking with a local optimizer."""
        return Local(
            method=DIGing(step_size=self.step_size, combine="after"), optimizer=Momentum(momentum=self.momentum)
        )
