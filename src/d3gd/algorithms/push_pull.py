"""Push-Pull: gradient tracking with row-stochastic weights for models and column-stochastic ones for gradients."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from d3gd.algorithms.base import Hardship, Needs
from d3gd.arrays import Floats
from d3gd.network import Network
from d3gd.schedules import Schedule, at, positive
from d3gd.spectrum import perron
from d3gd.state import PerAgent, Scalar


class PushPullState(NamedTuple):
    """The memory of Push-Pull."""

    x: PerAgent  # (agents, d)  models
    s: PerAgent  # (agents, d)  C s^{k-1}: lags, for the gradient at x^k is not known before iteration k
    g: PerAgent  # (agents, d)  the gradient of iteration k - 1
    share: Scalar  # n pi_A . pi_C, by which the step is divided


@dataclass(frozen=True, kw_only=True)
class PushPull:
    r"""Push-Pull, or AB: models are pulled with weights A, gradients pushed with weights C.

    .. math::
        s_i^k = \sum_j c_{ij} s_j^{k-1} + g_i^k - g_i^{k-1}, \quad s_i^0 = g_i^0, \qquad
        x_i^{k+1} = \sum_j a_{ij} \Big( x_j^k - \frac{\gamma}{n\, \pi_A^\top \pi_C} s_j^k \Big)

    The columns of C sum to one: a sender splits what it holds equally among those who hear it and itself, so that
    :math:`\sum_i s_i^k = \sum_i g_i^k` at every iteration. An agent must know how many hear it, which no other method
    here asks for. The factor :math:`n\, \pi_A^\top \pi_C` makes the step size mean the same as elsewhere.

    Args:
        step_size: :math:`\gamma`, a number or a function of the iteration.

    References:
        Pu, Shi, Xu and Nedić, *Push-pull gradient methods for distributed optimization in networks*, IEEE Transactions
        on Automatic Control 66, 2021; Xin and Khan, *A linear algorithm for optimization over directed graphs with
        geometric convergence*, IEEE Control Systems Letters 2, 2018.
    """

    step_size: float | Schedule

    needs: ClassVar[Needs] = "out-degrees"
    survives: ClassVar[frozenset[Hardship]] = frozenset()
    relies_on: ClassVar[str] = "columns that sum to one: what is sent and not read, or read twice, changes its sums"

    def __post_init__(self) -> None:
        positive("step_size", self.step_size)

    def init(self, net: Network, x0: Floats) -> PushPullState:
        """Start from ``x0``; the zeros make :math:`s^0 = g^0` once the first gradient is known."""
        graph = net.graph
        pull = perron(graph.matrix(net.everywhere_a0))
        push = perron(graph.matrix(1 / (graph.out_degrees + 1.0)[graph.sources]).T)
        return PushPullState(x=x0, s=np.zeros_like(x0), g=np.zeros_like(x0), share=float(net.n * (pull @ push)))

    def point(self, s: PushPullState) -> Floats:
        """Gradients are wanted at the models."""
        return s.x

    def step(self, net: Network, g: Floats, s: PushPullState, k: int) -> PushPullState:
        """Take up the change of the gradient, step, pull the models and push the gradients."""
        listeners = net.graph.out_degrees[net.agents, None] + 1
        tracked = s.s + g - s.g
        sent = net.exchange(m=s.x - at(self.step_size, k) / s.share * tracked, s=tracked / listeners)
        return s._replace(x=net.mix(net.a0, sent.m), s=net.mix(np.ones_like(net.a0), sent.s), g=g)

    def weights(self, net: Network, s: PushPullState) -> Floats:
        """Return the weights of the models, which never change."""
        return net.a0

    def scale(self, net: Network, s: PushPullState) -> None:
        """Agents know no Perron weight of their own."""
