"""Methods as a user would write them, which ask for more than one gradient in an iteration."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from d3gd.state import PerAgent


class Models(NamedTuple):
    x: PerAgent


class Own:
    """What all of them leave as it is."""

    needs: ClassVar[str] = "in-neighbours"
    survives: ClassVar[frozenset] = frozenset()
    relies_on: ClassVar[str] = "every message"
    exact: ClassVar[bool] = False

    def init(self, net, x0):
        return Models(x0)

    def point(self, s):
        return s.x

    def weights(self, net, s):
        return net.a0

    def scale(self, net, s):
        return None


@dataclass(frozen=True)
class LocalSteps(Own):
    """Some steps of SGD by oneself, then one exchange."""

    step_size: float
    steps: int

    def step(self, net, gradient, s, k):
        x = s.x - self.step_size * gradient()
        for _ in range(self.steps - 1):
            x = x - self.step_size * gradient(x)
        return Models(net.mix(net.a0, net.exchange(x=x).x))


@dataclass(frozen=True)
class Extragradient(Own):
    """A step with the gradient where a first step would lead; both on one mini-batch."""

    step_size: float

    def step(self, net, gradient, s, k):
        sent = net.exchange(x=s.x)
        ahead = s.x - self.step_size * gradient()
        return Models(net.mix(net.a0, sent.x) - self.step_size * gradient(ahead, draw=0))


class Anchored(NamedTuple):
    x: PerAgent
    anchor: PerAgent
    whole: PerAgent  # (agents, d)  the gradients at the anchor, on all data


@dataclass(frozen=True)
class VarianceReduced(Own):
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
