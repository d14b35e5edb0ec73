"""SIGHUP: a site reads its file again, for neighbours that are new, have left, have moved or have a new key."""

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from d3gd.errors import D3GDError
from d3gd.sites.conversation import Neighbours
from d3gd.sites.session import Session
from d3gd.sites.settings import SiteFile, load

log = logging.getLogger("d3gd.sites")


def reread(file: SiteFile, session: Session) -> None:
    """Take over the neighbours from the site's file, and log what was done.

    Args:
        file: The file as it was read.
        session: The site.
    """
    try:
        found = load(file.path)
        if file.waiting.exact and _names(found.neighbours) != _names(file.neighbours):
            log.warning(
                "%s names other neighbours than before, and with infinite patience all sites would have to change at "
                "once; start a new session, or set a finite patience",
                file.path.name,
            )
            return
        session.hub.meet(found.neighbours)
        log.info("%s was read again", file.path.name)
    except D3GDError as error:
        log.warning("%s was not read again: %s", file.path.name, error)


@contextmanager
def rereading(file: SiteFile, session: Session) -> Iterator[None]:
    """Read the file again at every SIGHUP in the block, where there is that signal."""
    if threading.current_thread() is not threading.main_thread() or "SIGHUP" not in dir(signal):
        yield
        return

    def again(number: int, frame: FrameType | None) -> None:
        reread(file, session)

    before = signal.signal(signal.SIGHUP, again)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


def _names(neighbours: Neighbours) -> list[set[str]]:
    return [{contact.name for contact in group} for group in neighbours]
