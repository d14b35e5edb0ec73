"""Rows that have come from other ranks, beside the block's own."""

from typing import Any, TypeAlias

from d3gd.arrays import Array, Floats


class Received:
    """The rows of all whom a block hears, in two parts.

    Copying a block's own rows to beside those that came costs as much as fast ranks need to send them. A kernel
    that takes both parts spares it; whoever wants all rows in one array has them copied at first use.

    Args:
        own: The block's own rows.
        whole: Memory for all rows, the block's own first; only those behind them are there already.

    Attributes:
        own: The block's own rows.

    Example:
        >>> import numpy as np
        >>> rows = Received(np.zeros((1, 2)), np.ones((3, 2)))
        >>> rows.own.shape, rows.others.shape, joined(rows)[0]
        ((1, 2), (2, 2), array([0., 0.]))
    """

    def __init__(self, own: Array, whole: Array) -> None:
        self.own, self._whole, self._complete = own, whole, False

    @property
    def others(self) -> Array:
        """The rows that came."""
        return self._whole[len(self.own) :]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of all rows in one array."""
        return self._whole.shape

    @property
    def dtype(self) -> Any:
        """Its kind of numbers."""
        return self._whole.dtype

    def joined(self) -> Array:
        """Return all rows in one array."""
        if not self._complete:
            self._whole[: len(self.own)] = self.own
            self._complete = True
        return self._whole

    def __getitem__(self, rows: Any) -> Any:
        return self.joined()[rows]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.joined().__array__(dtype)


Rows: TypeAlias = Floats | Received


def joined(rows: Rows) -> Floats:
    """Return rows in one array."""
    return rows.joined() if isinstance(rows, Received) else rows


def parts(rows: Rows) -> tuple[Floats, Floats]:
    """Return a block's own rows and those that came; without ranks, all are its own."""
    return (rows.own, rows.others) if isinstance(rows, Received) else (rows, rows[:0])
