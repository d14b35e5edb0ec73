"""Networks that misbehave: links that come and go, messages lost or late, agents that pause."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np

from d3gd.arrays import Bools
from d3gd.digest import digest
from d3gd.digraph import Digraph
from d3gd.errors import GraphError, SettingsError
from d3gd.validation import WHOLE, count, normalise, one_of, plain, shown, within

Hardship: TypeAlias = Literal["changing links", "loss", "pauses", "delay"]
Graphs: TypeAlias = Sequence[Digraph] | Callable[[int], Digraph]


_LATEST = 10_000  # iterations: as many messages of each link are kept


class Survivor(Protocol):
    """What conditions ask of a method."""

    @property
    def survives(self) -> frozenset[Hardship]:
        """What the network may do without biasing where the method ends."""

    @property
    def relies_on(self) -> str:
        """What fails where the network does anything else."""


@dataclass(frozen=True, kw_only=True)
class Conditions:
    r"""What the network does to messages and agents; handed to :func:`d3gd.run`, unknown to the algorithm.

    At every iteration some of an agent's in-edges deliver, its own self-loop always. A receiver averages over what has
    arrived: with :math:`\mathcal{A}_i^k` the in-edges that delivered, it mixes with

    .. math::
        a_{ij}^k = \frac{a_{ij}}{\sum_{l \in \mathcal{A}_i^k} a_{il}}, \qquad j \in \mathcal{A}_i^k .

    Where a method sums (with weights whose rows do not sum to one, as push-sum does), what is missing is missing.
    Every draw is keyed by (seed, edge or agent, iteration), so that it depends neither on the method nor on how many
    processes run it.

    Args:
        loss: The probability that a message gets lost on its way; it counts as sent.
        links: The probability that a link is there in an iteration. Nothing is sent along one that is not.
        graphs: Which links are there: graphs taken in turn, over and over, or a function of the iteration that returns
            one. Their links must be among those of the graph that ``run`` is given, the union of all.
        period: How many iterations each of a list of ``graphs`` lasts.
        pause: The probability that an agent at work begins to pause. It then neither steps nor sends, and keeps its
            memory as it is.
        back: The probability, at each iteration after that, that it is back.
        absences: Further pauses, planned: (agent, first, until) keeps an agent away from iteration ``first`` until it
            is back at ``until``.
        delay: How many iterations late messages may be. An agent then reads the newest message that has arrived from
            each neighbour, if none of those sent since is older than that; and the message of the same iteration from
            itself.
        delays: Whether ``"each message"`` is late by a random number of iterations from 0 to ``delay``, or
            ``"each link"`` has its own such number once and for all, or ``"all"`` messages are late by ``delay``.
        biased: Run also a method that does not survive these conditions; its result is then marked as biased.

    Example:
        >>> import d3gd
        >>> graph, problem = d3gd.graphs.ring(5), d3gd.problems.quadratic(agents=5, dim=3)
        >>> method = d3gd.DiDGD(step_size=0.05, averaged=True)
        >>> d3gd.run(method, graph, problem, iterations=100, conditions=Conditions(loss=0.2, delay=3)).status
        'completed'
    """

    loss: float = 0.0
    links: float = 1.0
    graphs: Graphs | None = None
    period: int = 1
    pause: float = 0.0
    back: float = 0.5
    absences: Sequence[tuple[int, int, int]] = ()
    delay: int = 0
    delays: Literal["each message", "each link", "all"] = "each message"
    biased: bool = False

    def __post_init__(self) -> None:
        within("loss", self.loss, 0, 1)
        within("links", self.links, 0, 1, closed="(]")
        within("pause", self.pause, 0, 1)
        within("back", self.back, 0, 1, closed="(]")
        one_of("delays", self.delays, ("each message", "each link", "all"))
        count("period", self.period, least=1)
        count("delay", self.delay, least=0, most=_LATEST)
        normalise(self)
        if self.graphs is not None and not callable(self.graphs) and not len(self.graphs):
            raise SettingsError("graphs is empty; give at least one graph, or leave it out")
        for absence in self.absences:
            numbers = [plain(number) for number in absence] if isinstance(absence, Sequence | np.ndarray) else []
            whole = [type(number) is int and 0 <= number <= WHOLE for number in numbers]
            if whole != [True] * 3 or numbers[1] >= numbers[2]:
                raise SettingsError(
                    f"absences holds {shown(absence)}; give an agent, the first iteration that it misses, and a "
                    "later one at which it is back"
                )

    @cached_property
    def hardships(self) -> tuple[Hardship, ...]:
        """What of it a method has to survive."""
        found: dict[Hardship, bool] = {
            "changing links": self.links < 1 or self.graphs is not None,
            "loss": self.loss > 0,
            "pauses": self.pause > 0 or len(self.absences) > 0,
            "delay": self.delay > 0,
        }
        return tuple(name for name, there in found.items() if there)

    def describe(self) -> dict[str, Any]:
        """Return what differs from an ideal network, ready for JSON; graphs by their fingerprint."""
        given = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "biased"}
        told = {name: value for name, value in given.items() if value != getattr(type(self), name)}
        if self.absences:
            told["absences"] = [[int(number) for number in absence] for absence in self.absences]
        if callable(self.graphs):
            told["graphs"] = getattr(self.graphs, "__qualname__", type(self.graphs).__qualname__)
        elif self.graphs is not None:
            told["graphs"] = [digest(graph.n, graph.indptr, graph.sources) for graph in self.graphs]
        return told

    def require_fit(self, graph: Digraph) -> None:
        """Raise an error unless the graphs and agents spoken of here are those of ``graph``."""
        for agent, *_ in self.absences:
            if agent >= graph.n:
                raise SettingsError(f"absences speaks of agent {agent}, but agents are 0 to {graph.n - 1}; correct it")
        if self.graphs is not None and not callable(self.graphs):
            for part in self.graphs:
                mask(graph, part)

    def require_survival(self, algorithm: Survivor) -> str:
        """Raise an error if these conditions bias the algorithm; or, if that is wanted, return what to say about it."""
        fatal = [hardship for hardship in self.hardships if hardship not in algorithm.survives]
        if not fatal:
            return ""
        text = f"{type(algorithm).__name__} does not survive {' and '.join(fatal)}: it relies on {algorithm.relies_on}"
        if self.biased:
            return f"biased: {text}"
        raise SettingsError(
            f"{text}; choose a method that does, such as DiDGD with averaged = true, or set biased = true in the "
            "conditions to see it all the same"
        )


def mask(union: Digraph, part: Digraph) -> Bools:
    """Return which of a graph's edges another one has, self-loops included; it may have no others.

    Example:
        >>> union = Digraph.from_edges(3, [(0, 1), (1, 2), (2, 0)])
        >>> mask(union, Digraph.from_edges(3, [(1, 2)])).astype(int)
        array([1, 0, 0, 1, 1, 1])
    """
    if part.n != union.n:
        raise GraphError(f"a graph in the conditions has {part.n} agents, the network has {union.n}; make them equal")
    foreign = part.keys[~np.isin(part.keys, union.keys)]
    if foreign.size:
        target, source = divmod(int(foreign[0]), union.n)
        raise GraphError(
            f"a graph in the conditions lets {union.name(target)} hear {union.name(source)}, which the network does "
            "not; run on the union of all graphs"
        )
    there: Bools = np.isin(union.keys, part.keys)
    return there
