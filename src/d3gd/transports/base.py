"""The base class of transports, which move bytes between processes."""

import json
import math
import os
import sys
import time
import traceback
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from importlib.metadata import version
from types import TracebackType
from typing import Any, Self, TypeAlias

import numpy as np

from d3gd import __version__
from d3gd.arrays import Array
from d3gd.errors import D3GDError, ToldElsewhereError, TransportError
from d3gd.transports.failures import Advice, LateError, MisfitError, explained, named

__all__ = ["LONGEST", "TIMEOUT", "LateError", "Messages", "MisfitError", "Transport", "leave", "named"]

Messages: TypeAlias = Sequence[tuple[int, Any]]  # a rank, and the result of Transport.buffer for an array

TIMEOUT = 60.0  # seconds that a rank waits for another
LONGEST = 1e6  # seconds, eleven days: for libraries that need a finite number; fits 32 bits in milliseconds
_PASSED_ON = 0.5  # seconds for the launcher to forward a message, before it ends all ranks
_GRACE = 5.0  # limit in seconds for late ranks to find those that do not answer
_MISFIT = 1.0  # seconds for ranks that find a mismatch to agree which one reports it
_TAGS = 1 << 15  # the MPI standard guarantees at least this many
_FAILED, _USAGE, _INTERRUPTED = 1, 2, 130


class InterruptedTogetherError(KeyboardInterrupt):
    """Ctrl-C, agreed by all ranks, so that none needs to end the others."""


class Pending:
    """A batch of messages in flight.

    Args:
        transport: The transport.
        finish: Waits for all of them, and raises :class:`LateError` at the deadline.
        what: A description of their content.
    """

    def __init__(self, transport: "Transport", finish: Callable[[], None], what: str) -> None:
        self._transport, self._what = transport, what
        self._finish: Callable[[], None] | None = finish

    def wait(self) -> None:
        """Return when everything has been sent and received; immediately if it already was."""
        finish, self._finish = self._finish, None
        if finish is None:
            return
        began = time.monotonic()
        self._transport._noted_absence(began)
        try:
            finish()
        except LateError as late:
            raise self._transport._reported(late, self._what, time.monotonic() - began) from None
        self._transport._last_heard = time.monotonic()


class Transport(ABC):
    """One process among several, and its communication with the others.

    A subclass implements the transfer of bytes (:meth:`_start`), how late ranks find each other (:meth:`_answers`) and
    how to end (:meth:`abort`). Everything here is collective: all ranks call the same methods in the same order. As a
    context manager, it makes an error of one rank end all of them, with one message.

    Attributes:
        rank: The number of this process.
        ranks: The number of processes.
        timeout: Limit in seconds on any wait.
        posts: The number of batches of messages so far.
        large: Bytes from which an array is sent as a separate message, not packed with others.
        more_time: How to allow more time, in messages.
        resumes: How to continue after a failure, in messages; empty if that is not possible.
    """

    rank: int = 0
    ranks: int = 1
    timeout: float = TIMEOUT
    posts: int = 0
    large: float = math.inf
    more_time: str = "connect(timeout=...)"
    resumes: str = ""
    _agreed = False
    _last_heard: float | None = None
    _away, _back = 0.0, -math.inf
    _last: Pending | None = None

    @abstractmethod
    def _start(self, sends: Messages, receives: Messages, tag: int) -> Callable[[], None]:
        """Start to send and receive, and return a function that waits for completion.

        The function raises :class:`LateError` if the transfer does not end before the deadline, and may raise
        :class:`MisfitError` as soon as a message with another tag or length arrives.
        """

    @abstractmethod
    def _answers(self, text: str, grace: float) -> dict[int, str]:
        """Send a text to all ranks and return those received within ``grace`` seconds; connections may be broken.

        It raises :class:`LateError` if it can tell which rank has ended.
        """

    @abstractmethod
    def abort(self, code: int) -> None:
        """End this process now and, through the launcher, all others."""

    def buffer(self, array: Array) -> Any:
        """Return a buffer to send an array from, or receive into; it may be kept for an array that is reused.

        Args:
            array: A non-empty, contiguous array.
        """
        return array.reshape(-1).view(np.uint8)

    def post(self, sends: Messages, receives: Messages, what: str) -> Pending:
        """Start to send arrays to some ranks and to receive arrays from others.

        Arrays must not change until they are sent. One batch is in flight at a time: the next one waits for the end of
        the last.

        Args:
            sends: Ranks, and the buffer of an array for each; two for the same rank arrive in this order.
            receives: Ranks, and the buffer of an array to fill for each.
            what: A description of the messages, with dtypes and shapes. It becomes their tag, so that no other
                message is mistaken for them.

        Returns:
            The batch to wait for.
        """
        self.settle()
        self.posts += 1
        try:
            finish = self._start(sends, receives, _tag(what))
        except LateError as late:
            raise self._reported(late, what, 0.0) from None
        self._last = Pending(self, finish, what)
        return self._last

    def settle(self) -> None:
        """Wait for the end of the last batch; arrays that it sent may change afterwards."""
        if self._last is not None:
            self._last.wait()

    def swap(self, sends: Mapping[int, Array], receives: Mapping[int, Array], what: str) -> None:
        """Send and receive arrays as :meth:`post` does, and wait."""
        self.post(self._buffers(sends), self._buffers(receives), what).wait()

    def _buffers(self, arrays: Mapping[int, Array]) -> Messages:
        """Return messages of arrays; empty arrays are not sent."""
        return [(peer, self.buffer(array)) for peer, array in arrays.items() if array.size]

    def gather(self, array: Array, lengths: Sequence[int], to: int | None = None, what: str = "gather") -> list[Array]:
        """Return every rank's array, in the order of ranks.

        Args:
            array: The array of this rank.
            lengths: The length of every rank's first axis; dtype and the other axes are the same everywhere.
            to: The only rank to receive them; others get an empty list.
            what: What they are, in messages.
        """
        own = np.ascontiguousarray(array)
        what = f"{what} {own.dtype.str}{own.shape[1:]}"
        others = [rank for rank in range(self.ranks) if rank != self.rank]
        if to not in (None, self.rank):
            self.swap({to: own}, {}, what)
            return []
        parts = {rank: np.empty((lengths[rank], *own.shape[1:]), dtype=own.dtype) for rank in others}
        self.swap({} if to is not None else dict.fromkeys(others, own), parts, what)
        return [own if rank == self.rank else parts[rank] for rank in range(self.ranks)]

    def each(self, array: Array, what: str = "gather") -> Array:
        """Return the stacked arrays of all ranks, of equal shapes; messages say what they are."""
        return np.concatenate(self.gather(np.asarray(array)[None], [1] * self.ranks, what=what))

    def any(self, flag: bool) -> bool:
        """Whether the flag is set on any rank."""
        return self.any_of(flag)[0]

    def any_of(self, *flags: bool) -> list[bool]:
        """Whether each flag is set on any rank."""
        if self.ranks == 1:
            return list(flags)
        return [bool(column.any()) for column in self.each(np.array(flags)).T]

    def texts(self, text: str) -> list[str]:
        """Return every rank's text."""
        own = np.array(list(text.encode()), dtype=np.uint8)
        lengths = self.each(np.array(own.size)).tolist()
        return [part.tobytes().decode() for part in self.gather(own, lengths)]

    def broadcast(self, text: str) -> str:
        """Broadcast a text from rank 0; the argument is ignored on other ranks."""
        return self.texts(text if self.rank == 0 else "")[0] if self.ranks > 1 else text

    @contextmanager
    def together(self) -> Iterator[None]:
        """Raise an error of any rank on all ranks; the first of them reports it."""
        found: D3GDError | None = None
        try:
            yield
        except D3GDError as error:
            if self.ranks == 1:
                raise
            found = error
        if self.ranks == 1:
            return
        messages = self.texts(str(found or ""))
        first = next((rank for rank, message in enumerate(messages) if message), None)
        if first is None:
            return
        self._agreed = True
        if found is not None and first == self.rank:
            raise found
        raise ToldElsewhereError(f"rank {first}: {messages[first]}")

    def require_same(self, text: str, what: str) -> None:
        """Raise an error, on all ranks, unless all ranks have the same text."""
        if self.ranks == 1:
            return
        with self.together():
            texts = self.texts(text)
            other = next((rank for rank in range(self.ranks) if texts[rank] != texts[0]), None)
            if other is not None:
                raise TransportError(f"rank {other} has {what} other than rank 0; start all ranks with the same")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or self.ranks == 1 or isinstance(error, (SystemExit, InterruptedTogetherError)):
            return
        if isinstance(error, KeyboardInterrupt):
            self.abort(_INTERRUPTED)
        elif isinstance(error, ToldElsewhereError):
            if not self._agreed:
                time.sleep(1.0)  # the rank with the message prints it first
        elif isinstance(error, D3GDError):
            where = f"rank {self.rank}: " if self.rank > 0 else ""
            print(f"error: {where}{' '.join(str(error).splitlines())}", file=sys.stderr, flush=True)
        else:
            print("".join(traceback.format_exception(error)), file=sys.stderr, flush=True)
        if not self._agreed:
            time.sleep(_PASSED_ON)
            self.abort(_FAILED)
        raise SystemExit(_USAGE)

    def require_same_versions(self) -> None:
        """Raise an error, on all ranks, unless all ranks have the same versions of what results depend on."""
        if self.ranks == 1:
            return
        with self.together():
            texts = self.texts(json.dumps(versions()))
            first = json.loads(texts[0])
            for rank, text in enumerate(texts):
                for name, version in json.loads(text).items():
                    if version != first[name]:
                        raise TransportError(
                            f"rank {rank} has {name} {version} and rank 0 has {first[name]}; install the same "
                            "everywhere, or results depend on who computes them"
                        )

    def _reported(self, late: LateError, what: str, waited: float) -> TransportError:
        """Find the ranks that do not answer or whose messages do not match; the first rank that knows reports it."""
        misfit = isinstance(late, MisfitError)
        # Ranks post in the same order: equal counts should mean equal messages.
        found = {self.rank: f"{self.posts} {what}"}
        try:
            found |= self._answers(found[self.rank], min(_MISFIT if misfit else _GRACE, self.timeout))
        except LateError as ended:
            late = ended
        if len(found) == 1 and not misfit and time.monotonic() - self._back < 2 * self.timeout + _GRACE:
            return TransportError(
                f"this rank sent nothing for {self._away:.0f} s, longer than the {self.timeout:g} s that others wait, "
                f"so they have ended; let it compute less between messages, or allow more time ({self.more_time})"
            )
        silent = self._silent(found) if len(found) > 1 else [late.peer]
        if late.broken and late.peer in silent:
            silent = [late.peer]  # others may only be busy
        advice = Advice(self.more_time, self.resumes)
        return self._reported_by_first(found, explained(late, what, waited, found, silent, advice))

    def _noted_absence(self, now: float) -> None:
        """Note that this rank was away for longer than others wait; some messages from before may still arrive."""
        if self._last_heard is not None and now - self._last_heard > self.timeout:
            self._away, self._back = now - self._last_heard, now

    def _silent(self, found: Mapping[int, str]) -> list[int]:
        return [rank for rank in range(self.ranks) if rank not in found]

    def _reported_by_first(self, found: Mapping[int, str], message: str) -> TransportError:
        """Return the error of this rank; the first rank that answered prints the message."""
        return (TransportError if self.rank == min(found) else ToldElsewhereError)(message)


def leave(code: int) -> None:
    """End the process without finalization, which would wait for other ranks."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def versions() -> dict[str, str]:
    """Return the versions on which results depend."""
    return {"d3gd": __version__, "numpy": np.__version__, "scipy": version("scipy")}


@lru_cache(maxsize=256)
def _tag(what: str) -> int:
    return zlib.crc32(what.encode()) % _TAGS
