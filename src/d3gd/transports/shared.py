"""Memory that the processes of one machine share, so that messages need not go through its network interface.

Each process writes its messages to memory of its own, and tells those that hear it where, through a pipe; they copy
them and confirm. Memory and pipes have no names in any folder, and are gone with the last process that uses them.
"""

import mmap
import os
import secrets
import select
import struct
import time
import weakref
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from d3gd.transports.failures import LateError, MisfitError

Bytes: TypeAlias = npt.NDArray[np.uint8]

_NAME = "d3gd"  # of the memory, by which others recognize it before they open it
_LINE = 64  # bytes of a cache line, to which messages are aligned
_TOKEN = 16  # bytes at its start, by which they know it is that of this run
_WORD = struct.Struct("qqq")  # tag, place and size of a message; a size of -1 confirms that it was copied


class Shared:
    """The memory of this process, and that of others on its machine.

    Args:
        rank: This process.
        ranks: The number of processes.

    Attributes:
        address: Where others find this process's memory and pipes; empty if the system has no such thing.
    """

    def __init__(self, rank: int, ranks: int) -> None:
        self.address, self._rank, self._own = "", rank, np.empty(0, dtype=np.uint8)
        self._memory: dict[int, tuple[int, Bytes]] = {}
        self._to: dict[int, int] = {}  # pipes, by rank
        self._from: dict[int, int] = {}
        self._ends: dict[int, int] = {}  # of pipes from others, which they open
        if hasattr(os, "memfd_create"):
            self._file, token = self._kept(os.memfd_create(_NAME)), secrets.token_bytes(_TOKEN)
            os.write(self._file, token)
            for peer in range(ranks):
                if peer != rank:
                    self._from[peer], self._ends[peer] = os.pipe()
                    self._kept(self._from[peer])
            ends = " ".join(str(self._ends.get(peer, -1)) for peer in range(ranks))
            self.address = f"{os.getpid()} {self._file} {token.hex()} {ends}"

    def _kept(self, file: int) -> int:
        """Close a file together with this object."""
        weakref.finalize(self, os.close, file)
        return file

    def open(self, rank: int, address: str) -> bool:
        """Open the memory of another rank, and its pipe; return whether they are there."""
        if not (self.address and address):
            return False
        process, file, token, *ends = address.split()
        files = f"/proc/{int(process)}/fd"
        try:
            # On another machine this process may be any, and opening any file of its may wait, or do something.
            if not str(Path(f"{files}/{int(file)}").readlink()).startswith(f"/memfd:{_NAME}"):
                return False
            theirs = self._kept(os.open(f"{files}/{int(file)}", os.O_RDONLY))
            if os.pread(theirs, _TOKEN, 0).hex() != token:
                return False
            self._to[rank] = self._kept(os.open(f"{files}/{int(ends[self._rank])}", os.O_WRONLY | os.O_NONBLOCK))
            os.set_blocking(self._to[rank], True)
        except OSError:  # on another machine, of another user, or in another container
            return False
        self._memory[rank] = theirs, np.empty(0, dtype=np.uint8)
        return True

    def opened(self) -> None:
        """Note that all ranks have opened what they can: from now on, a pipe ends with the rank that writes to it."""
        for end in self._ends.values():
            os.close(end)
        self._ends = {}

    def send(self, messages: Sequence[tuple[int, Bytes]], tag: int) -> None:
        """Write messages for some ranks in place of those before, and tell them where; each is written once."""
        each = {(message.ctypes.data, message.size): message for _, message in messages}
        *starts, end = np.cumsum([_LINE, *(-(-size // _LINE) * _LINE for _, size in each)]).tolist()
        if end > self._own.size:
            os.ftruncate(self._file, end)
            self._own = np.frombuffer(mmap.mmap(self._file, end), dtype=np.uint8)
        places = dict(zip(each, starts, strict=True))
        for key, message in each.items():
            self._own[places[key] : places[key] + message.size] = message
        for rank, message in messages:
            self._tell(rank, tag, places[message.ctypes.data, message.size], message.size)

    def receive(self, rank: int, tag: int, into: Bytes, deadline: float) -> None:
        """Copy the next message of another rank."""
        place = self._told(rank, tag, into.size, deadline)
        file, theirs = self._memory[rank]
        if place + into.size > theirs.size:
            whole = mmap.mmap(file, os.fstat(file).st_size, access=mmap.ACCESS_READ)
            theirs = np.frombuffer(whole, dtype=np.uint8)
            self._memory[rank] = file, theirs
        into[:] = theirs[place : place + into.size]

    def confirm(self, ranks: Collection[int], tag: int) -> None:
        """Tell some ranks that their messages have been copied."""
        for rank in ranks:
            self._tell(rank, tag, 0, -1)

    def confirmed(self, ranks: Collection[int], tag: int, deadline: float) -> None:
        """Wait until some ranks have copied what they were sent; then the next messages may be written."""
        for rank in ranks:
            self._told(rank, tag, -1, deadline)

    def _tell(self, rank: int, *word: int) -> None:
        try:
            os.write(self._to[rank], _WORD.pack(*word))
        except OSError:
            raise LateError(rank, broken=True) from None

    def _told(self, rank: int, tag: int, size: int, deadline: float) -> int:
        """Return the place that a rank tells next; its message must have a tag and a size."""
        poll, left = select.poll(), max(deadline - time.monotonic(), 0)
        poll.register(self._from[rank], select.POLLIN)
        if not poll.poll(1000 * left):
            raise LateError(rank)
        word = os.read(self._from[rank], _WORD.size)
        if len(word) < _WORD.size:
            raise LateError(rank, broken=True)
        found, place, length = _WORD.unpack(word)
        if (found, length) != (tag, size):
            raise MisfitError(rank)
        return int(place)
