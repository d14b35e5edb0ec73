"""Settings of unreliable networks: changing links, lost or delayed messages, pausing agents."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from scipy.sparse import csr_array

from d3gd.arrays import Bools, Ints
from d3gd.digest import digest
from d3gd.digraph import Digraph, require_graph
from d3gd.errors import GraphError, SettingsError
from d3gd.validation import WHOLE, count, function, normalize, one_of, plain, shown, within

Hardship: TypeAlias = Literal["changing links", "loss", "pauses", "delay"]
Graphs: TypeAlias = Sequence[Digraph] | Callable[[int], Digraph]


_MUCH = 2.0  # growth of a step that is worth a warning
_LATEST = 10_000  # iterations: the number of messages stored per link


class Survivor(Protocol):
    """The attributes of a method that conditions use."""

    @property
    def survives(self) -> frozenset[Hardship]:
        """The conditions that do not bias the limit of the method."""

    @property
    def relies_on(self) -> str:
        """The assumption that other conditions violate."""


@dataclass(frozen=True, kw_only=True)
class Conditions:
    r"""What an unreliable network does to messages and agents, for :func:`d3gd.run`; transparent to the algorithm.

    At every iteration some of an agent's in-edges deliver a message, its self-loop always. With :math:`\mathcal{A}_i^k`
    the in-edges that delivered, agent i averages over what has arrived with the weights

    .. math::
        a_{ij}^k = \frac{a_{ij}}{\sum_{l \in \mathcal{A}_i^k} a_{il}}, \qquad j \in \mathcal{A}_i^k .

    If a method sums (with weights whose rows do not sum to one, as in push-sum), missing messages are not compensated.
    Every draw is keyed by (seed, edge or agent, iteration), so that it depends neither on the method nor on the number
    of processes.

    Args:
        loss: The probability that a message is lost; it counts as sent.
        links: The probability that a link is active in an iteration. Nothing is sent along inactive links.
        graphs: The active links: a list of graphs to use in turn, cyclically, or a function of the iteration that
            returns a graph. Their links must be among those of the graph passed to ``run``, the union of all.
        period: Number of iterations for which each of a list of ``graphs`` is used.
        pause: The probability that an active agent starts to pause. It then neither steps nor sends, and keeps its
            state.
        back: The probability, at each later iteration, that a pausing agent returns.
        absences: Further pauses at known times: (agent, first, until) pauses an agent from iteration ``first``; it
            returns at ``until``. If ``first`` is 0 it joins with the mean of the models that it hears at ``until - 1``.
        delay: The largest delay of a message, in iterations. From each neighbour an agent reads the newest message that
            has arrived, if it was sent at most ``delay`` iterations ago; from itself, that of the same iteration.
        delays: Whether ``"each message"`` has a random delay from 0 to ``delay``, ``"each link"`` has a fixed random
            delay, or ``"all"`` messages have the delay ``delay``.
        biased: Whether to run a method that does not survive these conditions; its result is then marked as biased.

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
        normalize(self)
        if callable(self.graphs):
            function("graphs", self.graphs, "the iteration")
        elif self.graphs is not None:
            _require_graphs(self.graphs)
        if not isinstance(self.absences, Sequence | np.ndarray) or isinstance(plain(self.absences), int | float):
            raise SettingsError(f"absences = {shown(self.absences)}: give a list of (agent, first, until)")
        for absence in self.absences:
            numbers = [plain(number) for number in absence] if isinstance(absence, Sequence | np.ndarray) else []
            whole = [type(number) is int and 0 <= number <= WHOLE for number in numbers]
            if whole != [True] * 3 or numbers[1] >= numbers[2]:
                raise SettingsError(
                    f"absences holds {shown(absence)}; give an agent, the first iteration of its pause, and a later "
                    "one at which it returns"
                )

    @cached_property
    def hardships(self) -> tuple[Hardship, ...]:
        """The conditions that a method must survive."""
        found: dict[Hardship, bool] = {
            "changing links": self.links < 1 or self.graphs is not None,
            "loss": self.loss > 0,
            "pauses": self.pause > 0 or len(self.absences) > 0,
            "delay": self.delay > 0,
        }
        return tuple(name for name, there in found.items() if there)

    def describe(self) -> dict[str, Any]:
        """Return the settings that differ from an ideal network, ready for JSON; graphs by their fingerprint."""
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
        """Raise an error unless the graphs and agents named here are those of ``graph``."""
        for agent, *_ in self.absences:
            if agent >= graph.n:
                raise SettingsError(f"absences names agent {agent}, but agents are 0 to {graph.n - 1}; correct it")
        if self.graphs is not None and not callable(self.graphs):
            for part in self.graphs:
                mask(graph, part)

    def require_heard(self, graph: Digraph) -> None:
        """Raise an error if some agents hear others who never hear them, by these graphs; warn if absences do this."""
        links = None
        if self.graphs is not None and not callable(self.graphs):
            links = np.logical_or.reduce([mask(graph, part) for part in self.graphs])
        for begin in sorted({0, *(time for _, *times in self.absences for time in times)}):
            away: dict[int, int] = {}
            for agent, first, until in self.absences:
                if first <= begin < until:
                    away[agent] = max(until, away.get(agent, 0))
            unheard = _unheard(graph, links, list(away)) if away or links is not None else np.empty(0, dtype=np.int64)
            if not unheard.size:
                continue
            text = f"{graph.names(unheard)} would hear others, but nobody else would hear them"
            if not away:
                raise SettingsError(
                    f"by the graphs of these conditions {text}: their steps would grow until the run diverges; add "
                    f"links out of {graph.name(int(unheard[0]))}, or choose PerronD3GD, whose steps stay finite"
                )
            end = min(away.values())
            growth = end / (2 * graph.n)  # a share is at least 2 / (k + 1)
            if growth > _MUCH:
                warnings.warn(
                    f"without {graph.names(np.array(list(away)))}, from iteration {begin} to {end}, {text}: "
                    f"their steps may grow {growth:.2g}-fold, until the run diverges; choose PerronD3GD, whose steps "
                    "stay finite",
                    stacklevel=2,
                )

    def require_survival(self, algorithm: Survivor) -> str:
        """Raise an error if these conditions bias the algorithm; with ``biased``, return it as a warning."""
        fatal = [hardship for hardship in self.hardships if hardship not in algorithm.survives]
        if not fatal:
            return ""
        text = f"{type(algorithm).__name__} does not survive {' and '.join(fatal)}: it relies on {algorithm.relies_on}"
        if self.biased:
            return f"biased: {text}"
        raise SettingsError(
            f"{text}; choose a method that does, such as PerronD3GD, or set biased = true in the "
            "conditions to run it anyway"
        )


def require_conditions(conditions: Any) -> None:
    """Raise an error unless an argument is :class:`Conditions` or None."""
    if not isinstance(conditions, Conditions | None):
        raise SettingsError(f"conditions is a {type(conditions).__name__}; pass d3gd.Conditions(loss=0.1), for example")


def _require_graphs(graphs: Any) -> None:
    if not isinstance(graphs, Sequence):
        raise SettingsError(f"graphs is {shown(graphs)}; give a list of graphs, or a function of the iteration")
    if not graphs:
        raise SettingsError("graphs is empty; give at least one graph, or leave it out")
    for graph in graphs:
        require_graph(graph, "a graph in the conditions", error=SettingsError)


def _unheard(graph: Digraph, links: Bools | None, away: list[int]) -> Ints:
    """Return the agents present that hear somebody, directly or through others, who does not hear them."""
    from scipy.sparse.csgraph import connected_components

    there = ~np.isin(graph.sources, away) & ~np.isin(graph.targets, away) & (True if links is None else links)
    sources, targets = graph.sources[there], graph.targets[there]
    flow = csr_array((np.ones(sources.size), (sources, targets)), shape=(graph.n, graph.n))
    part = connected_components(flow, connection="strong")[1]
    found: Ints = np.flatnonzero(np.isin(part, part[targets[part[sources] != part[targets]]]))
    return found


def mask(union: Digraph, part: Digraph) -> Bools:
    """Return a mask of a graph's edges, with self-loops, that are in a subgraph of it.

    Example:
        >>> union = Digraph.from_edges(3, [(0, 1), (1, 2), (2, 0)])
        >>> mask(union, Digraph.from_edges(3, [(1, 2)])).astype(int)
        array([1, 0, 0, 1, 1, 1])
    """
    require_graph(part, "a graph in the conditions", error=SettingsError)
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
