"""Ctrl-C and SIGTERM in a run: obeyed by all ranks at the same iteration, so that a checkpoint can be written."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NamedTuple

_ECHO = 2.0  # seconds in which a second one is the first, passed on by the launcher as well as by the terminal
TERMINATED = 143  # the exit code that a shell reports of a process which SIGTERM ended


class TerminatedError(SystemExit):
    """SIGTERM: a run has written its checkpoint, and the process is to end."""

    def __init__(self) -> None:
        super().__init__(TERMINATED)


class Noted(NamedTuple):
    """What a rank was asked for since a run began."""

    interrupt: bool = False
    terminate: bool = False


@contextmanager
def noted(*, together: bool, terminate: bool) -> Iterator[Callable[[], Noted]]:
    """Let signals wait for a moment at which a run can stop.

    On several ranks they are noted instead of stopping one rank wherever it happens to be; a second Ctrl-C stops as
    usual. Alone, Ctrl-C stays what it is, and SIGTERM raises :class:`TerminatedError` as Ctrl-C would raise
    KeyboardInterrupt. Only a process's main thread can do so; a handler of SIGTERM that the user has set stays.

    Args:
        together: Whether there are several ranks.
        terminate: Whether SIGTERM is of interest; else it ends the process as usual.

    Yields:
        What was noted so far.
    """
    interrupts: list[float] = []
    terminates: list[float] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        if interrupts and time.monotonic() - interrupts[0] > _ECHO:
            raise KeyboardInterrupt
        interrupts.append(time.monotonic())

    def end(number: int, frame: FrameType | None) -> None:
        terminates.append(time.monotonic())
        if not together and len(terminates) == 1:  # later ones must not disturb the writing of the checkpoint
            raise TerminatedError

    main = threading.current_thread() is threading.main_thread()
    handlers: dict[int, Callable[[int, FrameType | None], None]] = {}
    if main and together:
        handlers[signal.SIGINT] = interrupt
    if main and terminate and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        handlers[signal.SIGTERM] = end
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield lambda: Noted(bool(interrupts), bool(terminates))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
