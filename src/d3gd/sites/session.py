"""The start of a site: connect, discover the network, and become one of its agents."""

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from d3gd import weights as weighting
from d3gd.algorithms.base import require_admissible
from d3gd.conditions.settings import Hardship
from d3gd.errors import SettingsError, TransportError
from d3gd.sites.clipping import Clipping
from d3gd.sites.curve import CurveWire
from d3gd.sites.hub import Hub
from d3gd.sites.membership import Edition, closed, whole
from d3gd.sites.network import LossySiteNetwork, SiteNetwork
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
        rounds: Its rounds with the neighbours, in the network as discovered so far.
    """

    file: SiteFile
    hub: Hub
    rounds: Rounds

    def network(self) -> SiteNetwork | LossySiteNetwork:
        """Return the site's agent and its links."""
        kind = SiteNetwork if self.file.waiting.exact else LossySiteNetwork
        own = self.file.settings
        clipping = Clipping() if own.trust == "clip" else None
        return kind(self.rounds, weights=own.weights, seed=own.seed, dtype=own.dtype, clipping=clipping)


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
        rounds = Rounds(hub, file.waiting)
        graph, names = rounds.edition.graph, ", ".join(rounds.edition.names)
        if algorithm is not None:
            require_admissible(algorithm, graph, getattr(weighting, file.settings.weights)(graph))
        log.info("%s is one of %d sites with %d links: %s", hub.name, graph.n, graph.link_count, names)
        yield Session(file, hub, rounds)


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


def _discover(hub: Hub, seconds: float) -> None:
    """Wait until the table of the network is complete and all sources have been met."""
    deadline = time.monotonic() + seconds

    running: list[float] = []  # when others were first seen to be training

    def complete() -> bool:
        there = [peer for peer in hub.sources() if peer.accepted and peer.greeted]
        if closed(hub.rows):
            return False
        if not any(peer.at for peer in hub.peers() if peer.accepted):
            return len(there) == len(hub.sources())
        # Sites that train go on without those that are away, and so does one that comes to them.
        running.append(time.monotonic())
        found = len(there) == len(hub.sources()) or (there and running[-1] - running[0] > _LISTENERS)
        return bool(found) and len(Edition(hub.rows, hub.name).names) > 1

    def met() -> bool:
        return all(peer.accepted and peer.greeted for peer in hub.peers())

    while not hub.wait(complete, min(_REMIND, deadline - time.monotonic())):
        if time.monotonic() >= deadline:
            raise TransportError(f"{absent(hub)} within {seconds:g} s (connect); start it, or see: d3gd site check")
        log.info("waiting: %s", absent(hub))
    if not any(peer.at for peer in hub.peers()):
        whole(hub.rows).require_strongly_connected()
    hub.wait(met, _LISTENERS)  # who tell a site that was away where the others are


def absent(hub: Hub) -> str:
    """Return in words which sites are missing, and why as far as is known."""
    silent = [peer for peer in hub.sources() if not (peer.accepted and peer.greeted)]
    if silent:
        told = [f"{peer.name} ({peer.refusal or 'no answer'})" for peer in silent]
        return f"not connected: {', '.join(told)}"
    if unknown := closed(hub.rows):
        return f"nothing heard of {', '.join(sorted(unknown))}, which others hear"
    return "no site that trains hears this one: each needs it in its file, and SIGHUP"
