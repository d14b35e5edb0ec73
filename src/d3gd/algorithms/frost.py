"""Gradient tracking with row-stochastic weights."""

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from d3gd.algorithms.base import Hardship, Needs
from d3gd.arrays import Floats
from d3gd.network import Network
from d3gd.rules.fixed import Fixed, Known
from d3gd.rules.mixing import Mixing
from d3gd.schedules import Schedule, at, one_of, positive
from d3gd.state import PerAgent


class FROSTState(NamedTuple):
    """The memory of FROST."""

    x: PerAgent  # (agents, d)  models
    s: PerAgent  # (agents, d)  A s^{k-1}: lags, for the gradient at x^k is not known before iteration k
    g: PerAgent  # (agents, d)  the gradient of iteration k - 1
    rule: Known  # the weights and their Perron vector


@dataclass(frozen=True, kw_only=True)
class FROST:
    r"""Row-stochastic gradient tracking: every agent follows the sum of all gradients, so none is left to disagree on.

    .. math::
        s_i^k = \sum_j a_{ij} s_j^{k-1} + \frac{g_i^k - g_i^{k-1}}{\pi_i}, \quad s_i^0 = \frac{g_i^0}{\pi_i}, \qquad
        x_i^{k+1} = \sum_j a_{ij} x_j^k - \frac{\gamma}{n} s_i^k

    or, combining after the step, :math:`x_i^{k+1} = \sum_j a_{ij} (x_j^k - \frac{\gamma}{n} s_j^k)`. Since
    :math:`\pi^\top S^k = \sum_i g_i^k` at every iteration, agents agree on a stationary point exactly, at the price of
    twice the traffic. What remains to be chosen by weights is how fast and how evenly they mix, not whose gradients
    cancel whose: the plan for tracking is a plan for white noise, made once, before the first iteration.

    Args:
        step_size: :math:`\gamma`, a number or a function of the iteration.
        rule: ``"mixing"`` plans the weights for fast mixing and a balanced Perron vector from the network alone (and
            keeps half of them at home where agents combine before); ``"fixed"`` takes the initial weights.
        combine: Whether agents combine ``"after"`` or ``"before"`` their step.

    References:
        Xin, Xi and Khan, *FROST: fast row-stochastic optimization with uncoordinated step-sizes*, EURASIP Journal on
        Advances in Signal Processing, 2019. There :math:`\pi_i` is tracked; here it is known from the set-up.
    """

    step_size: float | Schedule
    rule: Literal["mixing", "fixed"] = "mixing"
    combine: Literal["after", "before"] = "after"

    needs: ClassVar[Needs] = "the network"
    survives: ClassVar[frozenset[Hardship]] = frozenset()
    relies_on: ClassVar[str] = "the sum that it tracks, which needs the same Perron vector in every iteration"

    def __post_init__(self) -> None:
        positive("step_size", self.step_size)
        one_of("rule", self.rule, ("mixing", "fixed"))
        one_of("combine", self.combine, ("after", "before"))

    def init(self, net: Network, x0: Floats) -> FROSTState:
        r"""Start from ``x0``; the zeros make :math:`s^0 = g^0 / \pi` once the first gradient is known."""
        rule = Mixing(lazy=self.combine == "before") if self.rule == "mixing" else Fixed()
        return FROSTState(x=x0, s=np.zeros_like(x0), g=np.zeros_like(x0), rule=rule.init(net, x0))

    def point(self, s: FROSTState) -> Floats:
        """Gradients are wanted at the models."""
        return s.x

    def step(self, net: Network, g: Floats, s: FROSTState, k: int) -> FROSTState:
        """Take up the change of the gradient, step, and mix."""
        a, pi = s.rule.use(net)[:2]
        tracked = s.s + (g - s.g) / pi
        push = at(self.step_size, k) / net.n * tracked
        after = self.combine == "after"
        sent = net.exchange(m=s.x - push if after else s.x, s=tracked)
        mixed = net.mix(a, sent.m)
        return s._replace(x=mixed if after else mixed - push, s=net.mix(a, sent.s), g=g)

    def weights(self, net: Network, s: FROSTState) -> Floats:
        """Return the weights in use."""
        return s.rule.use(net).a

    def scale(self, net: Network, s: FROSTState) -> Floats:
        """Return the Perron weights, known exactly."""
        return s.rule.use(net).pi[:, 0]
