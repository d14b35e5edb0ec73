"""Ranks as threads of one process: for checks, in which starting processes would take longer than the work."""

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
        ranks: The number of ranks.
        wires: A queue for every pair of ranks, shared by all.
        timeout: Limit in seconds on any wait.
        large: Bytes from which an array is a separate message.
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
    """Return the results of ``work`` on all ranks.

    Args:
        ranks: The number of ranks.
        work: The function to run on each rank, given its transport.
        timeout: Seconds that a rank waits for another.
        large: Bytes from which an array is a separate message.

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
        except BaseException as error:  # raised in the caller, below
            errors[rank] = error

    threads = [threading.Thread(target=perform, args=(rank,), daemon=True) for rank in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Prefer the error of the rank that failed to those of ranks that waited for it.
    for error in sorted(errors.values(), key=lambda error: isinstance(error, TransportError)):
        raise error
    return [results[rank] for rank in range(ranks)]
