"""The interface between the engine and a method, with defaults for everything but the step."""

from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np

from d3gd.arrays import CSR, Floats
from d3gd.conditions import Hardship
from d3gd.digraph import Digraph
from d3gd.distributed.knowledge import Needs as Needs
from d3gd.errors import SettingsError, WeightsError
from d3gd.network import Network
from d3gd.rules.updates import followed, retraced, shifted
from d3gd.schedules import at
from d3gd.state import PerAgent
from d3gd.validation import normalize

S = TypeVar("S")

_ASYMMETRY = 1e-12  # asymmetry that rounding may leave in symmetric weights

Draw: TypeAlias = int | Literal["new"] | None


class Gradient(Protocol):
    """Computes the gradients of the block's agents; each call counts as one evaluation in the metric ``gradients``."""

    def __call__(self, x: Floats | None = None, *, draw: Draw = "new") -> Floats:
        """Return every agent's gradient, (agents, d).

        Args:
            x: Points at which to evaluate, (agents, d), any number of times in a step; by default
                :meth:`Algorithm.point`, at most once in a step.
            draw: The iteration's mini-batches to use. By default a call without ``x`` uses draw 0, and each call with
                ``x`` the next one: 1, 2, ... A number repeats the mini-batches of that draw; None uses all data.
        """


class Given(NamedTuple):
    """A direction in place of a gradient."""

    d: Floats

    def __call__(self, x: Floats | None = None, *, draw: Draw = "new") -> Floats:
        """Return it, at the models."""
        if x is not None:
            raise SettingsError(
                "this method evaluates gradients at other points, and takes no local steps; drop every, or choose "
                "another one"
            )
        return self.d


class Models(NamedTuple):
    """The state of a method that consists of its models."""

    x: PerAgent  # (agents, d)


class Heading(NamedTuple):
    r"""How a step moves each agent's model, before mixing, as a function of its gradient.

    The displacement is :math:`-\gamma (f_i g_i + o_i)`: the gradient with a factor, and an offset by which corrections
    and trackers steer the agent towards the common goal. At a fixed point of an exact method it is zero.
    """

    factor: Floats | float  # f, (agents, 1)
    offset: Floats | float  # o, (agents, d)

    def follow(self, net: Network, x: Floats, d: Floats, gamma: float) -> Floats:
        """Return models after a step along a direction."""
        return net.precise(followed(net, x, d, *self._columns(net, x), gamma=gamma))

    def shift(self, net: Network, x: Floats, gamma: float) -> Floats:
        """Return models after the offset alone."""
        if isinstance(self.offset, int | float):
            return x - gamma * self.offset if self.offset else x
        return net.precise(shifted(net, x, self.offset, gamma=gamma))

    def retrace(self, net: Network, x: Floats, moved: Floats, gamma: float) -> Floats:
        """Return the mean direction of steps from ``x`` to ``moved``, given the sum of their sizes."""
        return net.precise(retraced(net, x, moved, *self._columns(net, x), gamma=gamma))

    def precise(self, net: Network) -> "Heading":
        """Return a heading whose offset has the precision of models, as they move."""
        if isinstance(self.offset, int | float) or self.offset.dtype == net.dtype:
            return self
        return self._replace(offset=net.precise(self.offset))

    def part(self, first: int, last: int) -> "Heading":
        """Return the heading of some coordinates."""
        return self if isinstance(self.offset, int | float) else self._replace(offset=self.offset[:, first:last])

    def _columns(self, net: Network, x: Floats) -> list[Floats]:
        """Return offset and factor as arrays."""
        factor, offset = self.precise(net)
        return [np.full((len(x), 1), p) if isinstance(p, int | float) else p for p in (offset, factor)]


class Algorithm(Generic[S]):
    """A method: frozen settings, an explicit state, and a step without side effects.

    The engine calls :meth:`step`, which requests the gradients at :meth:`point`. So the same object serves a simulation
    of all agents, a rank that holds some of them, and an optimizer's ``step()``.

    To write a method, derive a dataclass from this class and implement :meth:`step`; everything else has a default. The
    library's own methods, the modules of this package, are listed by :mod:`d3gd.algorithms.catalogue`.

    Example:
        >>> from dataclasses import dataclass
        >>> import d3gd
        >>> @dataclass(frozen=True, kw_only=True)
        ... class Averaging(d3gd.Algorithm):
        ...     step_size: float
        ...     needs = "undirected links"
        ...
        ...     def step(self, net, gradient, s, k):
        ...         inbox = net.exchange(x=s.x)
        ...         return s._replace(x=net.mix(net.a0, inbox.x) - self.step_size * gradient())
        >>> graph, problem = d3gd.graphs.star(5), d3gd.problems.quadratic(agents=5, dim=3)
        >>> d3gd.run(Averaging(step_size=0.1), graph, problem, iterations=100).status
        'completed'
    """

    def __post_init__(self) -> None:
        """Check a dataclass's flags and make its settings plain Python numbers; its own checks come after that."""
        normalize(self)

    @property
    def needs(self) -> Needs:
        """What the agents must know beforehand, besides their number; each answer includes what those above it know.

        ``"in-neighbours"``
            Their in-neighbours and what these send: the default. Whatever else such a method reads of the network, its
            agents discover by ``net.survey()``, at a cost.
        ``"out-degrees"``
            Also the number of their out-neighbours, among which they split what they send: ``net.out_degrees``.
        ``"undirected links"``
            Also that links are bidirectional, with symmetric weights.
        ``"the network"``
            The graph and the initial weights, so that ``net.survey()`` costs nothing.
        ``"all agents"``
            The values of all agents, in simulations only: ``net.everyone``.
        """
        return "in-neighbours"

    @property
    def survives(self) -> frozenset[Hardship]:
        r"""The network conditions that do not bias the limit of the method; none by default.

        Under these, the models still approach a stationary point of the mean objective as :math:`\gamma \to 0`.
        """
        return frozenset()

    @property
    def relies_on(self) -> str:
        """The assumption that other conditions violate; completes the sentence "it relies on ..."."""
        return "every message arriving at once"

    @property
    def exact(self) -> bool:
        """Whether it converges to a stationary point with a constant step and exact gradients, not only near one."""
        return False

    @property
    def coordinatewise(self) -> bool:
        """Whether a step treats each coordinate of the models alike and by itself, where every message arrives.

        It then calls ``gradient()`` once, and what the state holds besides rows as long as a model does not depend on
        models or gradients. A large model can be stepped in slices, and one whose parameters are on an accelerator
        there: what NumPy computes besides arithmetic is then computed on copies.
        """
        return False

    def init(self, net: Network, x0: Floats) -> S:
        """Return the state before the first iteration: by default the models, as ``s.x``."""
        models: Any = Models(x0)
        return models  # type: ignore[no-any-return]

    def point(self, s: S) -> Floats:
        """Return the models, (agents, d), at which gradients are evaluated: by default ``s.x``."""
        return s.x  # type: ignore[attr-defined,no-any-return]

    def step(self, net: Network, gradient: Gradient, s: S, k: int) -> S:
        """Return the state after iteration ``k``.

        Args:
            net: The network.
            gradient: Computes the agents' gradients, (agents, d): ``gradient()`` at :meth:`point`, at most once;
                ``gradient(x)`` at other points, any number of times. Earlier messages are in flight meanwhile.
            s: The state before iteration ``k``.
            k: The iteration.
        """
        raise NotImplementedError

    def heading(self, net: Network, s: S, k: int) -> Heading:
        """Return how the step of iteration ``k`` moves models before mixing, known before its gradients are.

        Methods that have it can take several local steps per exchange (:class:`d3gd.Local`); it has no default.
        """
        raise NotImplementedError

    def direction(self, net: Network, s: S, g: Floats, t: int) -> tuple[S, Floats]:
        """Return the state, and the direction in which a gradient leads: by default the gradient itself.

        Methods whose directions depend on earlier gradients, as Adam's do, have it, and :meth:`arrive`: between
        exchanges they make a direction of each local gradient.

        Args:
            net: The network.
            s: The state.
            g: The agents' gradients, (agents, d).
            t: The number of gradients before these.
        """
        return s, g

    def arrive(self, net: Network, s: S, m: Floats, k: int) -> S:
        """Return the state after iteration ``k`` of agents that local steps along :meth:`heading` have led to ``m``.

        It is what :meth:`step` does once models have moved: by default the step in the direction that leads there.
        """
        d = self.heading(net, s, k).retrace(net, self.point(s), m, at(self.step_size, k))  # type: ignore[attr-defined]
        return self.step(net, Given(d), s, k)

    def weights(self, net: Network, s: S) -> Floats:
        """Return the weights in use, over the block's edges: by default the initial weights."""
        return net.a0

    def scale(self, net: Network, s: S) -> Floats | None:
        r"""Return each agent's estimate of its Perron weight :math:`\pi_i`, (agents,), or None if it has none."""
        return None


_OPTIONAL = {"heading", "direction", "arrive", "coordinatewise"}  # what only local steps and the optimizer use
NAMES = frozenset(name for name in vars(Algorithm) if not name.startswith("_")) - _OPTIONAL  # what the engine uses


def is_coordinatewise(algorithm: Any) -> bool:
    """Whether a method says that it is; one that is not derived from :class:`Algorithm` need not."""
    return bool(getattr(algorithm, "coordinatewise", False))


def require_method(algorithm: Any) -> None:
    """Raise an error unless an object has what every run needs of a method; a class is none."""
    if isinstance(algorithm, type):
        raise SettingsError(f"{algorithm.__name__} is a class; create an instance: {algorithm.__name__}(step_size=0.1)")
    missing = sorted(NAMES - set(dir(algorithm)))
    if missing:
        name = type(algorithm).__name__
        raise SettingsError(f"{name} has no {missing[0]!r}; derive it from d3gd.Algorithm, which has a default for it")


def require_admissible(algorithm: Algorithm[Any], graph: Digraph, weights: CSR) -> None:
    """Raise an error unless the algorithm can run on this graph and these weights.

    Args:
        algorithm: The method.
        graph: The network.
        weights: The initial weights.
    """
    require_method(algorithm)
    if algorithm.needs != "undirected links":
        return
    method: Any = algorithm
    while isinstance(inner := getattr(method, "method", None), Algorithm):  # what is around it needs nothing itself
        method = inner
    name = type(method).__name__
    graph.require_undirected(name, "a method for directed graphs, such as PerronD3GD")
    away = float(abs(weights - weights.T).max())
    if away > _ASYMMETRY:
        raise WeightsError(
            f"{name} needs symmetric weights, but two agents' weights on each other differ by {away:.1e}; use "
            "d3gd.weights.metropolis(graph), or a method for directed graphs, such as PerronD3GD"
        )
