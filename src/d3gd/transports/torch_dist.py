"""torch.distributed with gloo on the CPU: batched sends and receives, one message per peer."""

import contextlib
import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from d3gd.arrays import Array
from d3gd.errors import TransportError
from d3gd.transports.base import TIMEOUT, LateError, Transport, leave

_SLACK = timedelta(seconds=10)  # between our deadlines and those of torch, so that ours come first
_NAP = 0.02  # seconds


class TorchDistributed(Transport):
    """The processes that torchrun started.

    Args:
        timeout: How many seconds any wait may take.
    """

    def __init__(self, *, timeout: float = TIMEOUT) -> None:
        try:
            import torch
            from torch import distributed
        except ImportError as error:
            raise TransportError(
                f"torch.distributed needs PyTorch ({error}); install it with: pip install 'd3gd[torch]'"
            ) from None
        self._torch: Any = torch
        self._distributed: Any = distributed
        torch.set_num_threads(1)
        try:
            if not distributed.is_initialized():
                distributed.init_process_group("gloo", timeout=timedelta(seconds=timeout) + _SLACK)
        except (RuntimeError, ValueError) as error:
            raise TransportError(f"torch.distributed did not start ({error}); start it with torchrun") from None
        self.rank, self.ranks, self.timeout = distributed.get_rank(), distributed.get_world_size(), timeout
        # The launcher's key-value store outlives broken connections: there late ranks find each other.
        self._store: Any = self._distributed.distributed_c10d._get_default_store()

    def _move(self, sends: Mapping[int, Array], receives: Mapping[int, Array], tag: int) -> None:
        d, tensor = self._distributed, self._torch.from_numpy
        operations = [d.P2POp(d.irecv, tensor(array), peer, None, tag) for peer, array in receives.items()]
        operations += [d.P2POp(d.isend, tensor(array), peer, None, tag) for peer, array in sends.items()]
        if not operations:
            return
        deadline = time.monotonic() + self.timeout
        peers = [*receives, *sends]
        works: list[Any] = []
        try:
            works = d.batch_isend_irecv(operations)
        except RuntimeError:
            raise LateError(peers[0]) from None
        for peer, work in zip(peers, works, strict=True):
            try:
                work.wait(timedelta(seconds=max(deadline - time.monotonic(), 1e-3)))
            except RuntimeError:
                raise LateError(peer) from None

    def _answers(self, text: str, grace: float) -> dict[int, str]:
        deadline, answers = time.monotonic() + grace, dict[int, str]()
        with contextlib.suppress(RuntimeError):
            self._store.set(f"d3gd/late/{self.rank}", text)
            while len(answers) < self.ranks - 1 and time.monotonic() < deadline:
                for peer in range(self.ranks):
                    key = f"d3gd/late/{peer}"
                    if peer != self.rank and peer not in answers and self._store.check([key]):
                        answers[peer] = self._store.get(key).decode()
                time.sleep(_NAP)
        return answers

    def abort(self, code: int) -> None:
        """End this rank; torchrun ends the others."""
        leave(code)
