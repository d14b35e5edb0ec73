"""Ctrl-C on several ranks: noted by each, obeyed by all at the same iteration."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_ECHO = 2.0  # seconds in which a second one is the first, passed on by the launcher as well as by the terminal


@contextmanager
def noted(wanted: bool) -> Iterator[Callable[[], bool]]:
    """Note Ctrl-C instead of being stopped by it wherever the code happens to be; a second one stops as usual.

    Args:
        wanted: Whether to; without, Ctrl-C stays what it is. Only a process's main thread can.

    Yields:
        Whether there was one.
    """
    first: list[float] = []

    def note(number: int, frame: FrameType | None) -> None:
        if first and time.monotonic() - first[0] > _ECHO:
            raise KeyboardInterrupt
        first.append(time.monotonic())

    if not wanted or threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(first)
    finally:
        signal.signal(signal.SIGINT, before)
