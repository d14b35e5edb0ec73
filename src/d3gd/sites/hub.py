"""The conversation of a site with its neighbours, in a thread of its own: it goes on while the site computes."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

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
        self.name, self.session, self._wire = name, session, wire
        self._said = Conversation(name, session, settings, wire, newest=newest, samples=samples)
        self._changed = threading.Condition()
        self._closing, self._closed, self._beat = False, False, 0.0
        self._pending: Neighbours | None = None
        self._failure: BaseException | None = None
        self._said.meet(neighbours)
        self._thread = threading.Thread(target=self._talk, name="d3gd-site", daemon=True)
        self._thread.start()

    @property
    def at(self) -> int:
        """The iteration at which the site is."""
        return self._said.at

    @property
    def rows(self) -> dict[str, Row]:
        """What is known of the network: the rows of all sites that have been heard of."""
        return self._said.rows

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
        with self._turn():
            self._said.bound = bound

    def meet(self, neighbours: Neighbours) -> None:
        """Replace the neighbours."""
        with self._turn():
            self._pending = neighbours
        self._wake()

    def begin(self, k: int, *, keep: bool = True) -> None:
        """Say that the site is at iteration ``k``; older messages are of no more use.

        Args:
            k: The iteration.
            keep: Whether own messages of earlier iterations can still be of use after some have been left out.
        """
        with self._turn():
            self._said.begin(k, keep)

    def post(self, place: Place, arrays: Mapping[str, Array]) -> None:
        """Send arrays to all listeners, now or as soon as they can take them."""
        specs = messages.describe(dict(arrays))
        frames = [np.ascontiguousarray(array).tobytes() for array in arrays.values()]
        with self._turn():
            self._said.post(place, specs, frames)
        self._wake()

    def take(self, peer: Peer, place: Place) -> dict[str, Array] | None:
        """Return a neighbour's arrays of a round, or the newest ones; None if there are none."""
        with self._turn():
            return self._said.take(peer, place)

    def drop(self, peer: Peer, why: str) -> None:
        """Count a message that is not used, and say so once."""
        with self._turn():
            self._said.drop(peer, why)

    def posted(self) -> dict[Place, Posted]:
        """Return the rounds that can be sent again."""
        with self._turn():
            return dict(self._said.log)

    def restore(self, posted: Mapping[Place, Posted]) -> None:
        """Take over the rounds of an earlier process."""
        with self._turn():
            self._said.log = dict(posted)

    def finish(self, how: str) -> None:
        """Say that the site's run has ended, and how."""
        with self._turn():
            self._said.ended, self._beat = how, 0.0
        self._wake()

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
        self._wake()
        self._thread.join()

    def _wake(self) -> None:
        with self._changed:  # the wire may be closed meanwhile, but not at this moment
            if not self._closed:
                self._wire.wake()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        with self._changed:
            self._require_alive()
            yield

    def _require_alive(self) -> None:
        if self._failure is not None:
            raise TransportError(f"the conversation with other sites has ended: {self._failure}") from self._failure

    def _talk(self) -> None:
        said = self._said
        try:
            while not self._closing:
                found = self._wire.receive(max(0.0, self._beat - time.monotonic()))
                with self._changed:
                    for each in found:
                        said.take_in(each)
                    if self._pending is not None:
                        said.meet(self._pending)
                        self._pending = None
                    beats = time.monotonic() >= self._beat
                    for peer in said.peers.values():
                        if beats:
                            said.greet(peer)
                        said.pump(peer)
                    if beats:
                        self._beat = time.monotonic() + BEAT
                    if found or beats:
                        self._changed.notify_all()
            with self._changed:
                for peer in said.peers.values():
                    said.greet(peer)  # so that others know at once that it is done
        except BaseException as error:
            with self._changed:
                self._failure = error
                self._changed.notify_all()
        finally:
            with self._changed:
                self._closed = True
            self._wire.close()
