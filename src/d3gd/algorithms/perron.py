"""PerronD3GD: weights that know what they do to the Perron vector."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from d3gd.algorithms.base import Algorithm, Gradient
from d3gd.arrays import Floats
from d3gd.conditions import Hardship
from d3gd.network import Network
from d3gd.rules.base import Now, Rule
from d3gd.rules.fixed import Fixed
from d3gd.rules.local import Local
from d3gd.rules.planned import Planned
from d3gd.rules.updates import corrected, correction
from d3gd.schedules import Schedule, at
from d3gd.state import PerAgent
from d3gd.steady.planner import PLANNED_UP_TO
from d3gd.validation import one_of, positive


class PerronState(NamedTuple):
    """The memory of PerronD3GD."""

    x: PerAgent  # (agents, d)  models
    w: PerAgent  # (agents, d)  corrections per unit of the step size, in double; they sum to zero over all agents
    rule: Any  # what the rule knows: weights in use, their Perron vector


@dataclass(frozen=True, kw_only=True)
class PerronD3GD(Algorithm[PerronState]):
    r"""D3GD beyond the paper: weights that know what they do to the Perron vector, and a correction for the rest.

    Each agent steps with its exact Perron weight, corrects by what it remembers of past disagreement, and mixes:

    .. math::
        m_i^k &= x_i^k - \frac{\gamma_k}{\pi_i} \Big( \frac1n g_i^k + w_i^k \Big), \qquad
        x_i^{k+1} = \sum_j a_{ij} m_j^k, \\
        w_i^{k+1} &= w_i^k + \frac{\beta}{\gamma_k} \pi_i \Big( m_i^k - \sum_j a_{ij} m_j^k \Big), \qquad w_i^0 = 0 .

    Since :math:`\pi^\top (I - A) = 0`, the corrections sum to zero at every iteration, so that the weighted mean still
    follows the mean gradient; and where the models come to rest, all messages agree and
    :math:`\frac1n g_i + w_i = 0` for each agent: a stationary point without the deviations that constant steps
    leave to Di-DGD. It is what exact diffusion does with doubly stochastic weights, for row-stochastic ones; it costs
    no traffic.

    The weights are chosen by a rule. Whom an agent should listen to then decides how much noise passes, how evenly
    agents are heard, and how far models drift apart before the correction has caught up.

    ``"planned"``
        A sketch of everyone's gradients travels along the edges, and all agents plan the same weights
        (:mod:`d3gd.rules.planned`). The default up to 300 agents, beyond which a plan's n x n algebra and its tables of
        n sketches at every agent grow too large. It needs a network on which every message arrives.
    ``"local"``
        Agents learn prices from their in-neighbours alone, a short sketch and a scalar per edge, for a while; then the
        weights stand still and the correction begins (:mod:`d3gd.rules.local`).
    ``"fixed"``
        The initial weights. The default above 300 agents, and where messages may not arrive: the correction alone,
        which brings most of the gain where gradients are exact.

    Args:
        step_size: :math:`\gamma`, a number or a function of the iteration.
        rule: ``"auto"``, ``"planned"``, ``"local"`` or ``"fixed"``.
        combine: ``"after"`` as above; ``"before"`` has :math:`m = x` and steps after mixing, as Di-DGD does. After is
            better in nearly every case measured: what is mixed after the step has already been averaged once.
        correct: Whether to correct. Without it, ``rule="fixed", combine="before"`` is Di-DGD with the exact
            :math:`\pi`, the control that the study compares with.

    Example:
        >>> import d3gd
        >>> graph, problem = d3gd.graphs.ring(10), d3gd.problems.quadratic(agents=10, dim=3)
        >>> plain = d3gd.run(d3gd.DiDGD(step_size=0.1, warmup=100), graph, problem, iterations=1000)
        >>> better = d3gd.run(PerronD3GD(step_size=0.1), graph, problem, iterations=1000)
        >>> bool(better.metrics["disagreement"][-1] < 1e-3 * plain.metrics["disagreement"][-1])
        True

    References:
        Yuan, Ying, Zhao and Sayed, *Exact diffusion for distributed optimization and learning*, IEEE Transactions on
        Signal Processing 67, 2019, for the doubly stochastic case.
    """

    step_size: float | Schedule
    rule: Literal["auto", "planned", "local", "fixed"] = "auto"
    combine: Literal["after", "before"] = "after"
    correct: bool = True

    needs = "the network"

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("step_size", self.step_size)
        one_of("rule", self.rule, ("auto", "planned", "local", "fixed"))
        one_of("combine", self.combine, ("after", "before"))

    @property
    def survives(self) -> frozenset[Hardship]:
        """Delay leaves the Perron vector what it is, but not the sum of corrections."""
        return frozenset[Hardship](() if self.correct or self.rule not in ("auto", "fixed") else ("delay",))

    @property
    def relies_on(self) -> str:
        """What agents know beforehand must stay so."""
        corrections = ", and on corrections that sum to zero under it" if self.correct else ""
        return f"the Perron vector of the weights as they were set up{corrections}"

    @property
    def exact(self) -> bool:
        """The correction is what removes the bias."""
        return self.correct

    def _rule(self, net: Network) -> Rule:
        after = self.combine == "after"
        if self.rule == "fixed" or (self.rule == "auto" and (net.n > PLANNED_UP_TO or not net.reliable)):
            return Fixed(self.correct)
        return Local(after) if self.rule == "local" else Planned(after, self.correct)

    def init(self, net: Network, x0: Floats) -> PerronState:
        """Start from ``x0`` with nothing to correct yet."""
        return PerronState(x=x0, w=np.zeros(x0.shape), rule=self._rule(net).init(net, x0))

    def step(self, net: Network, gradient: Gradient, s: PerronState, k: int) -> PerronState:
        """Step, mix, and let the rule watch."""
        gamma, rule, n = at(self.step_size, k), self._rule(net), net.n
        now = Now(k=k, gamma=gamma, x=s.x, g=gradient(), w=s.w)
        r = rule.begin(net, s.rule, now)
        (a, pi, beta), w = rule.use(net, r), rule.carry(s.rule, r, s.w)
        after = self.combine == "after"
        m = net.precise(corrected(net, s.x, now.g, w, pi, gamma=gamma, n=n)) if after else s.x
        now = now._replace(a=a, m=m)
        r, message = rule.message(net, r, now)
        sent = net.exchange(m=m, **message)
        mixed = net.mix(a, sent.m, double=True)
        x = net.precise(mixed if after else corrected(net, mixed, now.g, w, pi, gamma=gamma, n=n))
        w = correction(net, w, pi, m, mixed, rate=beta / gamma) if self.correct else w
        return PerronState(x=x, w=w, rule=rule.end(net, r, sent, now._replace(new=x)))

    def weights(self, net: Network, s: PerronState) -> Floats:
        """Return the weights in use."""
        return self._rule(net).use(net, s.rule).a

    def scale(self, net: Network, s: PerronState) -> Floats:
        """Return the Perron weights that agents go by."""
        return self._rule(net).use(net, s.rule).pi[:, 0]
