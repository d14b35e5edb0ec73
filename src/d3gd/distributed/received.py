"""Rows that an exchange brought."""

from typing import Any

import numpy as np

from d3gd.arrays import Array
from d3gd.errors import D3GDError


class Received:
    """The rows of all whom a block hears, its own first: what the verbs of a network read.

    On several ranks a block's own rows stay where they are. Copying them next to those that came costs as much as fast
    ranks need to send them; a kernel that takes both parts does without.

    Args:
        own: The block's own rows.
        whole: Memory for all rows, the block's own first; those behind them have arrived. Without ranks, None.
        loan: What keeps that memory from being used again.

    Example:
        >>> rows = Received(np.zeros((1, 2)), np.ones((3, 2)))
        >>> [part.shape for part in rows.parts()], rows.joined()[0]
        ([(1, 2), (2, 2)], array([0., 0.]))
    """

    __slots__ = ("_complete", "_loan", "_own", "_whole")

    def __init__(self, own: Array, whole: Array | None = None, loan: object = None) -> None:
        self._own, self._whole, self._loan, self._complete = own, own if whole is None else whole, loan, whole is None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of all rows in one array."""
        return self._whole.shape

    @property
    def dtype(self) -> Any:
        """The type of their numbers."""
        return self._whole.dtype

    @property
    def apart(self) -> bool:
        """Whether the block's own rows still lie elsewhere."""
        return not self._complete

    def parts(self) -> tuple[Array, Array]:
        """Return the block's own rows, and those of others."""
        if self._complete:
            return self._whole, self._whole[:0]
        return self._own, self._whole[len(self._own) :]

    def joined(self) -> Array:
        """Return all rows in one array."""
        if not self._complete:
            self._whole[: len(self._own)] = self._own
            self._complete = True
        return self._whole

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        raise D3GDError(
            "what an exchange brought is read by the verbs of the network: net.mix(a, inbox.x), net.dot(v, inbox.x), "
            "net.along(inbox.x)"
        )


def require_received(rows: Any) -> None:
    """Refuse rows that were never sent: mixing them would cost nothing, and no agent could know them."""
    if not isinstance(rows, Received):
        found = f"an array of shape {rows.shape}" if isinstance(rows, np.ndarray) else f"a {type(rows).__name__}"
        raise D3GDError(
            f"agents can only read what was sent, and this is {found}; send it first: "
            "inbox = net.exchange(x=x), then net.mix(a, inbox.x)"
        )
