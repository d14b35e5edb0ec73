"""A single process, without communication."""

from collections.abc import Callable

from d3gd.transports.base import Messages, Transport, leave


class Alone(Transport):
    """The transport of a single process, which sends nothing."""

    def _start(self, sends: Messages, receives: Messages, tag: int) -> Callable[[], None]:
        return lambda: None

    def _answers(self, text: str, grace: float) -> dict[int, str]:
        return {}

    def abort(self, code: int) -> None:
        """End the process."""
        leave(code)
