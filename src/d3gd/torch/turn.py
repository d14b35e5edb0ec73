"""One call of an optimizer's ``step``."""

from collections.abc import Callable
from typing import Any, Protocol

from d3gd.torch.model import Model
from d3gd.torch.rows import Row


class Source(Protocol):
    """Where directions come from: gradients, or a local optimizer."""

    def direction(self, model: Model, dtype: Any, closure: Callable[[], float] | None, k: int) -> Row:
        """Return the direction at the parameters.

        Args:
            model: The parameters.
            dtype: The precision of the result.
            closure: Computes the loss and its gradients, if ``step`` was given one.
            k: The iteration.
        """


class Turn:
    """What a call of ``step`` was given, and what its closure has returned.

    Args:
        closure: Computes the loss and its gradients; None if ``backward`` has done so.
        idle: Whether this agent has no data for this step: its gradient is zero.

    Attributes:
        idle: Whether its gradient is zero.
        losses: The results of the closure so far.
    """

    def __init__(self, closure: Callable[[], float] | None, *, idle: bool) -> None:
        self.losses: list[float] = []

        def recorded() -> float:
            self.losses.append(closure())  # type: ignore[misc]  # it is called only if there is one
            return self.losses[-1]

        self._closure, self.idle = None if closure is None else recorded, idle

    @property
    def has_closure(self) -> bool:
        """Whether gradients can be computed at other points."""
        return self._closure is not None

    @property
    def waiting(self) -> bool:
        """Whether a closure has not been called yet; a caller expects it to be."""
        return self.has_closure and not self.losses and not self.idle

    def direction(self, source: Source, model: Model, dtype: Any, k: int) -> Row:
        """Return the direction of iteration ``k`` at the parameters."""
        return model.row(None, dtype) if self.idle else source.direction(model, dtype, self._closure, k)
