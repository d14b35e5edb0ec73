"""Optimizers of one agent: directions from its gradients, for :class:`d3gd.Local`."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from d3gd.arrays import Floats
from d3gd.errors import SettingsError
from d3gd.state import PerAgent
from d3gd.validation import normalize, within


class Optimizer(Protocol):
    """An optimizer of one agent: a direction from its gradients."""

    unbiased: bool

    def init(self, x0: Floats) -> Any:
        """Return the state before the first iteration."""

    def direction(self, s: Any, x: Floats, g: Floats, k: int) -> tuple[Any, Floats]:
        """Return the next state, and the direction that takes the place of the gradients ``g`` at ``x``."""


class Moment(NamedTuple):
    """The state of :class:`Momentum`."""

    m: PerAgent  # (agents, d)


@dataclass(frozen=True, kw_only=True)
class Momentum:
    r"""SGD with momentum, as ``torch.optim.SGD`` has it.

    .. math::
        m_i^{k+1} = \mu m_i^k + g_i^k + \lambda x_i^k, \qquad d_i^k = m_i^{k+1}

    or, with Nesterov's momentum, :math:`d_i^k = g_i^k + \lambda x_i^k + \mu m_i^{k+1}`. For networks on mini-batches of
    skewed data, ``PerronD3GD(momentum=0.9)`` is better.

    Args:
        momentum: :math:`\mu`.
        nesterov: Whether to use Nesterov's momentum.
        weight_decay: :math:`\lambda`.
    """

    momentum: float = 0.9
    nesterov: bool = False
    weight_decay: float = 0.0

    unbiased = True

    def __post_init__(self) -> None:
        normalize(self)
        within("momentum", self.momentum, 0, 1)
        within("weight_decay", self.weight_decay, 0, np.inf)

    def init(self, x0: Floats) -> Moment:
        """Start from zero."""
        return Moment(np.zeros_like(x0))

    def direction(self, s: Moment, x: Floats, g: Floats, k: int) -> tuple[Moment, Floats]:
        """Accumulate."""
        g = g + self.weight_decay * x
        m = self.momentum * s.m + g
        return Moment(m), g + self.momentum * m if self.nesterov else m


class Moments(NamedTuple):
    """The state of :class:`AdamW`."""

    m: PerAgent  # (agents, d)  averages of gradients
    v: PerAgent  # (agents, d)  averages of their squares


@dataclass(frozen=True, kw_only=True)
class AdamW:
    r"""Adam with decoupled weight decay, as ``torch.optim.AdamW`` has it.

    .. math::
        m_i^{k+1} &= \beta_1 m_i^k + (1 - \beta_1) g_i^k, \qquad
        v_i^{k+1} = \beta_2 v_i^k + (1 - \beta_2) (g_i^k)^2, \\
        d_i^k &= \frac{m_i^{k+1} / (1 - \beta_1^{k+1})}{\sqrt{v_i^{k+1} / (1 - \beta_2^{k+1})} + \epsilon}
        + \lambda x_i^k

    Where agents have different data, their gradients at a common model differ, and so do the scales by which they are
    divided: directions then sum to zero elsewhere than gradients do. No correction removes that bias;
    :class:`d3gd.QGAdam` has little of it.

    Args:
        betas: :math:`\beta_1` and :math:`\beta_2`.
        eps: :math:`\epsilon`.
        weight_decay: :math:`\lambda`.
    """

    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.01

    unbiased = False

    def __post_init__(self) -> None:
        if not (isinstance(self.betas, list | tuple) and len(self.betas) == 2):
            raise SettingsError(f"betas = {self.betas!r}: it must be two numbers in [0, 1), such as (0.9, 0.999)")
        normalize(self)
        for beta in self.betas:
            within("betas", beta, 0, 1)
        within("eps", self.eps, 0, np.inf, closed="()")
        within("weight_decay", self.weight_decay, 0, np.inf)

    def init(self, x0: Floats) -> Moments:
        """Start from zero."""
        return Moments(np.zeros_like(x0), np.zeros_like(x0))

    def direction(self, s: Moments, x: Floats, g: Floats, k: int) -> tuple[Moments, Floats]:
        """Average, and divide by the scale."""
        first, second = self.betas
        m, v = first * s.m + (1 - first) * g, second * s.v + (1 - second) * g * g
        scale = np.sqrt(v / (1 - second ** (k + 1))) + self.eps
        return Moments(m, v), m / (1 - first ** (k + 1)) / scale + self.weight_decay * x
