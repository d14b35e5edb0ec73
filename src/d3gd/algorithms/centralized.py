"""Gradient descent on all data at once: the baseline."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from d3gd.algorithms.base import Algorithm, Gradient
from d3gd.arrays import Floats
from d3gd.network import Network
from d3gd.schedules import Schedule, at
from d3gd.state import PerAgent
from d3gd.validation import positive, within


class CentralizedState(NamedTuple):
    """The state of centralized gradient descent."""

    x: PerAgent  # (agents, d)  models, equal for all agents
    was: PerAgent  # (agents, d)  the models of iteration k - 1


@dataclass(frozen=True, kw_only=True)
class Centralized(Algorithm[CentralizedState]):
    r"""Centralized gradient descent: one model, updated with the mean of all gradients.

    .. math:: x^{k+1} = x^k - \frac{\gamma}{n} \sum_i g_i^k + \beta (x^k - x^{k-1})

    It is not a decentralized method but the baseline for all of them: their step sizes are scaled so that they would
    take these steps if mixing were perfect.

    Args:
        step_size: :math:`\gamma`, a constant or a schedule.
        momentum: :math:`\beta`, heavy-ball momentum; it multiplies the effective step size by :math:`1/(1-\beta)`.

    Example:
        >>> import d3gd
        >>> graph, problem = d3gd.graphs.ring(5), d3gd.problems.quadratic(agents=5, dim=3)
        >>> result = d3gd.run(Centralized(step_size=0.5), graph, problem, iterations=500)
        >>> bool(abs(result.x - problem.optimum).max() < 1e-9), float(result.metrics["disagreement"].max())
        (True, 0.0)

    References:
        Polyak, *Some methods of speeding up the convergence of iteration methods*, USSR Computational Mathematics and
        Mathematical Physics 4, 1964, for the heavy ball.
    """

    step_size: float | Schedule
    momentum: float = 0.0

    needs = "all agents"
    # Nothing travels along links, but an agent that pauses misses updates of the common model.
    survives = frozenset({"changing links", "loss", "delay"})
    relies_on = "one model that all agents hold: an agent that pauses falls behind and never catches up"
    exact = True

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("step_size", self.step_size)
        within("momentum", self.momentum, 0, 1)

    def init(self, net: Network, x0: Floats) -> CentralizedState:
        """Start all agents at the mean of ``x0``."""
        x = _mean(net, x0)
        return CentralizedState(x=x, was=x)

    def step(self, net: Network, gradient: Gradient, s: CentralizedState, k: int) -> CentralizedState:
        """Step along the mean gradient."""
        x = s.x - at(self.step_size, k) * _mean(net, gradient()) + self.momentum * (s.x - s.was)
        return CentralizedState(x=x, was=s.x)


def _mean(net: Network, values: Floats) -> Floats:
    """Return the mean over all agents, once per agent of the block."""
    mean: Floats = net.everyone(values).mean(axis=0)
    return np.tile(mean, (len(net.agents), 1))
