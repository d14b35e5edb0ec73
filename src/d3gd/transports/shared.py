"""Memory that the processes of one machine share, so that large messages need not go through its network interface.

Each process writes its messages to memory of its own, from where those that hear it copy them. It has no name in any
folder, and is gone with the last process that uses it.
"""

import mmap
import os
import secrets
import weakref
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Bytes: TypeAlias = npt.NDArray[np.uint8]

_LINE = 64  # bytes of a cache line, to which messages are aligned
_TOKEN = 16  # bytes at the start, by which others recognize the memory


class Shared:
    """The memory of this process, and that of others on its machine.

    Attributes:
        address: Where others find this process's memory; empty if the system has no such thing.
    """

    def __init__(self) -> None:
        self.address, self._own = "", np.empty(0, dtype=np.uint8)
        self._others: dict[int, tuple[int, Bytes]] = {}
        if hasattr(os, "memfd_create") and hasattr(os, "pread"):
            self._file = os.memfd_create("d3gd")
            token = secrets.token_bytes(_TOKEN)
            weakref.finalize(self, os.close, self._file)
            os.write(self._file, token)
            self.address = f"{os.getpid()} {self._file} {token.hex()}"

    def open(self, rank: int, address: str) -> bool:
        """Open the memory of another rank; return whether it is there."""
        if not (self.address and address):
            return False
        process, file, token = address.split()
        try:
            theirs = os.open(f"/proc/{int(process)}/fd/{int(file)}", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:  # on another machine, of another user, or in another container
            return False
        if os.pread(theirs, _TOKEN, 0).hex() != token:
            os.close(theirs)
            return False
        weakref.finalize(self, os.close, theirs)
        self._others[rank] = theirs, np.empty(0, dtype=np.uint8)
        return True

    def write(self, messages: Sequence[Bytes]) -> list[int]:
        """Write messages in place of those before, and return where; one to several ranks is written once."""
        each = {(message.ctypes.data, message.size): message for message in messages}
        *starts, end = np.cumsum([_LINE, *(-(-size // _LINE) * _LINE for _, size in each)]).tolist()
        if end > self._own.size:
            os.ftruncate(self._file, end)
            self._own = np.frombuffer(mmap.mmap(self._file, end), dtype=np.uint8)
        places = dict(zip(each, starts, strict=True))
        for key, message in each.items():
            self._own[places[key] : places[key] + message.size] = message
        return [places[message.ctypes.data, message.size] for message in messages]

    def read(self, rank: int, place: int, into: Bytes) -> None:
        """Copy a message of another rank."""
        file, theirs = self._others[rank]
        if place + into.size > theirs.size:
            whole = mmap.mmap(file, os.fstat(file).st_size, access=mmap.ACCESS_READ)
            theirs = np.frombuffer(whole, dtype=np.uint8)
            self._others[rank] = file, theirs
        into[:] = theirs[place : place + into.size]
