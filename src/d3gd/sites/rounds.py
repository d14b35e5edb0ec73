"""Rounds between sites: send this iteration's arrays, and wait for those of the neighbours, but not without end."""

import logging
import math
import statistics
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from d3gd.arrays import Array
from d3gd.errors import TransportError
from d3gd.sites import messages
from d3gd.sites.hub import BEAT, Hub
from d3gd.sites.membership import Edition
from d3gd.sites.peer import Peer, Place

log = logging.getLogger("d3gd.sites")

_BEHIND = 2  # iterations that a site may be behind and is still waited for

_USUAL = 50  # rounds whose duration is remembered

Pace: TypeAlias = Literal["rounds", "free"]


@dataclass(frozen=True)
class Waiting:
    """How long a site waits.

    Attributes:
        patience: Seconds for the messages of a round.
        forget: Seconds without a sign of life after which a site is given up.
        pace: Whether a site waits for its neighbours at all, or takes the newest that it has.
    """

    patience: float = math.inf
    forget: float = 3600.0
    pace: Pace = "rounds"

    @property
    def exact(self) -> bool:
        """Whether every message is waited for."""
        return self.pace == "rounds" and math.isinf(self.patience)


class Rounds:
    """The rounds of one site.

    Args:
        hub: Its conversation with others.
        waiting: How long it waits.

    Attributes:
        waited: Seconds spent in waiting so far.
        missed: Messages that did not arrive in time so far.
        edition: The network, as known when the iteration began.
        since: The iteration from which on it is the network.
        joins: Whether others were training before they knew of this site.
        new: Whether the site came to others that were training already, and has no model yet.
    """

    def __init__(self, hub: Hub, waiting: Waiting) -> None:
        self.hub, self.waiting = hub, waiting
        self.waited, self.missed = 0.0, 0
        self._place: Place = (0, 0)
        self._started = False
        self._gone: set[str] = set()
        self._began = time.monotonic()
        self.joins = not hub.remembered and any(peer.at > 0 for peer in hub.peers())
        self._rows = hub.rows
        self.edition, self.new = Edition(self._rows, hub.name), False
        self.since = self.edition.since
        hub.enter(self.edition.key)
        self._usual = deque([waiting.patience], maxlen=_USUAL)  # seconds that complete rounds took

    def begin(self, k: int) -> int:
        """Begin an iteration, and return its number: that of the others if this site has fallen behind."""
        if self._started and k == self._place[0]:
            return k  # it has begun
        self._follow(k)
        if not self.waiting.exact and (ahead := self._ahead(k)) > k:
            log.info("iteration %d: others are at %d; going on there", k, ahead)
            self.new = self.new or not (self._started or k)
            k = ahead
            if self.new and all(peer.ended for peer in self.hub.peers() if peer.accepted):
                raise TransportError(f"the others have ended, at iteration {k}: there is no training left to join")
            if self.new and self.joins:
                self.hub.hear(None, k)
        self._started, self._place, self._began = True, (k, 0), time.monotonic()
        self.hub.begin(k, keep=self.waiting.exact)
        return k

    def _follow(self, k: int) -> None:
        """Find out who takes part by now; wait if this site is alone."""
        self._forget(k)
        if self.hub.rows is self._rows:
            return
        found, before = self._found(), self.edition
        if found.key != before.key:
            if self.waiting.exact:
                raise TransportError(
                    f"the network has changed ({found.changes(before)}), and with infinite patience all sites would "
                    "have to change at once; start a new session, or set a finite patience"
                )
            if changes := found.changes(before):
                told = f"{len(found.names)} sites with {found.graph.link_count} links"
                log.info("iteration %d: %s; now %s: %s", k, changes, told, ", ".join(found.names))
            # Without rounds, iterations of different sites cannot be compared.
            self.edition, self.since = found, k if self.waiting.pace == "free" else found.since
            self.hub.enter(found.key)

    def _found(self) -> Edition:
        """Return the network, once this site is not alone in it: that nobody hears it shows in steps of any size."""
        began, told = time.monotonic(), False

        def connected() -> bool:
            self._rows = self.hub.rows
            return len(Edition(self._rows, self.hub.name).names) > 1

        while not self.hub.wait(connected, 5 * BEAT):
            if not told:
                log.warning("no other site both hears this one and is heard by it, be it through others: waiting")
            told = True
            self._forget(self._place[0])
        self.waited += time.monotonic() - began
        return Edition(self._rows, self.hub.name)

    def _forget(self, k: int) -> None:
        """Tell others which sites this one no longer hears, because they gave no sign of life, or hears again."""
        if self.waiting.exact:
            return
        now, sources = time.monotonic(), self.hub.sources()
        for peer in sources:
            if peer.ended != "completed":
                self._lost(peer, now)
        hears = tuple(sorted(peer.name for peer in sources if peer.name not in self._gone))
        if hears != self.hub.rows[self.hub.name].hears:
            self.hub.hear(hears, k)

    def _ahead(self, k: int) -> int:
        """Return the iteration to go on at: ``k``, or a later one if nobody waits for this site's messages of ``k``.

        A listener can be further on only if it has gone on without this site. One or two iterations are caught up
        with, since those who are ahead wait for that. In a free pace nobody waits, so only a site that starts looks
        where the others are.
        """
        if self.waiting.pace == "free" and self._started:
            return k
        now = time.monotonic()
        there = [peer for peer in self.hub.peers() if peer.accepted and peer.ended in ("", "completed")]
        there = [peer for peer in there if peer.away(now) <= max(self.waiting.patience, 3 * BEAT)]
        listeners = [peer.at for peer in there if peer.hears]
        sources = [peer.at for peer in there if peer.heard and peer.oldest > k]
        if listeners and max(listeners) > k + _BEHIND:
            return max(listeners)
        return max(k, min(listeners) if listeners else max(sources, default=k))

    def swap(self, arrays: Mapping[str, Array]) -> Callable[[], dict[str, Mapping[str, Array]]]:
        """Send arrays, and return a function that waits for those of the sources and returns what has arrived.

        A new site sends nothing: it has nothing to say yet.
        """
        place = self._place
        self._place = place[0], place[1] + 1
        if self.waiting.exact:
            self._hold_back()
        if not self.new:
            self.hub.post(place, arrays)
        wanted = messages.describe(arrays)

        def collect() -> dict[str, Mapping[str, Array]]:
            began = time.monotonic()
            self._wait(place)
            self.waited += time.monotonic() - began
            return self._taken(place, wanted)

        return collect

    def _wait(self, place: Place) -> None:
        if self.waiting.pace == "free":
            return
        self.hub.wait(lambda: not self._awaited(place), self.waiting.patience)
        if self.waiting.exact:
            return
        took = time.monotonic() - self._began
        if self._complete(place):
            self._usual.append(took)
        else:
            # A site that hears too few to be held up takes its time nonetheless: if it ran ahead, others would follow.
            # The mean, not the median: rounds that catch up are over at once, and follow some that were late.
            usual = min(statistics.fmean(self._usual), self.waiting.patience)
            self.hub.wait(lambda: self._complete(place), usual - took)

    def _complete(self, place: Place) -> bool:
        return all(place in peer.box for peer in self._heard())

    def _heard(self) -> list[Peer]:
        """Return the sources that have not been dropped."""
        return [peer for peer in self.hub.sources() if peer.name not in self._gone]

    def _awaited(self, place: Place) -> Sequence[Peer]:
        """Return the sources whose message is still to come; raise an error if it cannot come and must."""
        now = time.monotonic()
        awaited = []
        for peer in self.hub.sources():
            if place in peer.box:
                continue
            serves = self.waiting.exact and peer.ended == "completed" and place[0] <= peer.at  # and repeats messages
            if peer.ended and not serves:
                self._require_finished(peer)
            elif self._lost(peer, now) or (not self.waiting.exact and self._absent(peer, place, now)):
                continue
            elif self.waiting.exact and peer.accepted and peer.oldest > place[0]:
                raise TransportError(
                    f"{peer.name} is at iteration {peer.at} and can repeat messages from {peer.oldest} on only, but "
                    f"this site needs those of {place[0]}; resume all sites from checkpoints that are closer together, "
                    "or set a finite patience"
                )
            else:
                awaited.append(peer)
        return awaited

    def _absent(self, peer: Peer, place: Place, now: float) -> bool:
        """Whether waiting for a site is in vain: it has gone on, is far behind, or gives no sign of life."""
        far = place[0] - peer.at > _BEHIND
        return far or peer.oldest > place[0] or peer.away(now) > max(self.waiting.patience, 3 * BEAT)

    def _require_finished(self, peer: Peer) -> None:
        """Raise an error if a site has ended that cannot be done without."""
        if self.waiting.exact and peer.accepted:
            raise TransportError(
                f"{peer.name} has ended at iteration {peer.at} ({peer.ended}), and with infinite patience nothing goes "
                "on without it; see its log, and start it again with --resume, then this site; in a program, take as "
                "many steps at every site"
            )

    def _lost(self, peer: Peer, now: float) -> bool:
        """Whether a site is given up; say so once, and once when it is back."""
        if min(peer.away(now), now - peer.met) <= self.waiting.forget:
            if peer.name in self._gone:
                self._gone.discard(peer.name)
                log.info("%s: back", peer.name)
            return False
        if self.waiting.exact:
            raise TransportError(
                f"{peer.name} has given no sign of life for {self.waiting.forget:g} s (forget), and with infinite "
                "patience nothing goes on without it; start it again with --resume, then this site"
            )
        if peer.name not in self._gone:
            self._gone.add(peer.name)
            log.warning("%s: no sign of life for %g s: dropped until it is back", peer.name, self.waiting.forget)
        return True

    def _hold_back(self) -> None:
        """Wait for listeners that are far behind: what they need must not leave the log."""

        def caught_up() -> bool:
            now, behind = time.monotonic(), self.hub.laggards()
            for peer in behind:
                self._lost(peer, now)
            return not behind

        if not self.hub.laggards():
            return
        began = time.monotonic()
        self.hub.wait(caught_up, math.inf)
        self.waited += time.monotonic() - began

    def _taken(self, place: Place, wanted: Sequence[messages.Spec]) -> dict[str, Mapping[str, Array]]:
        found: dict[str, Mapping[str, Array]] = {}
        for peer in self._heard():
            held = self.hub.take(peer, place)
            told = messages.describe(held or {})
            if held and told != tuple(wanted):
                self.hub.drop(peer, f"arrays {_named(told)} where {_named(wanted)} were expected")
                held = None
            if held:
                found[peer.name] = held
            elif self.waiting.exact:
                raise TransportError(
                    f"what {peer.name} sent for iteration {place[0]} was not sound, and with infinite patience nothing "
                    "goes on without it; see the logs"
                )
            else:
                self.missed += 1
        return found


def _named(specs: Sequence[messages.Spec]) -> str:
    return ", ".join(f"{spec.name} {spec.dtype}{list(spec.shape)}" for spec in specs) or "none"
