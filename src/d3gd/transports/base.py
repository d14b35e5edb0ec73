"""What every way of moving bytes between processes has in common."""

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
from types import TracebackType
from typing import Any, Self, TypeAlias

import numpy as np

from d3gd.arrays import Array
from d3gd.errors import D3GDError, ToldElsewhereError, TransportError

Messages: TypeAlias = Sequence[tuple[int, Any]]  # a rank, and what Transport.buffer made of an array

TIMEOUT = 60.0  # seconds that a rank waits for another
LONGEST = 1e6  # seconds, eleven days: where a library wants a finite number; in milliseconds it still fits 32 bits
_PASSED_ON = 0.5  # seconds for the launcher to pass a message on, before it is told to end everyone
_GRACE = 5.0  # seconds, at most, in which late ranks find out who does not answer
_MISFIT = 1.0  # seconds in which ranks that find a misfit agree on who reports it
_TAGS = 1 << 15  # every MPI has at least so many
_FAILED, _USAGE, _INTERRUPTED = 1, 2, 130


class LateError(Exception):
    """A wait that took too long, or a connection that broke.

    Args:
        peer: The rank that was waited for.
    """

    def __init__(self, peer: int) -> None:
        super().__init__(peer)
        self.peer = peer


class InterruptedTogetherError(KeyboardInterrupt):
    """Ctrl-C, on which all ranks have agreed: none needs to end the others."""


class MisfitError(LateError):
    """A message other than the one that was waited for."""


class Pending:
    """Messages under way, one batch of a transport.

    Args:
        transport: Theirs.
        finish: Waits for all of them, and raises :class:`LateError` at the deadline.
        what: What they hold.
    """

    def __init__(self, transport: "Transport", finish: Callable[[], None], what: str) -> None:
        self._transport, self._what = transport, what
        self._finish: Callable[[], None] | None = finish

    def wait(self) -> None:
        """Return once everything has been sent and received; at once, if that was so before."""
        finish, self._finish = self._finish, None
        if finish is None:
            return
        try:
            finish()
        except LateError as late:
            raise self._transport._reported(late, self._what) from None


class Transport(ABC):
    """One process among several, and how it reaches the others.

    A child says how to move bytes (:meth:`_start`), how late ranks find each other (:meth:`_answers`) and how to end
    (:meth:`abort`). Everything here is collective: all ranks call the same methods in the same order. Used as a context
    manager, it lets an error of one rank end all of them, with one message.

    Attributes:
        rank: The number of this process.
        ranks: How many there are.
        timeout: How many seconds any wait may take.
        large: From how many bytes on an array is better a message of its own than packed with others.
    """

    rank: int = 0
    ranks: int = 1
    timeout: float = TIMEOUT
    large: float = math.inf
    _agreed = False
    _last: Pending | None = None
    _posts = 0

    @abstractmethod
    def _start(self, sends: Messages, receives: Messages, tag: int) -> Callable[[], None]:
        """Begin to send and receive, and return what waits for the end of it.

        That raises :class:`LateError` if the end does not come before the deadline, and may raise :class:`MisfitError`
        as soon as a message with another tag or length arrives instead of one of these.
        """

    @abstractmethod
    def _answers(self, text: str, grace: float) -> dict[int, str]:
        """Tell all ranks a text and return those that arrive within ``grace`` seconds; the wires may be broken."""

    @abstractmethod
    def abort(self, code: int) -> None:
        """End this process now, and with it, by way of the launcher, all others."""

    def buffer(self, array: Array) -> Any:
        """Return what messages are sent from, or received into; for memory that is used again, it may be kept.

        Args:
            array: Not empty, and contiguous in memory.
        """
        return array.reshape(-1).view(np.uint8)

    def post(self, sends: Messages, receives: Messages, what: str) -> Pending:
        """Begin to send arrays to some ranks and to fill arrays with what others send.

        Until the end of it, what is sent must stay as it is. One batch is under way at a time: the next one begins with
        the end of the last.

        Args:
            sends: Ranks, and the buffer of an array for each; two for the same rank arrive in this order.
            receives: Ranks, and the buffer of an array to fill for each.
            what: What the messages hold, dtypes and shapes included. It becomes their tag, so that nothing else is ever
                taken for them.

        Returns:
            What to wait for.
        """
        self.settle()
        self._posts += 1
        try:
            finish = self._start(sends, receives, _tag(what))
        except LateError as late:
            raise self._reported(late, what) from None
        self._last = Pending(self, finish, what)
        return self._last

    def settle(self) -> None:
        """Wait for the end of the last batch; what it sent may change from then on."""
        if self._last is not None:
            self._last.wait()

    def swap(self, sends: Mapping[int, Array], receives: Mapping[int, Array], what: str) -> None:
        """Send an array to some ranks and fill an array with what others send, as :meth:`post` does, and wait."""
        self.post(self._buffers(sends), self._buffers(receives), what).wait()

    def _buffers(self, arrays: Mapping[int, Array]) -> Messages:
        """Return messages of arrays; of empty ones nothing is sent."""
        return [(peer, self.buffer(array)) for peer, array in arrays.items() if array.size]

    def gather(self, array: Array, lengths: Sequence[int], to: int | None = None) -> list[Array]:
        """Return every rank's array, in the order of ranks.

        Args:
            array: This rank's.
            lengths: The length of every rank's first axis; dtype and the other axes are the same everywhere.
            to: The only rank that wants them; others get an empty list.
        """
        own = np.ascontiguousarray(array)
        what = f"gather {own.dtype.str}{own.shape[1:]}"
        others = [rank for rank in range(self.ranks) if rank != self.rank]
        if to not in (None, self.rank):
            self.swap({to: own}, {}, what)
            return []
        parts = {rank: np.empty((lengths[rank], *own.shape[1:]), dtype=own.dtype) for rank in others}
        self.swap({} if to is not None else dict.fromkeys(others, own), parts, what)
        return [own if rank == self.rank else parts[rank] for rank in range(self.ranks)]

    def each(self, array: Array) -> Array:
        """Return the arrays of all ranks, of one shape, stacked."""
        return np.concatenate(self.gather(np.asarray(array)[None], [1] * self.ranks))

    def any(self, flag: bool) -> bool:
        """Whether any rank says so."""
        return self.any_of(flag)[0]

    def any_of(self, *flags: bool) -> list[bool]:
        """Whether any rank says so, for each flag."""
        if self.ranks == 1:
            return list(flags)
        return [bool(column.any()) for column in self.each(np.array(flags)).T]

    def texts(self, text: str) -> list[str]:
        """Return every rank's text."""
        own = np.array(list(text.encode()), dtype=np.uint8)
        lengths = self.each(np.array(own.size)).tolist()
        return [part.tobytes().decode() for part in self.gather(own, lengths)]

    def told(self, text: str) -> str:
        """Return the text of rank 0; what others pass does not matter."""
        return self.texts(text if self.rank == 0 else "")[0] if self.ranks > 1 else text

    @contextmanager
    def together(self) -> Iterator[None]:
        """Let an error that any rank meets inside be raised by all: the first of them with its message."""
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
                time.sleep(1.0)  # who has the message prints it first
        elif isinstance(error, D3GDError):
            where = f"rank {self.rank}: " if self.rank > 0 else ""
            print(f"error: {where}{' '.join(str(error).splitlines())}", file=sys.stderr, flush=True)
        else:
            print("".join(traceback.format_exception(error)), file=sys.stderr, flush=True)
        if not self._agreed:
            time.sleep(_PASSED_ON)
            self.abort(_FAILED)
        raise SystemExit(_USAGE)

    def _reported(self, late: LateError, what: str) -> TransportError:
        """Find out who does not answer, or what does not fit, and let the first of those who know say so."""
        misfit = isinstance(late, MisfitError)
        # Ranks post in the same order: those that have come equally far should be at the same thing.
        told = {self.rank: f"{self._posts} {what}"}
        told |= self._answers(told[self.rank], min(_MISFIT if misfit else _GRACE, self.timeout))
        silent = self._silent(told) if len(told) > 1 else [late.peer]
        posts = {rank: text.partition(" ")[0] for rank, text in told.items()}
        answers = {rank: text.partition(" ")[2] for rank, text in told.items()}
        pairs = [(a, b) for b in sorted(told) for a in sorted(told) if a < b and posts[a] == posts[b]]
        different = [(a, b) for a, b in pairs if answers[a] != answers[b]]
        if different:
            one, other = different[0]
            message = (
                f"rank {other} is at ({answers[other]}) while rank {one} is at ({answers[one]}); messages do not fit: "
                "give all ranks the same experiment"
            )
        elif misfit:
            message = f"what rank {late.peer} sent is not ({what}); give all ranks the same experiment"
        elif silent:
            message = (
                f"nothing came from {named(silent)} for {self.timeout:g} s: ended, hanging, very slow, or done with "
                "fewer steps; look there, or allow more time (--timeout); --resume goes on from the last checkpoint"
            )
        else:
            message = f"nothing that fits came from rank {late.peer} for {self.timeout:g} s; is the network working?"
        return self._told_by_first(told, message)

    def _silent(self, told: Mapping[int, str]) -> list[int]:
        return [rank for rank in range(self.ranks) if rank not in told]

    def _told_by_first(self, told: Mapping[int, str], message: str) -> TransportError:
        """Return the error of this rank, whose message the first of those that are there prints."""
        return (TransportError if self.rank == min(told) else ToldElsewhereError)(message)


def named(ranks: Sequence[int]) -> str:
    """Return ranks in words."""
    return f"rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))}"


def leave(code: int) -> None:
    """End the process without the farewells that would wait for other ranks."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


@lru_cache(maxsize=256)
def _tag(what: str) -> int:
    return zlib.crc32(what.encode()) % _TAGS
