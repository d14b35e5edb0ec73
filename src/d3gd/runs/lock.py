"""A lock for one process at a time in a folder, released when the process ends for any reason."""

import contextlib
import errno
import os
import platform
import sys
import warnings
from pathlib import Path

from d3gd.errors import RecordError

_WITHOUT = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)  # errors of file systems without locks

if sys.platform == "win32":
    import msvcrt

    def _acquire(file: int) -> None:
        os.lseek(file, 2**30, os.SEEK_SET)  # beyond the text, which others must read
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _acquire(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


class Lock:
    """A lock on a file that exists as long as the lock.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = self._opened()
        while not self.holds():  # the previous holder has just removed the file
            os.close(self._file)
            self._file = self._opened()
        with contextlib.suppress(OSError):  # a full disk: the lock is still held
            os.ftruncate(self._file, 0)
            os.lseek(self._file, 0, os.SEEK_SET)
            os.write(self._file, f"{os.getpid()} {platform.node()}\n".encode())

    def holds(self) -> bool:
        """Whether the file, and so the folder, still exists."""
        try:
            return os.path.samestat(os.fstat(self._file), self._path.stat())
        except OSError:
            return False

    def release(self) -> None:
        """Remove the file and release the lock; may be repeated, since a signal may interrupt it at any point."""
        if self.holds():
            with contextlib.suppress(OSError):
                self._path.unlink()
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)

    def _opened(self) -> int:
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise RecordError(
                f"{self._path.parent} cannot be written ({error.strerror}); choose another folder with --out"
            ) from error
        try:
            _acquire(file)
        except OSError as error:
            if error.errno in _WITHOUT:
                warnings.warn(
                    f"{self._path.parent} is on a file system without locks; start no second run in it", stacklevel=2
                )
                return file
            os.close(file)
            raise RecordError(
                f"{self._path.parent} is in use by {self._holder()}; wait for it, or choose another folder"
            ) from None
        return file

    def _holder(self) -> str:
        try:
            process, _, machine = self._path.read_text().strip().partition(" ")
        except (OSError, ValueError):
            process, machine = "", ""
        where = f" on {machine}" if machine and machine != platform.node() else ""
        return f"process {process}{where}" if process.isdecimal() else "another process"
