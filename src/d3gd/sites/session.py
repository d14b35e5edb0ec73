"""The start of a site: connect, discover the network, and become one of its agents."""

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from d3gd import weights as weighting
from d3gd.algorithms.base import require_admissible
from d3gd.arrays import CSR
from d3gd.conditions.settings import Hardship
from d3gd.digraph import Digraph
from d3gd.errors import SettingsError, TransportError
from d3gd.sites.clipping import Clipping
from d3gd.sites.curve import CurveWire
from d3gd.sites.hub import Hub
from d3gd.sites.messages import Row
from d3gd.sites.network import LossySiteNetwork, SiteNetwork
from d3gd.sites.peer import closed
from d3gd.sites.rounds import Rounds, Waiting
from d3gd.sites.settings import SiteFile

log = logging.getLogger("d3gd.sites")

_LISTENERS = 5.0  # seconds for listeners to dial as well
_REMIND = 60.0  # seconds between lines that say for whom a site waits
_HARDSHIPS: tuple[Hardship, ...] = ("loss", "pauses", "changing links")


@dataclass(frozen=True)
class Session:
    """A site that has met the others.

    Attributes:
        file: Its file.
        hub: Its conversation with the others.
        graph: The network, as discovered, with the sites' names in alphabetical order as labels.
        weights: The initial weights.
        agent: The index of this site.
        rounds: Its rounds with the neighbours.
        share: The factor of this site's objective: n times its share of all samples, or 1 if sites count equally.
    """

    file: SiteFile
    hub: Hub
    graph: Digraph
    weights: CSR
    agent: int
    rounds: Rounds
    share: float

    def network(self) -> SiteNetwork | LossySiteNetwork:
        """Return the site's agent and its links."""
        kind = SiteNetwork if self.file.waiting.exact else LossySiteNetwork
        how: dict[str, Any] = {"seed": self.file.settings.seed, "dtype": self.file.settings.dtype}
        net = kind(self.graph, self.weights, self.agent, self.rounds, **how)
        net.share = self.share
        net.halo.clipping = Clipping() if self.file.settings.trust == "clip" else None
        return net


@contextmanager
def opened(file: SiteFile, settings: Mapping[str, str]) -> Iterator[Hub]:
    """Start to talk to the neighbours; end it with the block."""
    wire = CurveWire(file.keys(), file.settings.bind, largest=file.largest)
    own = file.settings
    how: dict[str, Any] = {"newest": own.pace == "free", "samples": own.samples}
    hub = Hub(own.name, own.session, settings, wire, file.neighbours, **how)
    try:
        yield hub
    finally:
        hub.close()


@contextmanager
def joined(file: SiteFile, algorithm: Any = None) -> Iterator[Session]:
    """Connect to the neighbours and wait until all sites are known.

    Args:
        file: The site's file.
        algorithm: The method, if it does not come from the file.
    """
    if algorithm is None and "algorithm" in file.parts:
        algorithm = file.algorithm()
    if algorithm is not None:
        require_survivor(algorithm, file.waiting)
    with opened(file, file.agreed(algorithm)) as hub:
        _discover(hub, file.settings.connect)
        graph, agent = discovered(hub.rows, hub.name)
        matrix: CSR = getattr(weighting, file.settings.weights)(graph)
        if algorithm is not None:
            require_admissible(algorithm, graph, matrix)
        log.info("%s is one of %d sites with %d links: %s", hub.name, graph.n, graph.link_count, ", ".join(hub.rows))
        samples = [row.samples for row in hub.rows.values()]
        share = graph.n * file.settings.samples / sum(samples) if file.settings.samples else 1.0
        yield Session(file, hub, graph, matrix, agent, Rounds(hub, file.waiting), share)


def require_survivor(algorithm: Any, waiting: Waiting) -> None:
    """Raise an error if the method needs what a site does not have, or messages that may be missing."""
    if algorithm.needs == "all agents":
        raise SettingsError(
            f"{type(algorithm).__name__} needs the values of all agents, which no site has; choose a decentralized "
            "method, such as PerronD3GD"
        )
    hardships = () if waiting.exact else (*_HARDSHIPS, *(("delay",) if waiting.pace == "free" else ()))
    fatal = [hardship for hardship in hardships if hardship not in algorithm.survives]
    if fatal:
        raise SettingsError(
            f"{type(algorithm).__name__} does not survive {' and '.join(fatal)}: it relies on {algorithm.relies_on}; "
            "choose a method that does, such as PerronD3GD, or wait for every message: patience = inf"
        )


def discovered(rows: Mapping[str, Row], name: str) -> tuple[Digraph, int]:
    """Return the network of a complete table, and the index of a site in it.

    Example:
        >>> discovered({"b": Row(1, ("a",)), "a": Row(1, ("b",))}, "b")
        (Digraph(n=2, links=2), 1)
    """
    names = sorted(rows)
    index = {name: place for place, name in enumerate(names)}
    links = [(index[source], index[target]) for target in names for source in rows[target].hears]
    graph = Digraph.from_edges(len(names), links, names)
    graph.require_strongly_connected()
    return graph, index[name]


def _discover(hub: Hub, seconds: float) -> None:
    """Wait until the table of the network is complete and all sources have been met."""
    deadline = time.monotonic() + seconds

    def complete() -> bool:
        return not closed(hub.rows) and all(peer.accepted and peer.greeted for peer in hub.sources())

    def met() -> bool:
        return all(peer.accepted and peer.greeted for peer in hub.peers())

    while not hub.wait(complete, min(_REMIND, deadline - time.monotonic())):
        if time.monotonic() >= deadline:
            raise TransportError(f"{absent(hub)} within {seconds:g} s (connect); start it, or see: d3gd site check")
        log.info("waiting: %s", absent(hub))
    hub.wait(met, _LISTENERS)  # who tell a site that was away where the others are


def absent(hub: Hub) -> str:
    """Return in words which sites are missing, and why as far as is known."""
    silent = [peer for peer in hub.sources() if not (peer.accepted and peer.greeted)]
    if silent:
        told = [f"{peer.name} ({peer.refusal or 'no answer'})" for peer in silent]
        return f"not connected: {', '.join(told)}"
    return f"nothing heard of {', '.join(sorted(closed(hub.rows)))}, which others hear"
