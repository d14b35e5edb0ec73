"""The conversation of a site with its neighbours: it goes on while the site computes, in a thread of its own.

Only one thread talks at a time. The one that trains does so itself while it sends and waits, which saves changes of
thread in every round; while it computes, the other looks for what has arrived every few milliseconds.
"""

import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress

import numpy as np

from d3gd.arrays import Array
from d3gd.errors import TransportError
from d3gd.sites import messages
from d3gd.sites.conversation import Conversation, Neighbours, Posted
from d3gd.sites.messages import Row
from d3gd.sites.peer import Peer, Place
from d3gd.sites.wire import Wire

BEAT = 1.0  # seconds between signs of life
_SLICE = 0.5  # seconds between looks at the clock in a wait
_LOOK = 0.02  # seconds between looks at what has arrived while the site computes


class Hub:
    """A site's conversation, for the thread that trains.

    Args:
        name: The site's name.
        session: The name of the training.
        settings: What must be equal at all sites, in words.
        wire: The connections; the hub closes it.
        neighbours: The other ends of its links.
        newest: Whether only the newest message of a site is of use.
        samples: The number of the site's samples, if objectives are weighed by them.
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
        samples: int = 0,
    ) -> None:
        self.name, self.session, self._wire, self._newest = name, session, wire, newest
        self._said = Conversation(name, session, settings, wire, newest=newest, samples=samples)
        self._floor = threading.RLock()  # who holds it, talks
        self._closing, self._closed, self._beat = threading.Event(), False, 0.0
        self._pending: Neighbours | None = None
        self._failure: BaseException | None = None
        self._said.meet(neighbours)
        self._thread = threading.Thread(target=self._stand_in, name="d3gd-site", daemon=True)
        self._thread.start()

    @property
    def at(self) -> int:
        """The iteration at which the site is."""
        return self._said.at

    @property
    def rows(self) -> dict[str, Row]:
        """What is known of the network: the rows of all sites that have been heard of."""
        return self._said.roster.rows

    @property
    def remembered(self) -> bool:
        """Whether others know an earlier process of this site."""
        return self._said.roster.remembered

    @property
    def strangers(self) -> list[str]:
        """Connections that were refused, in words."""
        return self._said.strangers

    def peers(self) -> list[Peer]:
        """Return the neighbours, to look at."""
        return list(self._said.peers.values())

    def sources(self) -> list[Peer]:
        """Return the sites that this one hears."""
        return [peer for peer in self.peers() if peer.heard]

    def laggards(self) -> list[Peer]:
        """Return the listeners that still need what would leave the log with the next round."""
        if len(self._said.log) < self._said.room:
            return []
        oldest = next(iter(self._said.log))[0]
        return [peer for peer in self.peers() if peer.hears and not peer.ended and peer.at <= oldest]

    def limit(self, bound: float) -> None:
        """Drop messages with larger numbers."""
        with self._floor:
            self._said.bound = bound

    @property
    def bound(self) -> float:
        """The largest number that a sound message holds."""
        return self._said.bound

    def meet(self, neighbours: Neighbours) -> None:
        """Replace the neighbours."""
        self._require_alive()
        self._pending, self._beat = neighbours, 0.0  # for the next turn: a signal may have interrupted this one

    def hear(self, names: Collection[str] | None, k: int) -> None:
        """Tell all sites which ones this one hears from iteration ``k`` on; see :meth:`Roster.hear`."""
        with self._floor:
            self._said.roster.hear(names, k)
            self._beat = 0.0

    def enter(self, edition: str) -> None:
        """Compute in another network from now on."""
        with self._floor:
            self._said.enter(edition)

    def begin(self, k: int, *, keep: bool = True) -> None:
        """Say that the site is at iteration ``k``; older messages are of no more use.

        Args:
            k: The iteration.
            keep: Whether own messages of earlier iterations can still be of use after some have been left out.
        """
        with self._floor:
            self._said.begin(k, keep)

    def post(self, place: Place, arrays: Mapping[str, Array]) -> None:
        """Send arrays to all listeners, now or as soon as they can take them."""
        specs = messages.describe(arrays)
        frames = [np.ascontiguousarray(array).tobytes() for array in arrays.values()]
        with self._floor:
            self._require_alive()
            self._said.post(place, specs, frames)
            for peer in self._said.peers.values():
                self._said.pump(peer)
            if self._newest:
                self._talk(0.0)  # nobody will wait for what arrives

    def take(self, peer: Peer, place: Place) -> dict[str, Array] | None:
        """Return a neighbour's arrays of a round, or the newest ones; None if there are none."""
        with self._floor:
            return self._said.take(peer, place)

    def drop(self, peer: Peer, why: str) -> None:
        """Count a message that is not used, and say so once."""
        with self._floor:
            self._said.drop(peer, why)

    def posted(self) -> dict[Place, Posted]:
        """Return the rounds that can be sent again."""
        with self._floor:
            return dict(self._said.log)

    def restore(self, posted: Mapping[Place, Posted]) -> None:
        """Take over the rounds of an earlier process."""
        with self._floor:
            self._said.log = dict(posted)

    def finish(self, how: str) -> None:
        """Say that the site's run has ended, and how."""
        with self._floor:
            self._said.ended, self._beat = how, 0.0
            self._talk(0.0)

    def wait(self, until: Callable[[], bool], seconds: float) -> bool:
        """Wait for something to come true, and return whether it has.

        Args:
            until: Looks at the hub; called under its lock.
            seconds: How long to wait at most.
        """
        deadline = time.monotonic() + seconds
        while True:
            with self._floor:
                self._require_alive()
                left = deadline - time.monotonic()
                if until():
                    return True
                if left <= 0 or self._closing.is_set():
                    return False
                self._talk(min(left, _SLICE))

    def close(self) -> None:
        """End the conversation."""
        self._closing.set()
        self._thread.join()
        with self._floor:
            if not self._closed:
                self._closed = True
                if self._failure is None:
                    for peer in self._said.peers.values():
                        self._said.greet(peer)  # so that others know at once that it is done
                self._wire.close()

    def _require_alive(self) -> None:
        if self._failure is not None:
            raise TransportError(f"the conversation with other sites has ended: {self._failure}") from self._failure

    def _stand_in(self) -> None:
        """Talk while the thread that trains does not."""
        while not (self._closing.wait(_LOOK) or self._failure):
            if self._floor.acquire(blocking=False):
                try:
                    with suppress(TransportError):  # the other thread will raise it
                        self._talk(0.0)
                finally:
                    self._floor.release()

    def _talk(self, seconds: float) -> None:
        """Take in what arrives within some seconds, and send what is due."""
        said = self._said
        try:
            for each in self._wire.receive(min(seconds, max(0.0, self._beat - time.monotonic()))):
                said.take_in(each)
            if self._pending is not None:
                pending, self._pending = self._pending, None
                said.meet(pending)
            beats = time.monotonic() >= self._beat
            for peer in said.peers.values():
                if beats:
                    said.greet(peer)
                said.pump(peer)
            if beats:
                self._beat = time.monotonic() + BEAT
        except Exception as error:
            self._failure = error
            self._require_alive()
