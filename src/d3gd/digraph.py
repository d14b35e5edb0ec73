"""Directed graphs as CSR arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from d3gd.arrays import CSR, Array, Floats, Ints
from d3gd.errors import D3GDError, GraphError
from d3gd.validation import AGENTS, count, patience, plain, reals, shown

_NAMES_IN_A_MESSAGE = 3


@dataclass(frozen=True, eq=False, repr=False)
class Digraph:
    """A directed graph of agents; row i of its CSR arrays holds the in-neighbours of agent i and i itself.

    Build one with :meth:`from_edges`, :meth:`from_networkx` or a generator of :mod:`d3gd.graphs`.

    Args:
        n: The number of agents, at least 1.
        indptr: Row i's entries are ``sources[indptr[i]:indptr[i + 1]]``.
        sources: The in-neighbours of every agent and itself, ascending in each row.
        labels: One distinct name per agent, or None.

    Example:
        >>> graph = Digraph.from_edges(3, [(0, 1), (1, 2), (2, 0)], labels=["A", "B", "C"])
        >>> graph
        Digraph(n=3, links=3)
        >>> graph.sources[graph.indptr[1] : graph.indptr[2]]  # B hears A and itself
        array([0, 1])
    """

    n: int
    indptr: Ints
    sources: Ints
    labels: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", as_count(self.n, "n"))
        for field in ("indptr", "sources"):
            object.__setattr__(self, field, _frozen(_integers(field, getattr(self, field))))
        if self.labels is not None:
            object.__setattr__(self, "labels", _checked_labels(self.labels, self.n))
        self._check_arrays()

    def _check_arrays(self) -> None:
        ends_fit = (
            self.indptr.shape == (self.n + 1,)
            and self.indptr[0] == 0
            and self.indptr[-1] == self.sources.size
            and bool(np.all(np.diff(self.indptr) > 0))
        )
        if not (
            ends_fit
            and self.sources.min() >= 0
            and self.sources.max() < self.n
            and np.all(np.diff(self.keys) > 0)
            and self.self_loops.size == self.n
        ):
            raise GraphError(
                "indptr and sources are not the CSR arrays of a graph on n agents: each row must hold its "
                "own agent and ascending, distinct sources; use Digraph.from_edges"
            )

    @classmethod
    def from_edges(cls, n: int, edges: Iterable[Sequence[int]] | Array, labels: Iterable[str] | None = None) -> Digraph:
        """Build a graph from (source, target) pairs: the target receives from the source.

        Args:
            n: The number of agents.
            edges: A list of pairs or an array of shape (m, 2). Repeated pairs count once; self-loops are
                implied.
            labels: One distinct name per agent, or None.

        Returns:
            The graph.

        Example:
            >>> Digraph.from_edges(4, [(0, 2), (2, 3), (3, 1), (1, 0), (0, 1)], labels="ABCD").link_count
            5
        """
        n = as_count(n, "n")
        pairs = _checked_pairs(n, edges)
        agents = np.arange(n, dtype=np.int64)
        keys = np.sort(np.concatenate([pairs[:, 1] * n + pairs[:, 0], agents * (n + 1)]))
        keys = keys[np.diff(keys, prepend=-1) > 0]  # ten times faster than np.unique, which hashes
        targets, sources = np.divmod(keys, n)
        indptr = np.concatenate([[0], np.cumsum(np.bincount(targets, minlength=n))])
        return cls(n, indptr, sources, None if labels is None else _checked_labels(labels, n))

    @classmethod
    def from_networkx(cls, graph: Any) -> Digraph:
        """Build a graph from a networkx graph; undirected edges become links in both directions.

        Args:
            graph: Any networkx graph. If its nodes are 0, ..., n - 1, agent i is node i; otherwise the nodes,
                in the order of networkx, become the labels.

        Returns:
            The graph; attributes of nodes and edges are not kept.
        """
        nodes = list(graph.nodes)
        numbered = set(nodes) == set(range(len(nodes)))
        index = {node: node if numbered else i for i, node in enumerate(nodes)}
        edges = [(index[source], index[target]) for source, target in graph.edges()]
        if not graph.is_directed():
            edges += [(target, source) for source, target in edges]
        return cls.from_edges(len(nodes), edges, None if numbered else [str(node) for node in nodes])

    def to_networkx(self) -> Any:
        """Return the ``networkx.DiGraph`` with the labels (or 0, ..., n - 1) as nodes and no self-loops."""
        import networkx as nx

        nodes = list(self.labels) if self.labels is not None else list(range(self.n))
        graph: Any = nx.DiGraph()
        graph.add_nodes_from(nodes)
        graph.add_edges_from((nodes[source], nodes[target]) for source, target in self.edges.tolist())
        return graph

    def __repr__(self) -> str:
        return f"Digraph(n={self.n}, links={self.link_count})"

    @cached_property
    def targets(self) -> Ints:
        """The target (the row) of every CSR entry."""
        return _frozen(np.repeat(np.arange(self.n, dtype=np.int64), np.diff(self.indptr)))

    @property
    def keys(self) -> Ints:
        """``target * n + source`` of every CSR entry: ascending, so that bisection finds a pair."""
        return self.targets * self.n + self.sources

    @cached_property
    def self_loops(self) -> Ints:
        """The position in ``sources`` of each agent's own entry, shape (n,)."""
        return _frozen(np.flatnonzero(self.sources == self.targets))

    @property
    def edges(self) -> Ints:
        """The links as (source, target) pairs in CSR order, without self-loops, shape (m, 2)."""
        links = self.sources != self.targets
        return np.column_stack([self.sources[links], self.targets[links]])

    @property
    def link_count(self) -> int:
        """The number of links, without self-loops."""
        return int(self.sources.size) - self.n

    @property
    def in_degrees(self) -> Ints:
        """The number of in-neighbours of each agent."""
        return np.diff(self.indptr) - 1

    @property
    def out_degrees(self) -> Ints:
        """The number of out-neighbours of each agent."""
        return np.bincount(self.sources, minlength=self.n) - 1

    @property
    def is_undirected(self) -> bool:
        """Whether every link has its reverse."""
        return bool(np.array_equal(np.sort(self.sources * self.n + self.targets), self.keys))

    def name(self, agent: int) -> str:
        """Return the name of an agent in messages: "agent 3", or "agent 3 ('C')" if it has a label."""
        return f"agent {agent}" if self.labels is None else f"agent {agent} ({self.labels[agent]!r})"

    def hops_from(self, agent: int) -> Ints:
        """Return the number of hops from ``agent`` to each agent; -1 if there is no path.

        Example:
            >>> Digraph.from_edges(4, [(0, 1), (1, 2), (3, 0)]).hops_from(0)
            array([ 0,  1,  2, -1])
        """
        number = plain(agent)
        if not isinstance(number, int) or not 0 <= number < self.n:
            raise GraphError(f"agent {shown(agent)} is not in the graph: its agents are 0 to {self.n - 1}")
        hops = self._distances(np.array([agent]))[0]
        return np.where(np.isfinite(hops), hops, -1).astype(np.int64)

    def diameter(self) -> int:
        """Return the diameter, in hops. Exact, at O(n m) cost: meant for small graphs.

        Example:
            >>> Digraph.from_edges(4, [(0, 1), (1, 2), (2, 3), (3, 0)]).diameter()
            3
        """
        self.require_strongly_connected()
        patience(
            f"the diameter of {self.n:,} agents",
            200 * self.n * self.sources.size,
            "start from some agents only, with hops_from(agent)",
        )
        block = max(1, 2**20 // self.n)
        starts = range(0, self.n, block)
        return int(max(self._distances(np.arange(s, min(s + block, self.n))).max() for s in starts))

    @cached_property
    def is_strongly_connected(self) -> bool:
        """Whether there is a path from every agent to every other."""
        from scipy.sparse.csgraph import connected_components

        parts: int = connected_components(self._flow, connection="strong")[0]
        return parts == 1

    def require_strongly_connected(self) -> None:
        """Raise a :class:`GraphError` that names unreachable agents, if there are any."""
        if self.is_strongly_connected:
            return
        unreached = np.flatnonzero(self.hops_from(0) < 0)
        if unreached.size:
            raise GraphError(
                f"{self.names(unreached)} cannot be reached from {self.name(0)}: the graph is not strongly "
                f"connected; add links into {self.name(unreached[0])}, or draw a denser graph"
            )
        reversed_graph = Digraph.from_edges(self.n, self.edges[:, ::-1], self.labels)
        silent = np.flatnonzero(reversed_graph.hops_from(0) < 0)
        raise GraphError(
            f"{self.name(0)} cannot be reached from {self.names(silent)}: the graph is not strongly "
            f"connected; add links out of {self.name(silent[0])}, or draw a denser graph"
        )

    def require_undirected(self, who: str, instead: str) -> None:
        """Raise a :class:`GraphError` that names a one-way link, if there is one."""
        if self.is_undirected:
            return
        one_way = np.flatnonzero(~np.isin(self.sources * self.n + self.targets, self.keys))[0]
        source, target = self.name(int(self.sources[one_way])), self.name(int(self.targets[one_way]))
        raise GraphError(
            f"{who} needs undirected links, but {target} hears {source} and {source} does not hear {target}; add the "
            f"links back, or choose {instead}"
        )

    def matrix(self, values: Floats) -> CSR:
        """Return the CSR matrix with ``values``, one per CSR entry, on this graph; a copy."""
        data = np.array(reals("values", values, error=GraphError))
        if data.shape != self.sources.shape:
            raise GraphError(
                f"got values of shape {data.shape} for a graph with {self.sources.size} entries (its links "
                f"and self-loops); give one value per entry of `sources`"
            )
        return csr_array((data, self.sources.copy(), self.indptr.copy()), shape=(self.n, self.n))

    def draw(self, weights: CSR | None = None, ax: Any = None) -> Any:
        """Draw the network with matplotlib.

        Args:
            weights: Weights on this graph; a link is as wide as its weight.
            ax: The matplotlib axes to draw on; by default those of a new figure.

        Returns:
            The axes; ``axes.figure.savefig("network.pdf")`` writes them.
        """
        from d3gd.drawing import draw

        return draw(self, weights, ax)

    @property
    def _flow(self) -> CSR:
        """The graph in the convention of SciPy's searches: row = source, column = target."""
        ones = np.ones(self.sources.size)
        return csr_array((ones, (self.sources, self.targets)), shape=(self.n, self.n))

    def _distances(self, agents: Ints) -> Floats:
        from scipy.sparse.csgraph import dijkstra

        hops: Floats = dijkstra(self._flow, unweighted=True, indices=agents)
        return hops

    def names(self, agents: Ints) -> str:
        """Return the names of some agents in messages: the first three, and how many more."""
        names = ", ".join(self.name(int(agent)) for agent in agents[:_NAMES_IN_A_MESSAGE])
        more = agents.size - _NAMES_IN_A_MESSAGE
        return f"{names} and {more} more" if more > 0 else names


def require_graph(graph: Any, what: str = "the graph", *, error: type[D3GDError] = GraphError) -> None:
    """Raise an error unless an argument is a :class:`Digraph`."""
    if isinstance(graph, Digraph):
        return
    if type(graph).__module__.startswith("networkx"):
        raise error(f"{what} is one of networkx; pass d3gd.Digraph.from_networkx(graph)")
    raise error(f"{what} is {shown(graph)}; pass a d3gd.Digraph, such as d3gd.graphs.ring(5)")


def as_count(value: int, name: str, at_least: int = 1, at_most: int = AGENTS) -> int:
    """Return ``value`` as an int, or raise a :class:`GraphError` unless it is one within bounds."""
    return count(name, value, least=at_least, most=at_most, error=GraphError)


def _integers(name: str, values: Any) -> Ints:
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise GraphError(f"{name} is not a list of integers; use Digraph.from_edges")
    return array.astype(np.int64)


def _frozen(values: Array) -> Ints:
    values.setflags(write=False)
    return values


def _checked_labels(labels: Any, n: int) -> tuple[str, ...]:
    if not isinstance(labels, Iterable):
        raise GraphError(f"labels = {shown(labels)}; give one name per agent, or none at all")
    names = tuple(labels)
    if len(names) != n:
        raise GraphError(f"got {len(names)} labels for {n} agents; give one label per agent, or none at all")
    seen: set[str] = set()
    for label in names:
        if not isinstance(label, str):
            raise GraphError(f"label {label!r} is not a string; give every agent a name, e.g. {str(label)!r}")
        if label in seen:
            raise GraphError(f"label {label!r} is given to two agents; labels must be distinct")
        seen.add(label)
    return names


def _checked_pairs(n: int, edges: Iterable[Sequence[int]] | Array) -> Ints:
    try:
        pairs = np.asarray(edges if isinstance(edges, np.ndarray) else list(edges))
    except (TypeError, ValueError):
        raise GraphError(
            "edges are not all pairs; give a list of (source, target) or an array of shape (m, 2)"
        ) from None
    if pairs.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise GraphError(f"edges have shape {pairs.shape}; give a list of (source, target) or an array of shape (m, 2)")
    if not np.issubdtype(pairs.dtype, np.integer):
        raise GraphError(f"edges hold {pairs.dtype} values; agents are integers from 0 to {n - 1}")
    outside = np.flatnonzero(((pairs < 0) | (pairs >= n)).any(axis=1))
    if outside.size:
        source, target = pairs[outside[0]].tolist()
        raise GraphError(f"edge ({source}, {target}) is outside the graph: with n = {n}, agents are 0 to {n - 1}")
    return pairs.astype(np.int64)
