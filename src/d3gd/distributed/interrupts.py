"""Ctrl-C and SIGTERM in a run: all ranks stop at the same iteration, so that a checkpoint can be written."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NamedTuple

_ECHO = 2.0  # seconds in which a second signal is the first again, sent by both launcher and terminal
TERMINATED = 143  # the exit code of a process ended by SIGTERM


class TerminatedError(SystemExit):
    """SIGTERM: the run has written its checkpoint, and the process ends."""

    def __init__(self) -> None:
        super().__init__(TERMINATED)


class Noted(NamedTuple):
    """The signals that a rank has received since the start of a run."""

    interrupt: bool = False
    terminate: bool = False


@contextmanager
def noted(*, together: bool, terminate: bool) -> Iterator[Callable[[], Noted]]:
    """Defer signals until the run can stop.

    On several ranks signals are recorded instead of stopping one rank at an arbitrary point; a second Ctrl-C stops at
    once. In a single process, Ctrl-C is not changed, and SIGTERM raises :class:`TerminatedError` as Ctrl-C raises
    KeyboardInterrupt. This needs the main thread; a user's handler of SIGTERM is kept.

    Args:
        together: Whether there are several ranks.
        terminate: Whether to handle SIGTERM; else it ends the process as usual.

    Yields:
        A function that returns the signals so far.
    """
    interrupts: list[float] = []
    terminates: list[float] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        if interrupts and time.monotonic() - interrupts[0] > _ECHO:
            raise KeyboardInterrupt
        interrupts.append(time.monotonic())

    def end(number: int, frame: FrameType | None) -> None:
        terminates.append(time.monotonic())
        if not together and len(terminates) == 1:  # later ones must not interrupt the writing of the checkpoint
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
