"""What a running site says of itself, in a file of its folder."""

import contextlib
import json
import logging
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from d3gd.errors import RecordError
from d3gd.metrics import Snapshot
from d3gd.runs import files
from d3gd.sites.session import Session

log = logging.getLogger("d3gd.sites")

_STATUS = "status.json"
_EVERY = 2.0  # seconds between two writings


class Reporter:
    """Writes a site's status while it runs, and a line of the log at every record.

    Args:
        session: The site.
        folder: Its folder; nothing is written before the run has made it.
    """

    def __init__(self, session: Session, folder: Path) -> None:
        self._session, self._folder, self._end = session, folder, threading.Event()
        self._thread = threading.Thread(target=self._watch, name="d3gd-status", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join()

    def record(self, snapshot: Snapshot) -> None:
        """Log a record."""
        rounds = self._session.rounds
        log.info("iteration %d: waited %.1f s, %d messages missed", snapshot.k, rounds.waited, rounds.missed)

    def _watch(self) -> None:
        while not self._end.wait(_EVERY):
            self._write()
        self._write()

    def _write(self) -> None:
        if self._folder.is_dir():
            with contextlib.suppress(RecordError, OSError):  # a full disk must not end the training
                files.write_json(self._folder / _STATUS, facts(self._session))


def facts(session: Session) -> dict[str, Any]:
    """Return a site's status, ready for JSON."""
    hub, now = session.hub, time.monotonic()
    return {
        "site": hub.name,
        "session": hub.session,
        "time": time.time(),
        "iteration": hub.at,
        "iterations": session.file.settings.iterations,
        "sites": len(session.rounds.edition.names),
        "waited": session.rounds.waited,
        "missed": session.rounds.missed,
        "neighbours": [
            {
                "name": peer.name,
                "hears": peer.hears,
                "heard": peer.heard,
                "accepted": peer.accepted,
                "trouble": peer.refusal,
                "iteration": peer.at,
                "age": None if peer.last is None else now - peer.last,
                **{word.replace(" ", "_"): count for word, count in sorted(peer.counts.items())},
            }
            for peer in hub.peers()
        ],
    }


def read(folder: Path) -> dict[str, Any]:
    """Return the last status of a site."""
    path = folder / _STATUS
    if not path.is_file():
        raise RecordError(f"{path} does not exist: no site has run in this folder; start one with: d3gd site run")
    with files.parsing(path):
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return content
