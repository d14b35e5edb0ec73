"""torch.distributed: sends and receives that return at once, with gloo on the CPU or nccl between GPUs."""

import contextlib
import os
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from d3gd.arrays import Array
from d3gd.errors import TransportError
from d3gd.transports.base import TIMEOUT, LateError, Messages, Transport, leave

_SLACK = timedelta(seconds=10)  # between our deadlines and those of torch, so that ours come first
_NAP = 0.02  # seconds


class TorchDistributed(Transport):
    """The processes that torchrun started, or those of a process group that is there already.

    Where every process of a machine has a GPU, nccl carries the messages, copied there and back; else gloo does.

    Args:
        timeout: How many seconds any wait may take.
    """

    large = 1 << 20  # with gloo on loopback, packing costs what another message costs up to here

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
                gpus = torch.cuda.device_count() if distributed.is_nccl_available() else 0
                backend = "nccl" if 0 < int(os.environ.get("LOCAL_WORLD_SIZE", "1")) <= gpus else "gloo"
                distributed.init_process_group(backend, timeout=timedelta(seconds=timeout) + _SLACK)
        except (RuntimeError, ValueError) as error:
            raise TransportError(f"torch.distributed did not start ({error}); start it with torchrun") from None
        self.rank, self.ranks, self.timeout = distributed.get_rank(), distributed.get_world_size(), timeout
        nccl = distributed.get_backend() == "nccl"
        self._device: Any = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if nccl else None
        # The launcher's key-value store outlives broken connections: there late ranks find each other.
        self._store: Any = self._distributed.distributed_c10d._get_default_store()

    def buffer(self, array: Array) -> Any:
        """Return an array's bytes as a tensor."""
        return self._torch.from_numpy(super().buffer(array))

    def _start(self, sends: Messages, receives: Messages, tag: int) -> Callable[[], None]:
        d, peers = self._distributed, [peer for peer, _ in (*receives, *sends)]
        tensors = [tensor for _, tensor in (*receives, *sends)]
        if self._device is not None:
            tensors = [tensor.to(self._device) for tensor in tensors]
        moves = [d.irecv] * len(receives) + [d.isend] * len(sends)
        try:
            if self._device is None:  # with gloo, one by one is faster
                works = [move(tensor, peer, tag=tag) for move, tensor, peer in zip(moves, tensors, peers, strict=True)]
            else:  # with nccl, one by one they would wait for each other
                works = d.batch_isend_irecv(list(map(d.P2POp, moves, tensors, peers)))
        except RuntimeError:
            raise LateError(peers[0]) from None

        def finish() -> None:
            deadline = time.monotonic() + self.timeout
            for peer, work in zip(peers, works, strict=False):  # nccl has one for all
                try:
                    work.wait(timedelta(seconds=max(deadline - time.monotonic(), 1e-3)))
                except RuntimeError:
                    raise LateError(peer) from None
            if self._device is not None:
                for (_, into), tensor in zip(receives, tensors, strict=False):
                    into.copy_(tensor)

        return finish

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
