"""Checks of the arguments of problems; valid ones are returned as plain Python or NumPy numbers."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from d3gd.arrays import Array, Floats, Ints
from d3gd.data.checks import check_labels
from d3gd.errors import ProblemError
from d3gd.validation import as_array, count, not_negative, reals

MOST_DRAWN = 1 << 20  # samples in a mini-batch of one agent


def check_returned(value: Any, shape: tuple[int, ...], what: str) -> Array:
    """Return what a user's function returned as an array, or raise an error unless it is real numbers of a shape.

    Args:
        value: What it returned.
        shape: The shape that it must have.
        what: The function, for messages.
    """
    array = value if isinstance(value, np.ndarray) else _converted(value)
    if array.shape == shape and array.dtype.kind in "fiu" and not isinstance(array, np.ma.MaskedArray):
        return array
    found = f"{array.dtype} values" if type(value) is np.ndarray else f"a {type(value).__name__}"
    if array.shape != shape and array.shape:
        found += f" of shape {array.shape}"
    needed = f"an array of real numbers, of shape {shape}" if shape else "one real number"
    raise ProblemError(f"{what} returned {found}; return {needed}")


def _converted(value: Any) -> Array:
    try:
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError):  # rows of several lengths, or a tensor that cannot be converted
        return np.asarray(None)


def check_finite(values: Array, what: str, axes: Sequence[str], ids: Ints | None = None) -> None:
    """Raise an error that names the first NaN or infinity, if there is any.

    Args:
        values: The array to check.
        what: Its name in the message.
        axes: The name of each axis; the first is that of the agents if `ids` is given.
        ids: Global ids of the agents.
    """
    finite = np.isfinite(values)
    if finite.all():
        return
    place = tuple(int(p) for p in np.argwhere(~finite)[0])
    shown = place if ids is None else (int(ids[place[0]]), *place[1:])
    where = ", ".join(f"{axis} {position}" for axis, position in zip(axes, shown, strict=True))
    raise ProblemError(f"{what} is {values[place]} at {where}; clean or drop it, every number must be finite")


def check_ids(agent_ids: Ints | Sequence[int] | None, agents: int) -> Ints:
    """Return the agents' global ids, by default 0, 1, ..., or raise an error unless there is one for each."""
    ids = np.arange(agents) if agent_ids is None else as_array("agent_ids", agent_ids, error=ProblemError)
    if ids.shape != (agents,) or ids.dtype.kind not in "iu":
        raise ProblemError(f"agent_ids of shape {ids.shape} do not name {agents} agents; pass one integer per agent")
    return ids.astype(np.int64)


def check_batch(batch: Any) -> int | None:
    """Return the size of a mini-batch, or None for all data."""
    return None if batch is None else count("batch", batch, least=1, most=MOST_DRAWN, error=ProblemError)


def check_regularization(regularization: Any) -> float:
    """Return the factor of the squared norm, finite and not negative."""
    return not_negative("regularization", regularization, error=ProblemError)


def check_samples(X: Array, y: Array, name: str) -> tuple[Floats, Ints]:
    """Return features and labels of one agent or of a test set, or raise an error unless they match.

    Args:
        X: Features, shape (samples, features).
        y: Labels, shape (samples,).
        name: Their owner, for messages.
    """
    X, y = reals(f"X of {name}", X, error=ProblemError), as_array(f"y of {name}", y, error=ProblemError)
    if X.ndim != 2 or X.size == 0 or y.shape != X.shape[:1]:
        raise ProblemError(
            f"{name} has X of shape {X.shape} and y of shape {y.shape}; "
            "pass (samples, features) and (samples,) with at least one sample"
        )
    labels = check_labels(y, name)
    check_finite(X, f"X of {name}", ("sample", "feature"))
    return X, labels


def check_pair(pair: Any, name: str) -> tuple[Floats, Ints]:
    """Return the features and labels of one agent or of a test set, given as a pair; ``name`` is their owner."""
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        found = f"a {type(pair).__name__}" + (f" of {len(pair)}" if isinstance(pair, (tuple, list)) else "")
        raise ProblemError(f"the data of {name} are {found}; give a pair (X, y) of features and labels")
    X, y = pair
    return check_samples(X, y, name)
