"""A deadline for calls that hold the interpreter lock, such as MPI_Init: only another process can end them."""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

_PASSED_ON = 0.25  # seconds for the launcher to forward the message, before it notices the end


@contextmanager
def deadline(seconds: float, message: str) -> Iterator[None]:
    """Print a message and kill this process unless the block ends before the deadline.

    Args:
        seconds: The deadline.
        message: The text to print.
    """
    # The watcher runs as a separate script: it must start quickly and ignore Ctrl-C.
    watcher = subprocess.Popen(
        [sys.executable, "-I", "-S", __file__, str(os.getpid()), str(seconds), message],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield
    finally:
        watcher.communicate()


def _watch(process: int, seconds: float, message: str) -> None:
    """Kill a process unless it closes our standard input, or ends, before the deadline."""
    closed, _, _ = select.select([sys.stdin], [], [], seconds)
    if not closed:
        print(message, file=sys.stderr, flush=True)
        time.sleep(_PASSED_ON)
        os.kill(process, signal.SIGKILL)


if __name__ == "__main__":
    _watch(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3])
