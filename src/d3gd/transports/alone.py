"""All agents in one process: what is sent has already arrived."""

from d3gd.arrays import Array, Ints


class Alone:
    """The transport of one process, which moves nothing."""

    def __init__(self, n: int) -> None:
        self.n = n

    def exchange(self, arrays: dict[str, Array]) -> dict[str, Array]:
        """Return what this block's agents can read: here, the very arrays that were sent."""
        return arrays

    def gather(self, array: Array) -> Array:
        """Return the values of all agents (or edges), in agent order."""
        return array

    def columns(self, sources: Ints) -> Ints:
        """Return where each source's row stands in what :meth:`exchange` returns."""
        return sources
