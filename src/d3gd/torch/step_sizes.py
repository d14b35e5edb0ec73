"""The step sizes in an optimizer's groups of parameters."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from d3gd.algorithms.base import Algorithm
from d3gd.arrays import Array
from d3gd.errors import SettingsError
from d3gd.schedules import at

Groups: TypeAlias = Sequence[dict[str, Any]]

_SIZES = ("lr", "initial_lr", "max_lr", "min_lr", "swa_lr")  # schedulers add all but the first
_KNOWN = {"params", "param_names", *_SIZES}


def require_known(groups: Groups) -> None:
    """Raise an error for options of a group that would have no effect."""
    for group in groups:
        unknown = sorted(group.keys() - _KNOWN)
        if unknown:
            raise SettingsError(
                f"a group of parameters has {unknown[0]!r}, which has no effect: the algorithm takes plain gradient "
                "steps; leave it out"
            )


def current(algorithm: Algorithm[Any], groups: Groups, k: int) -> Algorithm[Any] | None:
    """Return the algorithm with the step size of the groups; None if that is zero.

    Args:
        algorithm: The method as it was given.
        groups: The groups of parameters.
        k: The algorithm's iteration.
    """
    require_known(groups)
    size = getattr(algorithm, "step_size", None)
    shown = {float(group["lr"]) for group in groups if "lr" in group}
    if size is None or shown == {at(size, k)}:
        return algorithm
    if len(shown) > 1:
        raise SettingsError(f"groups have the lr {sorted(shown)}; a model has one step size: give all groups the same")
    if callable(size):
        raise SettingsError(
            f"lr was changed to {shown.pop()}, but the algorithm has its own schedule; give it a number as "
            "step_size, or use no lr_scheduler"
        )
    if shown == {0.0}:
        return None
    changed: Algorithm[Any] = replace(algorithm, step_size=shown.pop())  # type: ignore[type-var]
    return changed


def show(algorithm: Algorithm[Any], groups: Groups, k: int) -> None:
    """Show the step size of the algorithm's own schedule in the groups."""
    size = getattr(algorithm, "step_size", None)
    if callable(size):
        for group in groups:
            group["lr"] = size(k)


def arrays(groups: Groups) -> dict[str, Array]:
    """Return the step sizes by name, one for each group; NaN for none."""
    return {name: np.array([float(group.get(name, np.nan)) for group in groups]) for name in _SIZES}


def load(groups: Groups, arrays: dict[str, Array]) -> None:
    """Set the step sizes from the result of :func:`arrays`."""
    for name in _SIZES:
        for group, size in zip(groups, arrays[name].tolist(), strict=True):
            if not np.isnan(size):
                group[name] = size
