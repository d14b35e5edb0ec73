"""What the links into a block have carried."""

from typing import NamedTuple

import numpy as np

from d3gd.arrays import Bools, Ints


class Traffic(NamedTuple):
    """Bytes sent along the links into a block; replaced as a whole, never changed.

    Attributes:
        links: The number of these links; self-loops are free.
        every: Bytes along each of them.
        some: Bytes beside that, per edge of the block, zero on self-loops; None until links differ.
        elsewhere: Bytes along links that are not known: of a network that has changed, or of an older checkpoint.
        known: Whether there are none of these, on any rank.
    """

    links: int
    every: int = 0
    some: Ints | None = None
    elsewhere: int = 0
    known: bool = True

    @property
    def total(self) -> int:
        """Bytes along all links."""
        return self.links * self.every + (0 if self.some is None else int(self.some.sum())) + self.elsewhere

    def plus(self, row: int, over: Bools | None = None) -> "Traffic":
        """Return the traffic after a message of so many bytes along every link, or along some edges."""
        if over is None:
            return Traffic(self.links, self.every + row, self.some, self.elsewhere, self.known)
        return self.along(row * over)

    def along(self, edges: Ints) -> "Traffic":
        """Return the traffic after so many bytes along each edge of the block; none along self-loops."""
        return self._replace(some=edges if self.some is None else self.some + edges)

    def per_edge(self, loops: Bools) -> Ints:
        """Return the bytes along each edge of the block.

        Args:
            loops: Mask of its self-loops.
        """
        each: Ints = np.where(loops, 0, self.every)
        return each if self.some is None else each + self.some
