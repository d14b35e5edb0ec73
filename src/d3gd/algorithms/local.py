"""Local optimizers and local steps between exchanges, under any method."""

from dataclasses import dataclass, is_dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from d3gd.algorithms.around import Around, makes_directions, require_along_gradients, resized
from d3gd.algorithms.base import Algorithm, Draw, Gradient, Heading
from d3gd.algorithms.optimizers import AdamW, Momentum, Optimizer
from d3gd.arrays import Floats
from d3gd.conditions import Hardship
from d3gd.errors import SettingsError
from d3gd.network import Network
from d3gd.schedules import Schedule, at
from d3gd.state import PerAgent
from d3gd.validation import count, within


class Nothing(NamedTuple):
    """The state of what is not used."""


class Outer(NamedTuple):
    """The state of the outer momentum."""

    q: PerAgent  # (agents, d)  the average movement of mixed models, per unit of the step size


class LocalState(NamedTuple):
    """The state of :class:`Local`."""

    method: Any
    optimizer: Any
    outer: Nothing | Outer


@dataclass(frozen=True, kw_only=True)
class Local(Around[LocalState]):
    r"""A method whose agents take several steps per exchange, descend by an optimizer of their own, or both.

    An iteration takes H local steps from the models of the method, with new mini-batches each, and one exchange:

    .. math::
        x_i^{h+1} = x_i^h - \gamma_k (f_i d_i^h + o_i), \quad h = 0, \dots, H - 1, \qquad
        \bar d_i = \frac1H \sum_h d_i^h .

    :math:`d_i^h` is the gradient at :math:`x_i^h`, or the direction that the optimizer or the method
    (:meth:`d3gd.Algorithm.direction`) makes of it. The factor
    :math:`f_i` and the offset :math:`o_i` are the method's (:meth:`d3gd.Algorithm.heading`): with
    :class:`d3gd.PerronD3GD`, :math:`f_i = 1 / (n \pi_i)` and :math:`o_i` is its correction; where gradients are
    tracked, what the tracker adds to the agent's own gradient. Then the method takes its step, with step size
    :math:`H \gamma_k` and :math:`\bar d_i` in place of gradients, so that :math:`x_i^H` is what it would send:
    Perron factors scale displacements, corrections and trackers act on them, per unit of the step size.

    Without offsets, agents would drift to their own optima between exchanges. An exact method stays exact for every H:
    at its fixed point :math:`f_i g_i + o_i = 0`, so that no local step moves. Methods without an offset,
    such as Di-DGD, end the farther from a stationary point the larger H is. With momentum, exact methods stay exact,
    too: at a fixed point :math:`d_i` is a multiple of :math:`g_i`, the same for all agents. AdamW biases the limit
    wherever agents have different data.

    With ``steered=False`` local steps follow :math:`f_i d_i^h` alone, and the offset acts with the exchange. Where
    :math:`H \gamma` is large beside the inverse curvature of some agents, as in the training of networks on skewed
    data, steering by an offset of the last exchange overshoots, and this is better. Its price is a bias of the order
    of :math:`(H - 1) \gamma`.

    With an outer momentum :math:`\mu`, local steps start at :math:`x_i^k - H \gamma_k \mu q_i^k`, and
    :math:`\mu q_i^k` is added to the displacement, per unit of the step size:

    .. math:: q_i^{k+1} = \mu q_i^k + (1 - \mu) \frac{x_i^k - x_i^{k+1}}{H \gamma_k}, \qquad q_i^0 = 0 .

    That is a Nesterov step on the averaged displacement, as in DiLoCo; like quasi-global momentum it is taken before
    mixing, since heavy-ball momentum of mixed models is unstable on many directed graphs. At a fixed point q is zero.

    Args:
        method: The method, with the step size of a local step, e.g. ``d3gd.PerronD3GD(step_size=0.1)``. It evaluates
            one gradient per iteration, at its models.
        optimizer: :class:`d3gd.Momentum` or :class:`d3gd.AdamW`; by default gradient descent.
        every: H, the number of local steps per exchange.
        steered: Whether the method's offset steers local steps.
        outer: :math:`\mu`, the momentum of the averaged displacements; it multiplies the effective step size by
            :math:`1 / (1 - \mu)`.

    Example:
        >>> import d3gd
        >>> graph, problem = d3gd.graphs.ring(6), d3gd.problems.quadratic(agents=6, dim=3, conditioning=50)
        >>> plain = d3gd.PerronD3GD(step_size=0.05)
        >>> faster = d3gd.Local(method=plain, optimizer=d3gd.Momentum(momentum=0.8))
        >>> rarer = d3gd.Local(method=plain, every=4)  # a quarter of the messages for the same gradients
        >>> ends = [d3gd.run(method, graph, problem, iterations=400).x for method in (plain, faster, rarer)]
        >>> [bool(abs(x - problem.optimum).max() < 1e-3) for x in ends]
        [False, True, True]

    References:
        Liu, Lin, Koloskova and Stich, *Decentralized gradient tracking with local steps*, arXiv 2301.01313, 2023: with
        ``DIGing(combine="after")`` this is their K-GT; Douillard et al., *DiLoCo: distributed
        low-communication training of language models*, arXiv 2311.08105, 2023, for the outer step.
    """

    method: Algorithm[Any]
    optimizer: Optimizer | None = None
    every: int = 1
    steered: bool = True
    outer: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.method, Algorithm) or isinstance(self.method, Around):
            hint = "; wrap it first: d3gd.Compressed(method=d3gd.Local(...))" if isinstance(self.method, Around) else ""
            raise SettingsError(
                f"method is {type(self.method).__name__}; give a method of the library or of your own, such as "
                f"d3gd.PerronD3GD(step_size=0.1){hint}"
            )
        if not isinstance(self.optimizer, Momentum | AdamW | None):
            raise SettingsError(
                f"optimizer is {type(self.optimizer).__name__}; give d3gd.Momentum() or d3gd.AdamW(); under "
                "torchrun any: d3gd.torch.DecentralizedOptimizer(..., local=...)"
            )
        if self.optimizer is not None:
            require_along_gradients(self.method, "the optimizer")
        count("every", self.every, least=1)
        within("outer", self.outer, 0, 1)
        if self.every > 1 or self.outer > 0:
            require_steerable(self.method)

    @property
    def survives(self) -> frozenset[Hardship]:
        """What the method survives, unless the optimizer is biased in any case."""
        return self.method.survives if self._unbiased else frozenset()

    @property
    def relies_on(self) -> str:
        """The assumption of the method."""
        return self.method.relies_on if self._unbiased else "agents with equal data"

    @property
    def exact(self) -> bool:
        """Whether both are, and local steps as well."""
        return self.method.exact and self._unbiased and (self.steered or self.every == 1)

    @property
    def _unbiased(self) -> bool:
        return self.optimizer is None or self.optimizer.unbiased

    @cached_property
    def _per_exchange(self) -> Algorithm[Any]:
        return per_exchange(self.method, self.every)

    def init(self, net: Network, x0: Floats) -> LocalState:
        """Start the method and the optimizer."""
        optimizer = Nothing() if self.optimizer is None else self.optimizer.init(x0)
        outer = Outer(np.zeros_like(x0)) if self.outer else Nothing()
        return LocalState(self._per_exchange.init(net, x0), optimizer, outer)

    def step(self, net: Network, gradient: Gradient, s: LocalState, k: int) -> LocalState:
        """Take the local steps when the method asks for its gradient, and let it step along their mean."""
        steps = _Steps(self, net, gradient, s, k)
        if makes_directions(self.method):  # of every gradient, which changes its state
            d = steps()
            m = self.heading(net, s, k).follow(net, self.point(s), d, self.every * steps.gamma)
            method = self._per_exchange.arrive(net, steps.method, m, k)
        else:
            method = self._per_exchange.step(net, steps, s.method, k)
        outer = s.outer
        if isinstance(outer, Outer):
            moved = (self.point(s) - self.method.point(method)) / (self.every * steps.gamma)
            outer = Outer(net.precise(self.outer * outer.q + (1 - self.outer) * moved))
        return LocalState(method, steps.optimizer, outer)

    def heading(self, net: Network, s: LocalState, k: int) -> Heading:
        """Return that of the method, with its step size for the whole iteration."""
        return self._per_exchange.heading(net, s.method, k)


class Trail:
    """Local steps between two exchanges.

    Args:
        net: The network.
        heading: Where they go, given gradients.
        x: Where they are.
        steered: Whether its offset steers them.

    Attributes:
        x: Where they are.
        total: The sum of all directions, each times its step size.
        size: The sum of the step sizes.
    """

    def __init__(self, net: Network, heading: Heading, x: Floats, *, steered: bool) -> None:
        self._net, self._heading = net, heading if steered else heading._replace(offset=0.0)
        self.x, self.total, self.size = x, np.zeros_like(x), 0.0

    def follow(self, d: Floats, gamma: float) -> None:
        """Take a step along a direction."""
        self.total, self.size = self.total + gamma * d, self.size + gamma
        self.x = self._heading.follow(self._net, self.x, d, gamma)

    @property
    def mean(self) -> Floats:
        """The mean of all directions."""
        mean: Floats = self.total / self.size
        return mean


class _Steps:
    """The mean direction of an iteration's local steps, in place of a gradient.

    They are taken when the method asks for it: those that send first have messages in flight meanwhile.
    """

    def __init__(self, local: Local, net: Network, gradient: Gradient, s: LocalState, k: int) -> None:
        self._local, self._net, self._gradient, self._s, self._k = local, net, gradient, s, k
        self.optimizer, self.method = s.optimizer, s.method

    @cached_property
    def gamma(self) -> float:
        """The step size of a local step."""
        return at(self._local.step_size, self._k)

    def __call__(self, x: Floats | None = None, *, draw: Draw = "new") -> Floats:
        """Return it, at the models."""
        if x is not None:
            raise SettingsError(
                "this method evaluates gradients at other points, where a local optimizer has no direction; run it "
                "without d3gd.Local"
            )
        local, s, here = self._local, self._s, self._local.point(self._s)
        if local.every == 1 and not local.outer:
            return self._direction(here, self._gradient(), 0)
        heading = local.heading(self._net, s, self._k)
        ahead = local.outer * s.outer.q if isinstance(s.outer, Outer) else None
        start = here if ahead is None else self._net.precise(here - local.every * self.gamma * ahead)
        trail = Trail(self._net, heading, start, steered=local.steered)
        for h in range(local.every):
            g = self._gradient() if trail.x is here else self._gradient(trail.x, draw=h)
            trail.follow(self._direction(trail.x, g, h), self.gamma)
        return trail.mean if ahead is None else self._net.precise(trail.mean + ahead / heading.factor)

    def _direction(self, x: Floats, g: Floats, h: int) -> Floats:
        local, t = self._local, self._k * self._local.every + h
        if local.optimizer is not None:
            self.optimizer, g = local.optimizer.direction(self.optimizer, x, g, t)
        else:
            self.method, g = local.method.direction(self._net, self.method, g, t)
        return g


@dataclass(frozen=True)
class _Times:
    """A schedule times the number of local steps."""

    schedule: Schedule
    every: int

    def __call__(self, k: int) -> float:
        """Return the step size of an iteration."""
        return self.every * self.schedule(k)


def per_exchange(method: Algorithm[Any], every: int) -> Algorithm[Any]:
    """Return a method with the step size of so many local steps."""
    size: Any = getattr(method, "step_size", None)
    return method if every == 1 else resized(method, _Times(size, every) if callable(size) else every * size)


def require_steerable(method: Algorithm[Any]) -> None:
    """Raise an error for a method that cannot take local steps."""
    name = type(method).__name__
    if type(method).heading is Algorithm.heading:
        raise SettingsError(
            f"{name} says nothing of where its agents head between exchanges, so it takes no local steps; choose "
            f"another method, such as PerronD3GD, or give {name} a heading (d3gd.Algorithm.heading)"
        )
    if not hasattr(method, "step_size") or not is_dataclass(method):
        raise SettingsError(f"{name} has no step_size; make it a field of a dataclass: the size of a local step")
