"""Another site as this one sees it: who it is, where it is, what it sent and what it still needs."""

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from d3gd.arrays import Array
from d3gd.sites.messages import Hello, Message, UnfitError

Place: TypeAlias = tuple[int, int]  # an iteration, and a round in it

CREDIT = 4  # messages under way to a listener: enough to keep a link busy, few enough not to pile up


@dataclass
class Peer:
    """The state of the conversation with another site.

    Attributes:
        name: Its name.
        heard: Whether this site hears it: a *source*.
        hears: Whether it may hear this site: a *listener*.
        boot: When its process was started; 0 before its first message.
        greeted: Whether it knows this process.
        accepted: Whether its settings fit.
        refusal: Why not, or why there is no connection.
        connected: Whether the wire has a connection; None where only messages can tell.
        number: The last number of a message to it.
        seen: The last number of a message from it.
        at: Its iteration.
        oldest: The first iteration that it can repeat.
        ended: How its run ended; empty while it goes on.
        last: When it was last heard of, by this process's clock; None before.
        met: When it became a neighbour.
        offset: Its clock less this one's, in seconds, when it said hello.
        version: Its version of d3gd.
        rows: A digest of its table of the network, as last received.
        has_rows: A digest of this site's table that it has.
        box: What has arrived from it and was not used yet.
        editions: The networks in which that was computed, as long as this site does not know its own.
        used: The last round whose message was used.
        cursor: The last round that was sent to it.
        owed: The numbers of its data that it has not been told of.
        under_way: The rounds sent to it and not acknowledged, by the numbers of their messages.
        counts: Messages and bytes received and sent, and messages dropped, by the reason.
    """

    name: str
    heard: bool
    hears: bool
    boot: int = 0
    greeted: bool = False
    accepted: bool = False
    refusal: str = ""
    connected: bool | None = None
    number: int = 0
    seen: int = 0
    at: int = 0
    oldest: int = 0
    ended: str = ""
    last: float | None = None
    met: float = field(default_factory=time.monotonic)
    offset: float = 0.0
    version: str = ""
    rows: str = ""
    has_rows: str = ""
    box: dict[Place, dict[str, Array]] = field(default_factory=dict)
    editions: dict[Place, str] = field(default_factory=dict)
    used: Place = (-1, -1)
    cursor: Place = (-1, -1)
    owed: list[int] = field(default_factory=list)
    under_way: dict[int, Place] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def note(self, message: Message, own: int) -> None:
        """Take in what every message says, or raise an :class:`UnfitError` if it was seen before.

        Args:
            message: The message.
            own: The boot of this process.
        """
        if message.boot < self.boot:
            raise UnfitError("a message of a process that has ended")
        if message.boot > self.boot:
            if not isinstance(message, Hello):
                self.greeted = False  # ask who it is
                raise UnfitError("a message before the first hello")
            self._restart(message.boot)
        elif message.number <= self.seen:
            raise UnfitError("a message that was received before")
        self.seen, self.last = message.number, time.monotonic()
        self.at, self.oldest = message.at, message.oldest
        self.greeted = message.knows == own
        if message.knows == own:
            for number in message.got:
                self.under_way.pop(number, None)
            self._settle(message.seen)

    def away(self, now: float) -> float:
        """Return the seconds since it was last heard of; infinite before."""
        return float("inf") if self.last is None else now - self.last

    def next_place(self, log: dict[Place, Any], *, newest: bool) -> Place | None:
        """Return the next round to send, or None if there is none or too much is under way.

        Args:
            log: The rounds that can be sent, in order.
            newest: Whether only the last one is of use.
        """
        if not (self.hears and self.accepted and self.greeted) or len(self.under_way) >= CREDIT:
            return None
        found = None
        for place in reversed(log):  # from the end: the log is long, and mostly sent
            if place <= self.cursor or not (newest or place[0] >= self.at):
                break
            found = place
            if newest:
                break
        return found

    def lost(self) -> None:
        """Send again what is under way: its connection has ended."""
        self._settle(self.number)

    def _settle(self, seen: int) -> None:
        """Send again what was lost: messages arrive in order, so an earlier one that was not acknowledged is lost."""
        lost = [place for number, place in self.under_way.items() if number <= seen]
        if lost:
            self.under_way = {number: place for number, place in self.under_way.items() if number > seen}
            before = min(lost)
            self.cursor = min(self.cursor, (before[0], before[1] - 1))
            self.counts["sent again"] += len(lost)

    def _restart(self, boot: int) -> None:
        self.boot, self.seen, self.greeted, self.accepted, self.refusal = boot, 0, False, False, ""
        self.has_rows, self.cursor, self.under_way, self.ended = "", (-1, -1), {}, ""
        self.box.clear()
        self.editions.clear()
        self.owed.clear()
        self.counts["starts"] += 1


def difference(hello: Hello, session: str, settings: dict[str, str]) -> str:
    """Return in words what does not fit between a site's settings and ours, or an empty string.

    Example:
        >>> from d3gd.sites.messages import PROTOCOL
        >>> head = {"protocol": PROTOCOL, "session": "a", "sender": "b", "boot": 1, "number": 1}
        >>> other = Hello(**head, version="1", clock=0, settings={"step size": "0.2"})
        >>> difference(other, "a", {"step size": "0.1"})
        'its step size is 0.2, here 0.1'
    """
    if hello.session != session:
        return f"it belongs to the session {hello.session!r}, this site to {session!r}"
    names = [*settings, *(name for name in hello.settings if name not in settings)]
    missing = "not given"
    unlike = [
        f"its {name} is {hello.settings.get(name, missing)}, here {settings.get(name, missing)}"
        for name in names
        if hello.settings.get(name) != settings.get(name)
    ]
    return "; ".join(unlike)
