"""Who takes part in a training: the network that follows from what its sites say of themselves."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from d3gd.digest import digest
from d3gd.digraph import Digraph
from d3gd.sites.messages import Row


class Edition:
    """The network of one site between two changes: all sites that it hears and that hear it, if through others.

    Args:
        rows: What is known of all sites.
        name: The site.

    Attributes:
        names: The sites in it, in alphabetical order; the order of agents.
        since: The iteration at which one of them last changed its links or joined.
        key: Identifies the edition: sites mix what they send each other only within one.

    Example:
        >>> rows = {"a": Row(1, ("b",)), "b": Row(1, ("a",)), "left": Row(1, ("a",))}
        >>> found = Edition(rows, "b")
        >>> found.graph, found.agent, found.names
        (Digraph(n=2, links=2), 1, ('a', 'b'))
    """

    def __init__(self, rows: Mapping[str, Row], name: str) -> None:
        self._name = name
        self.names = _around(rows, name)
        self._rows = [rows[other] for other in self.names]
        self.since = max(row.changed for row in self._rows)
        links = [f"{a} {b}" for a, row in zip(self.names, self._rows, strict=True) for b in self._within(row)]
        samples = [row.samples for row in self._rows]
        self.key: str = digest([*self.names], links, samples, self.since)[:16]

    @cached_property
    def graph(self) -> Digraph:
        """The links between these sites, with their names as labels."""
        index = {name: place for place, name in enumerate(self.names)}
        links = [(index[source], target) for target, row in enumerate(self._rows) for source in self._within(row)]
        return Digraph.from_edges(len(self.names), links, self.names)

    @property
    def agent(self) -> int:
        """The index of the site itself."""
        return self.names.index(self._name)

    @property
    def share(self) -> float:
        """The factor of its objective: n times its share of all samples, or 1 if sites count equally."""
        own = self._rows[self.agent].samples
        return len(self.names) * own / sum(row.samples for row in self._rows) if own else 1.0

    def changes(self, before: "Edition") -> str:
        """Return in words how the network differs from an earlier one; nothing if it does not."""
        joined, left = (sorted(set(a.names) - set(b.names)) for a, b in ((self, before), (before, self)))
        told = [f"{' and '.join(names)} {word}" for names, word in ((joined, "joined"), (left, "left")) if names]
        return ", ".join(told) or ("" if np.array_equal(self.graph.keys, before.graph.keys) else "links have changed")

    def describe(self) -> dict[str, Any]:
        """Return the network, ready for JSON."""
        return {"agents": self.graph.n, "links": self.graph.link_count, "labels": list(self.names)}

    def _within(self, row: Row) -> list[str]:
        return [source for source in row.hears if source in self.names]


def closed(rows: Mapping[str, Row]) -> set[str]:
    """Return the sites that a table names but does not know: empty once it is complete.

    A table that is closed under "in-neighbour of" holds the whole network if that is strongly connected.

    Example:
        >>> closed({"a": Row(1, ("b",))})
        {'b'}
    """
    return {name for row in rows.values() for name in row.hears} - rows.keys()


def whole(rows: Mapping[str, Row]) -> Digraph:
    """Return the network of all sites of a complete table, strongly connected or not."""
    names = sorted(rows)
    index = {name: place for place, name in enumerate(names)}
    links = [(index[source], index[target]) for target in names for source in rows[target].hears]
    return Digraph.from_edges(len(names), links, names)


def _around(rows: Mapping[str, Row], name: str) -> tuple[str, ...]:
    """Return the sites of the strongly connected part of the network in which a site is."""
    names = sorted(rows)
    index = {each: place for place, each in enumerate(names)}
    pairs = [(index[source], index[target]) for target in names for source in rows[target].hears if source in index]
    sources, targets = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    matrix = csr_array((np.ones(len(pairs)), (sources, targets)), shape=(len(names), len(names)))
    part = connected_components(matrix, connection="strong")[1]
    return tuple(each for each in names if part[index[each]] == part[index[name]])
