"""torch.distributed: non-blocking sends and receives, with gloo on the CPU or nccl between GPUs."""

import os
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from d3gd.arrays import Array
from d3gd.errors import TransportError
from d3gd.transports.base import LONGEST, TIMEOUT, LateError, Messages, Transport, leave, named
from d3gd.transports.shared import Shared

_SLACK = timedelta(seconds=10)  # between our deadlines and torch's, so that ours expire first
_NAP = 0.02  # seconds
_EARLY = 0.1  # seconds before its deadline at which a wait that fails has met a broken connection


class TorchDistributed(Transport):
    """The processes that torchrun started, or those of an existing process group.

    If every process of a machine has a GPU, messages use nccl, with copies to and from the GPU; else gloo. Between
    processes of one machine they go through memory that these share instead of gloo, if the system allows it.

    Args:
        timeout: Limit in seconds on any wait.
        more_time: How to allow more time, in messages.
    """

    large = 1 << 20  # with gloo on loopback, packing is cheaper than another message up to here

    def __init__(self, *, timeout: float = TIMEOUT, more_time: str = Transport.more_time) -> None:
        try:
            import torch
            from torch import distributed
        except ImportError as error:
            raise TransportError(
                f"torch.distributed needs PyTorch ({error}); install it with: pip install 'd3gd[torch]'"
            ) from None
        self._torch: Any = torch
        self._distributed: Any = distributed
        self._store: Any
        self.timeout, self.more_time = timeout, more_time
        torch.set_num_threads(1)
        try:
            if distributed.is_initialized():
                self.rank, self.ranks = distributed.get_rank(), distributed.get_world_size()
                self._store = self._side_store()
            else:
                self._begin()
        except (RuntimeError, ValueError) as error:
            raise TransportError(self._why_not(error)) from None
        nccl = distributed.get_backend() == "nccl"
        self._device: Any = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if nccl else None
        self._memory, self._near = Shared(self.rank, self.ranks), set[int]()
        if self._device is None and self.ranks > 1:
            with self:
                self._near = self._neighbours()

    def _begin(self) -> None:
        """Connect to the other ranks as the environment specifies, and start the process group."""
        d, within = self._distributed, timedelta(seconds=min(self.timeout, LONGEST)) + _SLACK
        store, self.rank, self.ranks = next(d.rendezvous("env://", timeout=within))
        # The launcher's key-value store survives broken connections, so that late ranks find each other.
        self._store = d.PrefixStore("d3gd", store)
        with self:
            answers = {self.rank: "", **self._roll_call("started", "", self.timeout)}
            if silent := self._silent(answers):
                raise self._reported_by_first(
                    answers,
                    f"{named(silent)} did not start within {self.timeout:g} s: ended, hanging or slow to start; check "
                    f"its output, or allow more time ({self.more_time})",
                )
        gpus = self._torch.cuda.device_count() if d.is_nccl_available() else 0
        backend = "nccl" if 0 < int(os.environ.get("LOCAL_WORLD_SIZE", "1")) <= gpus else "gloo"
        d.init_process_group(
            backend, store=d.PrefixStore("group", store), rank=self.rank, world_size=self.ranks, timeout=within
        )

    def _why_not(self, error: Exception) -> str:
        """Return in words why the ranks did not meet."""
        found, names = " ".join(str(error).split()), ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE")
        missing = [name for name in names if name not in os.environ]
        if missing:
            return f"torch.distributed did not start ({found}): {missing[0]} is not set; start it with torchrun"
        place = ":".join(os.environ[name] for name in names[:2])
        if isinstance(error, self._distributed.DistStoreError | self._distributed.DistNetworkError):
            return (
                f"rank {os.environ['RANK']} met nobody at {place} within {self.timeout:g} s ({found}); start rank 0 "
                f"there, correct MASTER_ADDR and MASTER_PORT, or allow more time ({self.more_time})"
            )
        return f"torch.distributed did not start at {place} ({found}); are all ranks started, with the same addresses?"

    def _side_store(self) -> Any:
        """Return a connection to the store of an existing process group; None if it is not known."""
        d = self._distributed
        try:
            address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
            return d.PrefixStore("d3gd", d.TCPStore(address, port, wait_for_workers=False, timeout=_SLACK))
        except (KeyError, RuntimeError, ValueError):
            return None

    def buffer(self, array: Array) -> Any:
        """Return an array's bytes as a tensor."""
        return self._torch.from_numpy(super().buffer(array))

    def _start(self, sends: Messages, receives: Messages, tag: int) -> Callable[[], None]:
        near = self._near
        shared = [(peer, into.numpy()) for peer, into in receives if peer in near]
        written = [(peer, rows.numpy()) for peer, rows in sends if peer in near]
        far, from_far = ([(peer, tensor) for peer, tensor in some if peer not in near] for some in (sends, receives))
        peers, works, arrive = self._begun(far, from_far, tag)
        if written:
            self._memory.send(written, tag)

        def finish() -> None:
            deadline = time.monotonic() + min(self.timeout, LONGEST)
            for peer, into in shared:
                self._memory.receive(peer, tag, into, deadline)
            self._memory.confirm({peer for peer, _ in shared}, tag)
            for peer, work in zip(peers, works, strict=False):  # nccl has a single one
                try:
                    work.wait(timedelta(seconds=max(deadline - time.monotonic(), 1e-3)))
                except RuntimeError:
                    raise LateError(peer, broken=time.monotonic() < deadline - _EARLY) from None
            for into, tensor in arrive:
                into.copy_(tensor)
            self._memory.confirmed({peer for peer, _ in written}, tag, deadline)

        return finish

    def _begun(
        self, sends: Messages, receives: Messages, tag: int
    ) -> tuple[list[int], list[Any], list[tuple[Any, Any]]]:
        """Start to send and receive tensors; return with whom, the works, and the copies to make at their end."""
        d, peers = self._distributed, [peer for peer, _ in (*receives, *sends)]
        tensors = [tensor for _, tensor in (*receives, *sends)]
        if self._device is not None:
            tensors = [tensor.to(self._device) for tensor in tensors]
        moves = [d.irecv] * len(receives) + [d.isend] * len(sends)
        try:
            if self._device is None:  # faster one by one with gloo
                works = [move(tensor, peer, tag=tag) for move, tensor, peer in zip(moves, tensors, peers, strict=True)]
            else:  # with nccl, single calls would wait for each other
                works = d.batch_isend_irecv(list(map(d.P2POp, moves, tensors, peers)))
        except RuntimeError:
            raise LateError(peers[0], broken=True) from None
        copies = zip([into for _, into in receives], tensors, strict=False) if self._device is not None else ()
        return peers, works, list(copies)

    def _neighbours(self) -> set[int]:
        """Return the ranks on this machine that can read this one's memory, and whose memory it can read."""
        addresses = self.texts(self._memory.address)
        opened = [rank for rank, at in enumerate(addresses) if rank != self.rank and self._memory.open(rank, at)]
        theirs = self.texts(" ".join(map(str, opened)))
        self._memory.opened()
        return {rank for rank in opened if str(self.rank) in theirs[rank].split()}

    def _answers(self, text: str, grace: float) -> dict[int, str]:
        return self._roll_call("late", text, grace, known=True)

    def _roll_call(self, why: str, text: str, seconds: float, *, known: bool = False) -> dict[int, str]:
        """Store a text under a name and this rank, and return those of other ranks that arrive before the deadline.

        Args:
            why: The name.
            text: The text.
            seconds: The deadline.
            known: Whether the store has worked: if it does no longer, the rank that holds it has ended.
        """
        deadline, answers = time.monotonic() + seconds, dict[int, str]()
        if self._store is None:
            return answers
        try:
            self._store.set(f"{why}/{self.rank}", text)
            while True:
                for peer in range(self.ranks):
                    key = f"{why}/{peer}"
                    if peer != self.rank and peer not in answers and self._store.check([key]):
                        answers[peer] = self._store.get(key).decode()
                if len(answers) == self.ranks - 1 or time.monotonic() > deadline:
                    break
                time.sleep(_NAP)
        except RuntimeError:
            held_by_launcher = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
            if known and self.rank > 0 and not held_by_launcher:
                raise LateError(0, broken=True) from None
        return answers

    def abort(self, code: int) -> None:
        """End this rank; torchrun ends the others."""
        leave(code)
