"""Users' methods with more than one gradient in an iteration."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import d3gd
from d3gd.state import PerAgent


@dataclass(frozen=True)
class LocalSteps(d3gd.Algorithm):
    """Some steps of SGD by oneself, then one exchange."""

    step_size: float
    steps: int

    def step(self, net, gradient, s, k):
        x = s.x - self.step_size * gradient()
        for _ in range(self.steps - 1):
            x = x - self.step_size * gradient(x)
        return s._replace(x=net.mix(net.a0, net.exchange(x=x).x))


@dataclass(frozen=True)
class Extragradient(d3gd.Algorithm):
    """A step with the gradient where a first step would lead; both on one mini-batch."""

    step_size: float

    def step(self, net, gradient, s, k):
        sent = net.exchange(x=s.x)
        ahead = s.x - self.step_size * gradient()
        return s._replace(x=net.mix(net.a0, sent.x) - self.step_size * gradient(ahead, draw=0))


class Anchored(NamedTuple):
    x: PerAgent
    anchor: PerAgent
    whole: PerAgent  # (agents, d)  the gradients at the anchor, on all data


@dataclass(frozen=True)
class VarianceReduced(d3gd.Algorithm):
    """SVRG by each agent: the noise of a mini-batch is that of the way from an anchor."""

    step_size: float
    period: int

    def init(self, net, x0):
        return Anchored(x0, x0, np.zeros_like(x0))

    def step(self, net, gradient, s, k):
        sent = net.exchange(x=s.x)
        if k % self.period == 0:
            s = s._replace(anchor=s.x, whole=gradient(s.x, draw=None))
        g = gradient() - gradient(s.anchor, draw=0) + s.whole
        return s._replace(x=net.mix(net.a0, sent.x) - self.step_size * g)


METHODS = {
    "local steps": LocalSteps(0.05, 4),
    "extragradient": Extragradient(0.1),
    "variance reduced": VarianceReduced(0.1, 5),
}
