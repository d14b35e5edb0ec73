"""Momentum or AdamW at every agent, under any method."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from d3gd.algorithms.base import Algorithm, Draw, Gradient, Needs
from d3gd.arrays import Floats
from d3gd.conditions import Hardship
from d3gd.errors import SettingsError
from d3gd.network import Network
from d3gd.state import PerAgent
from d3gd.validation import is_number, normalize, within


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

    or, with Nesterov's momentum, :math:`d_i^k = g_i^k + \lambda x_i^k + \mu m_i^{k+1}`.

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
        _require_decay(self.weight_decay)

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
    divided: directions then sum to zero elsewhere than gradients do. No correction removes that bias.

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
        _require_decay(self.weight_decay)

    def init(self, x0: Floats) -> Moments:
        """Start from zero."""
        return Moments(np.zeros_like(x0), np.zeros_like(x0))

    def direction(self, s: Moments, x: Floats, g: Floats, k: int) -> tuple[Moments, Floats]:
        """Average, and divide by the scale."""
        first, second = self.betas
        m, v = first * s.m + (1 - first) * g, second * s.v + (1 - second) * g * g
        scale = np.sqrt(v / (1 - second ** (k + 1))) + self.eps
        return Moments(m, v), m / (1 - first ** (k + 1)) / scale + self.weight_decay * x


class LocalState(NamedTuple):
    """The state of :class:`Local`."""

    method: Any
    optimizer: Any


@dataclass(frozen=True, kw_only=True)
class Local(Algorithm[LocalState]):
    r"""A method whose agents descend by an optimizer of their own.

    .. math:: d_i^k = \text{optimizer}_i (g_i^0, \dots, g_i^k)

    takes the place of the gradient :math:`g_i^k` in every formula of the method: :math:`\gamma_k d_i^k` is the
    displacement that the optimizer proposes with learning rate :math:`\gamma_k`. Perron factors scale it, corrections
    and trackers act on it, per unit of :math:`\gamma`.

    With momentum, an exact method stays exact: at a fixed point :math:`d_i` is a multiple of :math:`g_i`, the same for
    all agents. AdamW biases the limit wherever agents have different data.

    Args:
        method: The method, with the learning rate as its step size, e.g. ``d3gd.PerronD3GD(step_size=0.1)``. It
            evaluates one gradient per iteration, at its models.
        optimizer: :class:`Momentum` or :class:`AdamW`.

    Example:
        >>> import d3gd
        >>> graph, problem = d3gd.graphs.ring(6), d3gd.problems.quadratic(agents=6, dim=3, conditioning=50)
        >>> plain = d3gd.PerronD3GD(step_size=0.05)
        >>> faster = d3gd.Local(method=plain, optimizer=d3gd.Momentum(momentum=0.8))
        >>> ends = [d3gd.run(method, graph, problem, iterations=300).x for method in (plain, faster)]
        >>> [bool(abs(x - problem.optimum).max() < 1e-6) for x in ends]
        [False, True]
    """

    method: Algorithm[Any]
    optimizer: Optimizer

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.method, Algorithm) or isinstance(self.method, Local):
            raise SettingsError(
                f"method is {type(self.method).__name__}; give a method of the library or of your own, such as "
                "d3gd.PerronD3GD(step_size=0.1)"
            )
        if not isinstance(self.optimizer, Momentum | AdamW):
            raise SettingsError(
                f"optimizer is {type(self.optimizer).__name__}; give d3gd.Momentum() or d3gd.AdamW(); under "
                "torchrun any: d3gd.torch.DecentralizedOptimizer(..., local=...)"
            )

    @property
    def needs(self) -> Needs:
        """Those of the method."""
        return self.method.needs

    @property
    def survives(self) -> frozenset[Hardship]:
        """What the method survives, unless the optimizer is biased in any case."""
        return self.method.survives if self.optimizer.unbiased else frozenset()

    @property
    def relies_on(self) -> str:
        """The assumption of the method."""
        return self.method.relies_on if self.optimizer.unbiased else "agents with equal data"

    @property
    def exact(self) -> bool:
        """Whether both are."""
        return self.method.exact and self.optimizer.unbiased

    def init(self, net: Network, x0: Floats) -> LocalState:
        """Start both."""
        return LocalState(self.method.init(net, x0), self.optimizer.init(x0))

    def point(self, s: LocalState) -> Floats:
        """Return the models of the method."""
        return self.method.point(s.method)

    def step(self, net: Network, gradient: Gradient, s: LocalState, k: int) -> LocalState:
        """Replace the gradient by the direction."""
        optimizer, d = self.optimizer.direction(s.optimizer, self.point(s), gradient(), k)
        return LocalState(self.method.step(net, _Given(d), s.method, k), optimizer)

    def weights(self, net: Network, s: LocalState) -> Floats:
        """Return those of the method."""
        return self.method.weights(net, s.method)

    def scale(self, net: Network, s: LocalState) -> Floats | None:
        """Return that of the method."""
        return self.method.scale(net, s.method)


@dataclass(frozen=True)
class _Given:
    """A gradient that has been computed."""

    d: Floats

    def __call__(self, x: Floats | None = None, *, draw: Draw = "new") -> Floats:
        """Return it, at the models."""
        if x is not None:
            raise SettingsError(
                "this method evaluates gradients at other points, where a local optimizer has no direction; run it "
                "without d3gd.Local"
            )
        return self.d


def _require_decay(value: float) -> None:
    if not is_number(value) or not 0 <= value < np.inf:
        raise SettingsError(f"weight_decay = {value!r}: it must be a number of at least 0")
