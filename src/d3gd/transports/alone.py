"""A single process, without communication."""

from collections.abc import Callable
from typing import Any

from d3gd.errors import SettingsError
from d3gd.transports.base import Messages, Transport, leave
from d3gd.validation import shown


class Alone(Transport):
    """The transport of a single process, which sends nothing."""

    def _start(self, sends: Messages, receives: Messages, tag: int) -> Callable[[], None]:
        return lambda: None

    def _answers(self, text: str, grace: float) -> dict[int, str]:
        return {}

    def abort(self, code: int) -> None:
        """End the process."""
        leave(code)


def chosen(transport: Any) -> Transport:
    """Return the transport of a run, by default that of a process alone, or raise an error unless it is one."""
    if not isinstance(transport, Transport | None):
        raise SettingsError(f"transport = {shown(transport)}: give d3gd.transports.connect(), or leave it out")
    return Alone() if transport is None else transport
