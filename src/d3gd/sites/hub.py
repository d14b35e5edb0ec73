"""The conversation of a site with its neighbours, in a thread of its own: it goes on while the site computes."""

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import msgspec
import numpy as np

from d3gd import __version__
from d3gd.arrays import Array
from d3gd.errors import TransportError, printable
from d3gd.sites import messages
from d3gd.sites.messages import PROTOCOL, Ack, Beat, Data, Hello, Row, Rows, Spec, UnfitError
from d3gd.sites.peer import CREDIT, Peer, Place, difference
from d3gd.sites.wire import Contact, Event, Wire
from d3gd.validation import shortened

log = logging.getLogger("d3gd.sites")

BEAT = 1.0  # seconds between signs of life
_SLICE = 0.5  # seconds between looks at the clock in a wait
_LOG, _LOG_LEAST, _LOG_BYTES = 64, 8, 1 << 28  # rounds that can be sent again: at most, at least, and their bytes
_CLOCK = 5.0  # seconds by which clocks may differ without a remark
_OWED = CREDIT // 2  # data that may arrive before the sender is told
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


class Hub:
    """What a site says and hears.

    Args:
        name: The site's name.
        session: The name of the training.
        settings: What must be equal at all sites, in words.
        wire: The connections; the hub closes it.
        neighbours: The other ends of its links.
        newest: Whether only the newest message of a site is of use.

    Attributes:
        rows: What is known of the network: the rows of all sites that have been heard of.
        at: The iteration at which the site is.
        strangers: Connections that were refused, in words.
        bound: The largest number that is not absurd; a message with a larger one is dropped.
    """

    def __init__(
        self,
        name: str,
        session: str,
        settings: Mapping[str, str],
        wire: Wire,
        neighbours: Neighbours,
        *,
        newest: bool = False,
    ) -> None:
        self.name, self.session, self.bound = name, session, float(np.finfo(np.float64).max)
        self._settings, self._wire, self._newest = dict(settings), wire, newest
        self._boot = time.time_ns()
        self._changed = threading.Condition()
        self._peers: dict[str, Peer] = {}
        self.rows: dict[str, Row] = {}
        self._digest = ""
        self._log: dict[Place, tuple[tuple[Spec, ...], list[bytes]]] = {}
        self.at, self._room, self._ended, self._closing = 0, _LOG, "", False
        self._beat = 0.0
        self.strangers: list[str] = []
        self._told: set[str] = set()
        self._failure: BaseException | None = None
        self._meet(neighbours)
        self._thread = threading.Thread(target=self._talk, name="d3gd-site", daemon=True)
        self._thread.start()

    # What the site's own thread calls.

    def peers(self) -> list[Peer]:
        """Return the neighbours, to look at."""
        return list(self._peers.values())

    def sources(self) -> list[Peer]:
        """Return the sites that this one hears."""
        return [peer for peer in self._peers.values() if peer.heard]

    def meet(self, neighbours: Neighbours) -> None:
        """Replace the neighbours, after the site's file has changed."""
        with self._turn():
            self._pending = neighbours
        self._wire.wake()

    def begin(self, k: int, *, keep: bool = True) -> None:
        """Say that the site is at iteration ``k``; older messages are of no more use.

        Args:
            k: The iteration.
            keep: Whether own messages of earlier iterations can still be of use after some have been left out.
        """
        with self._turn():
            if not keep and k > self.at + 1:
                self._log.clear()  # so that others know at once that nothing will come for what is left out
            self.at = k
            for peer in self._peers.values():
                if not self._newest:
                    peer.box = {place: arrays for place, arrays in peer.box.items() if place[0] >= k}

    def post(self, place: Place, arrays: Mapping[str, Array]) -> None:
        """Send arrays to all listeners, now or as soon as they can take them."""
        specs = messages.describe(dict(arrays))
        frames = [np.ascontiguousarray(array).tobytes() for array in arrays.values()]
        with self._turn():
            self._log[place] = specs, frames
            if place[0] > self.at:
                self.at = place[0]
            self._room = max(_LOG_LEAST, min(_LOG, _LOG_BYTES // max(1, sum(map(len, frames)))))
            while len(self._log) > self._room:
                del self._log[next(iter(self._log))]
        self._wire.wake()

    def laggards(self) -> list[Peer]:
        """Return the listeners that still need what would leave the log with the next round."""
        if len(self._log) < self._room:
            return []
        oldest = next(iter(self._log))[0]
        return [peer for peer in self._peers.values() if peer.hears and not peer.ended and peer.at <= oldest]

    def take(self, peer: Peer, place: Place) -> dict[str, Array] | None:
        """Return a neighbour's arrays of a round, or the newest ones; None if there are none."""
        with self._turn():
            if self._newest:
                place = max((other for other in peer.box if other[1] == place[1]), default=place)
                return peer.box.get(place)
            peer.used = max(peer.used, place)
            return peer.box.pop(place, None)

    def drop(self, peer: Peer, why: str) -> None:
        """Count a message that is not used, and say so once."""
        with self._turn():
            peer.counts["dropped"] += 1
        self._once(f"{peer.name}: dropped {why}")

    def posted(self) -> dict[Place, tuple[tuple[Spec, ...], list[bytes]]]:
        """Return the rounds that can be sent again."""
        with self._turn():
            return dict(self._log)

    def restore(self, posted: Mapping[Place, tuple[tuple[Spec, ...], list[bytes]]]) -> None:
        """Take over the rounds of an earlier process."""
        with self._turn():
            self._log = dict(posted)

    def finish(self, how: str) -> None:
        """Say that the site's run has ended, and how."""
        with self._turn():
            self._ended, self._beat = how, 0.0
        self._wire.wake()

    def wait(self, until: Callable[[], bool], seconds: float) -> bool:
        """Wait for something to come true, and return whether it has.

        Args:
            until: Looks at the hub; called under its lock.
            seconds: How long to wait at most.
        """
        deadline = time.monotonic() + seconds
        with self._turn():
            while not until():
                left = deadline - time.monotonic()
                if left <= 0 or self._closing:
                    return False
                self._changed.wait(min(left, _SLICE))
                self._require_alive()
        return True

    def close(self) -> None:
        """End the conversation."""
        with self._changed:
            self._closing = True
        self._wire.wake()
        self._thread.join()

    _pending: Neighbours | None = None

    @contextmanager
    def _turn(self) -> Iterator[None]:
        with self._changed:
            self._require_alive()
            yield

    def _require_alive(self) -> None:
        if self._failure is not None:
            raise TransportError(f"the conversation with other sites has ended: {self._failure}") from self._failure

    # What the hub's own thread does.

    def _talk(self) -> None:
        try:
            while not self._closing:
                for found in self._wire.receive(max(0.0, self._beat - time.monotonic())):
                    if isinstance(found, Event):
                        self._happened(found)
                    else:
                        self._received(found.sender, found.frames)
                with self._changed:
                    if self._pending is not None:
                        self._meet(self._pending)
                        self._pending = None
                    if time.monotonic() >= self._beat:
                        self._beat = time.monotonic() + BEAT
                        for peer in self._peers.values():
                            self._greet(peer)
                        self._changed.notify_all()
                    for peer in self._peers.values():
                        self._pump(peer)
            with self._changed:
                for peer in self._peers.values():
                    self._greet(peer)  # so that others know at once that it is done
        except BaseException as error:
            with self._changed:
                self._failure = error
                self._changed.notify_all()
        finally:
            self._wire.close()

    def _meet(self, neighbours: Neighbours) -> None:
        sources, listeners = ({contact.name for contact in group} for group in neighbours)
        for name in self._peers.keys() - (sources | listeners):
            del self._peers[name]
        for name in sources | listeners:
            peer = self._peers.setdefault(name, Peer(name, heard=False, hears=False))
            peer.heard, peer.hears = name in sources, name in listeners
        version = self.rows[self.name].version + 1 if self.name in self.rows else self._boot
        self._learn({self.name: Row(version, tuple(sorted(sources)))})
        self._wire.meet(neighbours.contacts())

    def _greet(self, peer: Peer) -> None:
        """Say hello until the other knows this process, then that it lives."""
        if not peer.greeted:
            facts: dict[str, Any] = {"version": __version__, "clock": time.time(), "settings": self._settings}
            self._say(peer, Hello, (), **facts)
        else:
            self._say(peer, Beat, rows=peer.rows, ended=self._ended)
            if peer.hears and peer.accepted and peer.has_rows != self._digest:
                self._say(peer, Rows, rows=self.rows)

    def _say(self, peer: Peer, kind: type[messages.Message], frames: Sequence[Any] = (), **content: Any) -> bool:
        oldest = next(iter(self._log))[0] if self._log else self.at
        head: dict[str, Any] = {
            "protocol": PROTOCOL, "session": self.session, "sender": self.name, "boot": self._boot, "at": self.at,
            "number": peer.number + 1, "oldest": oldest, "knows": peer.boot, "seen": peer.seen,
            "got": tuple(peer.owed),
        }  # fmt: skip
        sent = self._wire.send(peer.name, [messages.encode(kind(**head, **content)), *frames])
        if sent:
            peer.number += 1
            peer.owed.clear()
        return sent

    def _pump(self, peer: Peer) -> None:
        """Send what a listener is still to get, as far as it can take it."""
        while (place := peer.next_place(self._log, newest=self._newest)) is not None:
            specs, frames = self._log[place]
            if not self._say(peer, Data, frames, iteration=place[0], turn=place[1], arrays=specs):
                return
            peer.cursor = place
            peer.under_way[peer.number] = place
            peer.counts["messages sent"] += 1
            peer.counts["bytes sent"] += sum(map(len, frames))

    def _happened(self, event: Event) -> None:
        peer = self._peers.get(event.who)
        if peer is None:
            self.strangers.append(f"{event.who}: {event.why}")
            self._once(f"a connection was refused: {self.strangers[-1]}")
            return
        with self._changed:
            peer.connected = event.what == "connected"
            if event.what in ("connected", "disconnected"):
                peer.lost()
                peer.refusal = "" if peer.connected else "the connection has ended"
            else:
                peer.refusal = event.why
                self._once(f"{peer.name}: no connection: {event.why}")
            if event.what == "connected":
                self._greet(peer)

    def _received(self, sender: str, frames: Sequence[Any]) -> None:
        peer = self._peers.get(sender)
        if peer is None:
            return
        try:
            message = messages.decode(frames[0])
            if message.sender != peer.name:
                raise UnfitError(f"a message in the name of {message.sender}")
            with self._changed:
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
        except UnfitError as error:
            with self._changed:
                peer.counts["dropped"] += 1
            self._once(f"{peer.name}: dropped {error}")
            if not peer.greeted:
                with self._changed:
                    self._greet(peer)
        with self._changed:
            self._changed.notify_all()

    def _met(self, peer: Peer, hello: Hello) -> None:
        unlike = difference(hello, self.session, self._settings)
        with self._changed:
            before = peer.accepted
            peer.offset, peer.version = hello.clock - time.time(), hello.version
            peer.accepted, peer.refusal = not unlike, unlike
            if not peer.greeted or not before:
                self._greet(peer)
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
        with self._changed:
            peer.counts["bytes received"] += sum(map(len, frames))
            peer.owed.append(message.number)  # also of what is dropped: to send it again would not help
            if len(peer.owed) >= _OWED:
                self._say(peer, Ack)
        arrays = messages.unpack(message.arrays, frames, self.bound)
        with self._changed:
            if place in peer.box or place <= peer.used:
                raise UnfitError("data that were received before")
            if self._newest:
                peer.box = {other: held for other, held in peer.box.items() if other[1] != place[1]}
            elif place[0] < self.at:
                peer.counts["late"] += 1
                return
            elif len(peer.box) >= 2 * _LOG:
                raise UnfitError("data too far ahead")
            peer.box[place] = arrays

    def _other(self, peer: Peer, message: messages.Any_) -> None:
        with self._changed:
            if isinstance(message, Beat):
                peer.has_rows, peer.ended = message.rows, message.ended
            elif isinstance(message, Rows) and peer.heard:
                peer.rows = _digest(message.rows)
                others = {name: row for name, row in message.rows.items() if name != self.name}
                if self._learn(others):
                    for other in self._peers.values():
                        if other.hears and other.accepted:
                            self._say(other, Rows, rows=self.rows)

    def _learn(self, rows: Mapping[str, Row]) -> bool:
        """Take over newer rows, and return whether there were any."""
        known = self.rows
        newer = {name: row for name, row in rows.items() if name not in known or row.version > known[name].version}
        if not newer:
            return False
        self.rows = dict(sorted({**self.rows, **newer}.items()))
        self._digest = _digest(self.rows)
        return True

    def _once(self, text: str) -> None:
        text = shortened(printable(text), 500)
        if text not in self._told and len(self._told) < _LINES:
            self._told.add(text)
            log.warning("%s", text)


def _digest(rows: Mapping[str, Row]) -> str:
    return hashlib.sha256(msgspec.msgpack.encode(dict(sorted(rows.items())))).hexdigest()[:16]
