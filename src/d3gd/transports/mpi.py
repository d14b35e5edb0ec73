"""MPI, through mpi4py: buffers, never pickled objects, and non-blocking, so that every wait has a deadline."""

import os
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from d3gd.arrays import Array
from d3gd.errors import TransportError
from d3gd.transports.base import TIMEOUT, LateError, Transport

_ROLL_CALL = (1 << 15) - 1  # a tag of its own, on a communicator of its own
_TEXT = 512  # bytes of a roll call's message
_EAGER = 100  # polls before a wait begins to sleep between them
_NAP = 5e-5  # seconds


class MPI(Transport):
    """The processes that mpiexec started.

    Args:
        timeout: How many seconds any wait may take.
    """

    def __init__(self, *, timeout: float = TIMEOUT) -> None:
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

    def _move(self, sends: Mapping[int, Array], receives: Mapping[int, Array], tag: int) -> None:
        byte = self._mpi.BYTE
        requests = [self._world.Irecv([array, byte], source=peer, tag=tag) for peer, array in receives.items()]
        requests += [self._world.Isend([array, byte], dest=peer, tag=tag) for peer, array in sends.items()]
        if not self._done(requests, self.timeout):
            peers = [*receives, *sends]
            raise LateError(next(p for p, request in zip(peers, requests, strict=True) if not request.Test()))

    def _done(self, requests: list[Any], seconds: float) -> bool:
        deadline, polls = time.monotonic() + seconds, 0
        while not self._mpi.Request.Testall(requests):
            polls += 1
            if polls < _EAGER:
                os.sched_yield()  # there may be more ranks than cores, and then the other one needs this core
            else:
                time.sleep(_NAP)
            if time.monotonic() > deadline:
                return False
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
