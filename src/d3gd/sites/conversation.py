"""What a site says and hears: the protocol, without threads."""

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from d3gd import __version__
from d3gd.errors import printable
from d3gd.sites import messages
from d3gd.sites.messages import PROTOCOL, Ack, Beat, Data, Hello, Rows, Spec, UnfitError
from d3gd.sites.peer import CREDIT, Peer, Place, difference
from d3gd.sites.roster import Roster, digest_of
from d3gd.sites.wire import Arrival, Contact, Event, Wire
from d3gd.validation import shortened

log = logging.getLogger("d3gd.sites")

Posted: TypeAlias = tuple[tuple[Spec, ...], list[bytes]]  # the arrays of a round

_LOG, _LOG_LEAST, _LOG_BYTES = 64, 8, 1 << 28  # rounds that can be sent again: at most, at least, and their bytes
_CLOCK = 5.0  # seconds by which clocks may differ without a remark
_OWED = CREDIT - 1  # data that may arrive before the sender is told; two neighbours in step tell each other with data
_LINES = 1000  # reasons for dropped messages that are logged once each


class Neighbours(NamedTuple):
    """The other ends of a site's links."""

    sources: tuple[Contact, ...]  # whom it hears
    listeners: tuple[Contact, ...]  # who may hear it

    def contacts(self) -> list[Contact]:
        """Return every site once, with an address if one is known."""
        found: dict[str, Contact] = {}
        for contact in (*self.sources, *self.listeners):
            if contact.name not in found or found[contact.name].address is None:
                found[contact.name] = contact
        return list(found.values())


class Conversation:
    """The state of a site's conversation with its neighbours.

    Nothing here waits; :class:`d3gd.sites.hub.Hub` calls it from two threads, one at a time.

    Args:
        name: The site's name.
        session: The name of the training.
        settings: What must be equal at all sites, in words.
        wire: The connections.
        newest: Whether only the newest message of a site is of use.
        samples: The number of the site's samples, if objectives are weighed by them.

    Attributes:
        peers: The neighbours, by name.
        roster: What is known of the network.
        at: The iteration at which the site is.
        ended: How the site's run ended; empty while it goes on.
        log: The rounds that can be sent again, in order.
        room: The number of rounds that the log can hold.
        strangers: Connections that were refused, in words.
        bound: The largest number that is not absurd; a message with a larger one is dropped.
        edition: The network in which the site computes.
    """

    def __init__(
        self, name: str, session: str, settings: Mapping[str, str], wire: Wire, *, newest: bool, samples: int
    ) -> None:
        self.name, self.session, self.bound = name, session, float(np.finfo(np.float64).max)
        self._settings, self._wire, self._newest = dict(settings), wire, newest
        self._boot = time.time_ns()
        self.roster = Roster(name, self._boot, samples)
        self.peers: dict[str, Peer] = {}
        self.log: dict[Place, Posted] = {}
        self.at, self.room, self.ended, self.edition = 0, _LOG, "", ""
        self.strangers: list[str] = []
        self._told: set[str] = set()

    def begin(self, k: int, keep: bool) -> None:
        """Go on to an iteration; see :meth:`Hub.begin`."""
        if not keep and k > self.at + 1:
            self.log.clear()  # so that others know at once that nothing will come for what is left out
        self.at = k
        for peer in self.peers.values():
            if not self._newest:
                peer.box = {place: arrays for place, arrays in peer.box.items() if place[0] >= k}

    def post(self, place: Place, specs: tuple[Spec, ...], frames: list[bytes]) -> None:
        """Add a round to the log, from which it is sent."""
        self.log[place] = specs, frames
        self.at = max(self.at, place[0])
        self.room = max(_LOG_LEAST, min(_LOG, _LOG_BYTES // max(1, sum(map(len, frames)))))
        while len(self.log) > self.room:
            del self.log[next(iter(self.log))]

    def take(self, peer: Peer, place: Place) -> dict[str, Any] | None:
        """Return a neighbour's arrays of a round, or the newest ones; None if there are none."""
        if self._newest:
            place = max((other for other in peer.box if other[1] == place[1]), default=place)
            return peer.box.get(place)
        held = peer.box.pop(place, None)
        if held is not None:
            peer.used = max(peer.used, place)
        return held

    def drop(self, peer: Peer, why: str) -> None:
        """Count a message that is not used, and say so once."""
        peer.counts["dropped"] += 1
        self._once(f"{peer.name}: dropped {why}")

    def meet(self, neighbours: Neighbours) -> None:
        """Replace the neighbours."""
        sources, listeners = ({contact.name for contact in group} for group in neighbours)
        for name in self.peers.keys() - (sources | listeners):
            del self.peers[name]
        for name in sources | listeners:
            peer = self.peers.setdefault(name, Peer(name, heard=False, hears=False))
            peer.heard, peer.hears = name in sources, name in listeners
        self.roster.hear(sources, self.at)
        self._wire.meet(neighbours.contacts())

    def enter(self, edition: str) -> None:
        """Compute in another network from now on: what was sent in the last one is of no more use."""
        if self.edition:
            self.log.clear()
        self.edition = edition
        for peer in self.peers.values():
            peer.box = {place: arrays for place, arrays in peer.box.items() if peer.editions.get(place) == edition}
            peer.editions.clear()

    def take_in(self, found: Arrival | Event) -> None:
        """Take in what the wire brought."""
        if isinstance(found, Event):
            self._happened(found)
        else:
            self._received(found.sender, found.frames)

    def greet(self, peer: Peer) -> None:
        """Say hello until the other knows this process, then that it lives."""
        if not peer.greeted:
            facts: dict[str, Any] = {"version": __version__, "clock": time.time(), "settings": self._settings}
            self._say(peer, Hello, (), **facts)
        else:
            self._say(peer, Beat, rows=peer.rows, ended=self.ended)
            if peer.hears and peer.accepted and peer.has_rows != self.roster.digest:
                self._say(peer, Rows, rows=self.roster.rows)

    def _say(self, peer: Peer, kind: type[messages.Message], frames: Sequence[Any] = (), **content: Any) -> bool:
        oldest = next(iter(self.log))[0] if self.log else self.at
        head: dict[str, Any] = {
            "protocol": PROTOCOL, "session": self.session, "sender": self.name, "boot": self._boot, "at": self.at,
            "number": peer.number + 1, "oldest": oldest, "knows": peer.boot, "seen": peer.seen,
            "got": tuple(peer.owed[-messages.MOST_GOT :]),
        }  # fmt: skip
        sent = self._wire.send(peer.name, [messages.encode(kind(**head, **content)), *frames])
        if sent:
            peer.number += 1
            peer.owed.clear()
        return sent

    def pump(self, peer: Peer) -> None:
        """Send what a listener has not received yet, as far as it can take it."""
        while (place := peer.next_place(self.log, newest=self._newest)) is not None:
            specs, frames = self.log[place]
            if not self._say(peer, Data, frames, iteration=place[0], turn=place[1], edition=self.edition, arrays=specs):
                return
            peer.cursor = place
            peer.under_way[peer.number] = place
            peer.counts["messages sent"] += 1
            peer.counts["bytes sent"] += sum(map(len, frames))
        if len(peer.owed) >= _OWED:  # no data were due that would have told the other what has arrived
            self._say(peer, Ack)

    def _happened(self, event: Event) -> None:
        peer = self.peers.get(event.who)
        if peer is None:
            self.strangers.append(f"{event.who}: {event.why}")
            self._once(f"a connection was refused: {self.strangers[-1]}")
            return
        peer.connected = event.what == "connected"
        if event.what in ("connected", "disconnected"):
            peer.lost()
            peer.refusal = "" if peer.connected else "the connection has ended"
        else:
            peer.refusal = event.why
            self._once(f"{peer.name}: no connection: {event.why}")
        if event.what == "connected":
            self.greet(peer)

    def _received(self, sender: str, frames: Sequence[Any]) -> None:
        peer = self.peers.get(sender)
        if peer is None:
            return
        try:
            message = messages.decode(frames[0])
            if message.sender != peer.name:
                raise UnfitError(f"a message in the name of {message.sender}")
            peer.note(message, self._boot)
            peer.counts["messages received"] += 1
            if isinstance(message, Hello):
                self._met(peer, message)
            elif not peer.accepted:
                raise UnfitError(f"a message of a site that was refused: {peer.refusal}")
            elif message.session != self.session:
                raise UnfitError(f"a message of the session {message.session!r}")
            elif isinstance(message, Data):
                self._data(peer, message, frames[1:])
            else:
                self._other(peer, message)
        except (UnfitError, ValueError, OverflowError) as error:  # whatever a neighbour sends, this site goes on
            self.drop(peer, str(error))
            if not peer.greeted:
                self.greet(peer)

    def _met(self, peer: Peer, hello: Hello) -> None:
        unlike = difference(hello, self.session, self._settings)
        before = peer.accepted
        peer.offset, peer.version = hello.clock - time.time(), hello.version
        peer.accepted, peer.refusal = not unlike, unlike
        if not peer.greeted or not before:
            self.greet(peer)
        if unlike:
            self._once(f"{peer.name} was refused: {unlike}")
        elif not before:
            log.info("%s: connected, at iteration %d", peer.name, hello.at)
        if abs(peer.offset) > _CLOCK:
            self._once(f"{peer.name}: its clock is {abs(peer.offset):.0f} s {'ahead' if peer.offset > 0 else 'behind'}")

    def _data(self, peer: Peer, message: Data, frames: Sequence[Any]) -> None:
        if not peer.heard:
            raise UnfitError("data of a site that this one does not hear")
        place = message.iteration, message.turn
        peer.counts["bytes received"] += sum(map(len, frames))
        peer.owed.append(message.number)  # also of what is dropped: to send it again would not help
        try:
            arrays = messages.unpack(message.arrays, frames, self.bound)
        except UnfitError:
            if place[0] >= self.at and len(peer.box) < 2 * _LOG:
                peer.box.setdefault(place, {})  # nobody needs to wait for it
            raise
        if place in peer.box or place <= peer.used:
            raise UnfitError("data that were received before")
        if not self.edition:
            peer.editions[place] = message.edition  # the network is not known yet
        elif message.edition != self.edition:
            peer.counts["of another network"] += 1
            if place[0] >= self.at and not self._newest and len(peer.box) < 2 * _LOG:
                peer.box[place] = {}
            return
        if self._newest:
            peer.box = {other: held for other, held in peer.box.items() if other[1] != place[1]}
        elif place[0] < self.at:
            peer.counts["late"] += 1
            return
        elif len(peer.box) >= 2 * _LOG:
            del peer.box[min(peer.box)]  # a site that is so far behind will leave it out
        peer.box[place] = arrays

    def _other(self, peer: Peer, message: messages.Any_) -> None:
        if isinstance(message, Beat):
            peer.has_rows, peer.ended = message.rows, message.ended
        elif isinstance(message, Rows) and peer.heard:
            peer.rows = digest_of(message.rows)
            if self.roster.learn(message.rows, message.at):
                for other in self.peers.values():
                    if other.hears and other.accepted:
                        self._say(other, Rows, rows=self.roster.rows)

    def _once(self, text: str) -> None:
        text = shortened(printable(text), 500)
        if text not in self._told and len(self._told) < _LINES:
            self._told.add(text)
            log.warning("%s", text)
