"""Rows received in an exchange."""

from typing import Any

import numpy as np

from d3gd.arrays import Array
from d3gd.errors import D3GDError


class Received:
    """The rows of a block and its sources, own rows first, for the operations of a network.

    On several ranks a block's own rows stay in place. Copying them next to the received ones costs as much time as fast
    ranks need to send them; kernels that accept both parts avoid the copy.

    Args:
        own: The block's own rows.
        whole: A buffer for all rows, the block's own first, followed by the received ones. None on a single rank.
        loan: Keeps that buffer from being reused.

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
        """Their dtype."""
        return self._whole.dtype

    @property
    def apart(self) -> bool:
        """Whether the block's own rows are separate."""
        return not self._complete

    def parts(self) -> tuple[Array, Array]:
        """Return the block's own rows, and the received rows."""
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
            "received rows are read by the operations of the network: net.mix(a, inbox.x), net.dot(v, inbox.x), "
            "net.along(inbox.x)"
        )


def require_received(rows: Any) -> None:
    """Raise an error for rows that were not sent: mixing them would be free, and no agent could know them."""
    if not isinstance(rows, Received):
        found = f"an array of shape {rows.shape}" if isinstance(rows, np.ndarray) else f"a {type(rows).__name__}"
        raise D3GDError(
            f"agents can only read what was sent, and this is {found}; send it first: "
            "inbox = net.exchange(x=x), then net.mix(a, inbox.x)"
        )
