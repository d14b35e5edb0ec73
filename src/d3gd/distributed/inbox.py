"""What an exchange returns."""

from collections.abc import Callable, Mapping

from d3gd.distributed.received import Received


class Inbox:
    """The rows that a block's agents receive along their in-edges, by name; it waits for them at first use.

    Args:
        rows: The arrays.
        wait: Returns when the rows have arrived; by default they already have.
    """

    def __init__(self, rows: Mapping[str, Received], wait: Callable[[], None] | None = None) -> None:
        self._rows, self._wait = rows, wait
        if wait is None:
            self.__dict__.update(rows)

    def __getattr__(self, name: str) -> Received:
        # Called only for names that are not attributes yet.
        if self._wait is not None:
            self._wait()
        try:
            found = self._rows[name]
        except KeyError:
            raise AttributeError(f"nothing named {name!r} was sent") from None
        self.__dict__.update(self._rows)
        return found
