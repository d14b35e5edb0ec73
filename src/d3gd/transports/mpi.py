"""MPI, through mpi4py: non-blocking messages from buffers, without pickling, so that every wait has a deadline."""

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from d3gd.arrays import Array
from d3gd.errors import TransportError
from d3gd.transports.base import LONGEST, TIMEOUT, LateError, Messages, MisfitError, Transport
from d3gd.transports.deadline import deadline
from d3gd.transports.launch import mpi_rank

_ROLL_CALL = (1 << 15) - 1  # a separate tag on a separate communicator
_TEXT = 512  # bytes of a message in the poll of all ranks
_LOOKS = 100  # polls before a wait yields the core
_EAGER = 0.02  # seconds before a wait sleeps between polls
_NAP = 2e-4  # seconds
_TURN = 0.5  # seconds between the ranks' deadlines for the start: the first one ends all, so that only it prints
_TURNS = 20


class MPI(Transport):
    """The processes that mpiexec started.

    Args:
        timeout: Limit in seconds on any wait.
        more_time: How to allow more time, in messages.
    """

    large = 1 << 16  # measured with MPICH in shared memory: above, another message costs less than two copies

    def __init__(self, *, timeout: float = TIMEOUT, more_time: str = Transport.more_time) -> None:
        rank, self.more_time = mpi_rank(), more_time
        # MPI_Init waits for all ranks without limit, and mpiexec ignores a rank that ended before it.
        with deadline(
            min(timeout, LONGEST) + _TURN * min(rank, _TURNS),
            f"error: rank {rank}: MPI did not start within {timeout:g} s: another rank has ended, hangs or is slow to "
            f"start; check its output, or allow more time ({more_time})",
        ):
            try:
                from mpi4py import MPI as mpi  # noqa: N811 - mpi4py's own name for it is this class's
            except (ImportError, RuntimeError) as error:
                raise TransportError(
                    f"MPI needs mpi4py and an MPI ({error}); install both with: pip install 'd3gd[mpi]'"
                ) from None
            self._mpi: Any = mpi
            self._world: Any = mpi.COMM_WORLD.Dup()
            self._aside: Any = mpi.COMM_WORLD.Dup()
        self.rank, self.ranks, self.timeout = self._world.rank, self._world.size, timeout

    def buffer(self, array: Array) -> Any:
        """Return an array as bytes."""
        return [array, self._mpi.BYTE]

    def _start(self, sends: Messages, receives: Messages, tag: int) -> Callable[[], None]:
        mpi = self._mpi
        # Receive any tag and check it: a mismatch is detected at once, not at the deadline.
        requests = [self._world.Irecv(buffer, source=peer, tag=mpi.ANY_TAG) for peer, buffer in receives]
        requests += [self._world.Isend(buffer, dest=peer, tag=tag) for peer, buffer in sends]
        statuses = [mpi.Status() for _ in requests]

        def peers() -> list[int]:
            return [peer for peer, _ in (*receives, *sends)]

        def finish() -> None:
            try:
                if self._done(requests, self.timeout, statuses):
                    for (peer, (array, _)), status in zip(receives, statuses, strict=False):
                        if status.Get_tag() != tag or status.Get_count(mpi.BYTE) != array.nbytes:
                            raise MisfitError(peer)
                    return
            except mpi.Exception:  # longer than the array to receive it
                failed = [
                    p for p, status in zip(peers(), statuses, strict=True) if status.Get_error() == mpi.ERR_TRUNCATE
                ]
                raise MisfitError(failed[0] if failed else peers()[0]) from None
            raise LateError(next(p for p, request in zip(peers(), requests, strict=True) if not request.Test()))

        return finish

    def _done(self, requests: list[Any], seconds: float, statuses: list[Any] | None = None) -> bool:
        began, looks = time.monotonic(), 0
        while not self._mpi.Request.Testall(requests, statuses):
            looks += 1
            if looks < _LOOKS:
                continue
            waited = time.monotonic() - began
            if waited > seconds:
                return False
            if waited < _EAGER:
                os.sched_yield()  # with more ranks than cores, the other rank needs this core
            else:
                time.sleep(_NAP)
        return True

    def _answers(self, text: str, grace: float) -> dict[int, str]:
        byte, others = self._mpi.BYTE, [rank for rank in range(self.ranks) if rank != self.rank]
        own = np.frombuffer(text.encode()[:_TEXT].ljust(_TEXT), dtype=np.uint8)
        texts = {peer: np.zeros(_TEXT, dtype=np.uint8) for peer in others}
        requests = [self._aside.Irecv([texts[peer], byte], source=peer, tag=_ROLL_CALL) for peer in others]
        for peer in others:
            requests.append(self._aside.Isend([own, byte], dest=peer, tag=_ROLL_CALL))
        self._done(requests[: len(others)], grace)
        return {peer: text.tobytes().decode().strip() for peer, text in texts.items() if text.any()}

    def abort(self, code: int) -> None:
        """End all ranks."""
        self._mpi.COMM_WORLD.Abort(code)
