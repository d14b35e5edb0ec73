"""Gradient steps: the step size is the algorithm's, and groups of parameters show it."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch

from d3gd.algorithms.around import resized
from d3gd.algorithms.base import Algorithm
from d3gd.arrays import Array
from d3gd.errors import SettingsError
from d3gd.schedules import at
from d3gd.torch.model import Model
from d3gd.torch.rows import Row

Groups: TypeAlias = Sequence[dict[str, Any]]

_SIZES = ("lr", "initial_lr", "max_lr", "min_lr", "swa_lr")  # schedulers add all but the first
_KNOWN = {"params", "param_names", *_SIZES}


def sizes(groups: Groups) -> dict[str, Array]:
    """Return the step sizes in groups by name, one for each group; NaN for none."""
    return {name: np.array([float(group.get(name, np.nan)) for group in groups]) for name in _SIZES}


class Plain:
    """The algorithm's own steps, against the gradients.

    Args:
        algorithm: The method.
    """

    optimizer: torch.optim.Optimizer | None = None

    def __init__(self, algorithm: Algorithm[Any]) -> None:
        size = getattr(algorithm, "step_size", None)
        self.defaults = {} if size is None else {"lr": at(size, 0)}
        self._algorithm, self._size = algorithm, size
        self._now: tuple[float | None, Algorithm[Any]] = None, algorithm  # the last other step size, and the method
        self._groups: Groups = []

    def groups(self, params: Iterable[Any]) -> Iterable[Any]:
        """Return the parameters as they are."""
        return params

    def share(self, owner: torch.optim.Optimizer) -> None:
        """Take the groups of their owner."""
        self._groups = owner.param_groups
        self._require_known()

    def plan(self) -> list[Any]:
        """Return what all ranks must have in common, besides the algorithm."""
        return []

    def _require_known(self) -> None:
        """Raise an error for options of a group that would have no effect."""
        unknown = sorted({name for group in self._groups for name in group} - (_KNOWN - {"lr"}) - self.defaults.keys())
        if unknown:
            raise SettingsError(
                f"a group of parameters has {unknown[0]!r}, which has no effect: the algorithm descends "
                "along gradients as they are; add weight decay to the loss or, with QGAdam, to its settings, or give "
                "another method an optimizer that has the option: local=lambda p: torch.optim.SGD(p, ...)"
            )

    def current(self, k: int) -> Algorithm[Any] | None:
        """Return the algorithm with the step size of the groups; None if that is zero."""
        self._require_known()
        size, shown = self._size, {float(group["lr"]) for group in self._groups if "lr" in group}
        if size is None or shown == {at(size, k)}:
            return self._algorithm
        if len(shown) > 1:
            raise SettingsError(
                f"groups have the lr {sorted(shown)}; a model has one step size: give all groups the same, or an "
                "optimizer that has several: local=lambda p: torch.optim.SGD(p, ...)"
            )
        if callable(size):
            raise SettingsError(
                f"lr was changed to {shown.pop()}, but the algorithm has its own schedule; give it a number as "
                "step_size, or use no lr_scheduler"
            )
        if shown == {0.0}:
            return None
        if self._now[0] != (lr := shown.pop()):
            self._now = lr, resized(self._algorithm, lr)
        return self._now[1]

    def show(self, k: int) -> None:
        """Show the step size of the algorithm's own schedule in the groups."""
        if callable(self._size):
            for group in self._groups:
                group["lr"] = self._size(k)

    def direction(self, model: Model, dtype: Any, closure: Callable[[], float] | None, k: int) -> Row:
        """Return the gradient, see :class:`d3gd.torch.turn.Source`."""
        if closure is not None:
            with torch.enable_grad():
                closure()
        return model.gradients(dtype)

    def state(self) -> dict[str, torch.Tensor]:
        """Return its state: none."""
        return {}

    def load(self, arrays: dict[str, Array], state: dict[str, torch.Tensor]) -> None:
        """Set the step sizes from the result of :func:`sizes`."""
        for name in _SIZES:
            for group, size in zip(self._groups, arrays[name].tolist(), strict=True):
                if not np.isnan(size):
                    group[name] = size
