"""What the engine asks of an algorithm."""

from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from d3gd.arrays import CSR, Floats
from d3gd.conditions import Hardship
from d3gd.digraph import Digraph
from d3gd.errors import SettingsError, WeightsError
from d3gd.network import Network

S = TypeVar("S")

_ASYMMETRY = 1e-12  # that rounding may leave in symmetric weights

# What an agent must know, the least first. Everyone knows whom it hears, and how many agents there are.
Needs: TypeAlias = Literal["in-neighbours", "the network", "out-degrees", "undirected links", "all agents"]


Draw: TypeAlias = int | Literal["new"] | None


class Gradient(Protocol):
    """Computes the gradients of the block's agents; each call counts as one evaluation in the metric ``gradients``."""

    def __call__(self, x: Floats | None = None, *, draw: Draw = "new") -> Floats:
        """Return every agent's gradient, (agents, d).

        Args:
            x: Where, (agents, d), as often as wanted; by default at :meth:`Algorithm.point`, and that once in a step.
            draw: On which of the iteration's mini-batches: by default, those of a call without ``x`` are draw 0, and
                every call with ``x`` has the next one, 1, 2, ... A number asks for the mini-batches of that draw again,
                None for all data.
        """


class Algorithm(Protocol[S]):
    """A method: frozen settings, an explicit state, and a step that is pure seen from outside.

    The engine calls :meth:`step`, which asks for the gradients at :meth:`point`. So the same object
    serves a simulation of all agents, a rank that holds a few of them, and an optimizer's ``step()``.

    To add a method, write one class with these names in one file, and hand an instance to :func:`d3gd.run`. In a file
    of this folder, :mod:`d3gd.algorithms.catalogue` finds it.
    """

    @property
    def needs(self) -> Needs:
        """What its agents must know.

        ``"in-neighbours"``
            Whom they hear, and what arrives from there.
        ``"the network"``
            Also the graph and the initial weights, from the set-up.
        ``"out-degrees"``
            Also how many hear them: they split what they send.
        ``"undirected links"``
            Links that go both ways, with symmetric weights.
        ``"all agents"``
            Everyone's values: a simulation only. To all others, ``net.everyone`` is refused.
        """

    @property
    def survives(self) -> frozenset[Hardship]:
        r"""What the network may do without biasing where the method ends.

        That is: as :math:`\gamma \to 0`, the models still approach a stationary point of the mean of all objectives.
        """

    @property
    def relies_on(self) -> str:
        """What fails, and biases the method, where the network does anything else; to be read after "it relies on"."""

    @property
    def exact(self) -> bool:
        """Whether it ends at a stationary point with a constant step and exact gradients, or only near one."""

    def init(self, net: Network, x0: Floats) -> S:
        """Return the state before the first iteration."""

    def point(self, s: S) -> Floats:
        """Return each agent's model, (agents, d): where its gradient is wanted."""

    def step(self, net: Network, gradient: Gradient, s: S, k: int) -> S:
        """Return the state after iteration ``k``.

        Args:
            net: The network.
            gradient: Computes the agents' gradients, (agents, d): ``gradient()`` at :meth:`point`, once;
                ``gradient(x)`` at other points, as often as wanted. What was sent before is on its way meanwhile.
            s: The state before it.
            k: The iteration.
        """

    def weights(self, net: Network, s: S) -> Floats:
        """Return the weights in use, over the block's edges."""

    def scale(self, net: Network, s: S) -> Floats | None:
        r"""Return what each agent takes for its Perron weight :math:`\pi_i`, or None if it keeps no such estimate."""


NAMES = frozenset(name for name in vars(Algorithm) if not name.startswith("_"))  # what the engine asks for


def require_admissible(algorithm: Algorithm[Any], graph: Digraph, weights: CSR) -> None:
    """Raise an error unless the algorithm can run on this graph and these weights.

    Args:
        algorithm: The method.
        graph: Who hears whom.
        weights: The initial weights.
    """
    if isinstance(algorithm, type):
        raise SettingsError(
            f"{algorithm.__name__} is a class; make a method of it: {algorithm.__name__}(step_size=0.1)"
        )
    name = type(algorithm).__name__
    missing = sorted(NAMES - set(dir(algorithm)))
    if missing:
        raise SettingsError(
            f"{name} has no {missing[0]!r}; a method needs all names of d3gd.algorithms.base.Algorithm: add it"
        )
    if algorithm.needs != "undirected links":
        return
    graph.require_undirected(name, "a method for directed graphs, such as PerronD3GD")
    away = float(abs(weights - weights.T).max())
    if away > _ASYMMETRY:
        raise WeightsError(
            f"{name} needs symmetric weights, but two agents' weights on each other differ by {away:.1e}; use "
            "d3gd.weights.metropolis(graph), or a method for directed graphs, such as PerronD3GD"
        )
