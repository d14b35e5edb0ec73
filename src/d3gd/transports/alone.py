"""All agents in one process: nobody to talk to."""

from collections.abc import Mapping

from d3gd.arrays import Array
from d3gd.transports.base import Transport, leave


class Alone(Transport):
    """The transport of one process, which moves nothing."""

    def _move(self, sends: Mapping[int, Array], receives: Mapping[int, Array], tag: int) -> None:
        pass

    def _answers(self, text: str, grace: float) -> dict[int, str]:
        return {}

    def abort(self, code: int) -> None:
        """End the process."""
        leave(code)
