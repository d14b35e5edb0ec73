"""Ranks that are threads of one process: for checks, where starting processes would take longer than the work."""

import queue
import threading
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from d3gd.errors import TransportError
from d3gd.transports.base import LateError, Messages, MisfitError, Transport

T = TypeVar("T")


class Thread(Transport):
    """A rank that is a thread.

    Args:
        rank: Its number.
        ranks: How many there are.
        wires: A queue for every pair of ranks, shared by all.
        timeout: How many seconds any wait may take.
        large: From how many bytes on an array is a message of its own.
    """

    def __init__(
        self,
        rank: int,
        ranks: int,
        wires: dict[tuple[int, int], "queue.SimpleQueue[Any]"],
        *,
        timeout: float,
        large: float,
    ) -> None:
        self.rank, self.ranks, self.timeout, self.large, self._wires = rank, ranks, timeout, large, wires

    def _start(self, sends: Messages, receives: Messages, tag: int) -> Callable[[], None]:
        for peer, buffer in sends:
            self._wires[self.rank, peer].put((tag, buffer.copy()))

        def finish() -> None:
            for peer, buffer in receives:
                try:
                    came, sent = self._wires[peer, self.rank].get(timeout=self.timeout)
                except queue.Empty:
                    raise LateError(peer) from None
                if (came, len(sent)) != (tag, len(buffer)):
                    raise MisfitError(peer)
                buffer[:] = sent

        return finish

    def _answers(self, text: str, grace: float) -> dict[int, str]:
        return {}

    def abort(self, code: int) -> NoReturn:
        """End this rank; the others end at their deadline."""
        raise SystemExit(code)


def on_threads(ranks: int, work: Callable[[Transport], T], *, timeout: float = 20.0, large: float = 1 << 16) -> list[T]:
    """Return what ``work`` returns on each of so many ranks.

    Args:
        ranks: How many.
        work: What each does, given its transport.
        timeout: How many seconds a rank waits for another.
        large: From how many bytes on an array is a message of its own.

    Example:
        >>> on_threads(3, lambda rank: rank.each(rank.rank).tolist())
        [[0, 1, 2], [0, 1, 2], [0, 1, 2]]
    """
    wires = {(a, b): queue.SimpleQueue[Any]() for a in range(ranks) for b in range(ranks)}
    results: dict[int, T] = {}
    errors: dict[int, BaseException] = {}

    def perform(rank: int) -> None:
        try:
            results[rank] = work(Thread(rank, ranks, wires, timeout=timeout, large=large))
        except BaseException as error:  # told to the caller, below
            errors[rank] = error

    threads = [threading.Thread(target=perform, args=(rank,), daemon=True) for rank in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # A rank that waited in vain knows less than the one it waited for.
    for error in sorted(errors.values(), key=lambda error: isinstance(error, TransportError)):
        raise error
    return [results[rank] for rank in range(ranks)]
