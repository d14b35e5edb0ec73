"""Checks of the arguments of data generation and division: sizes, label skew, blocks and labels."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from d3gd.arrays import Array, Floats, Ints
from d3gd.errors import ProblemError
from d3gd.validation import as_array, count, reals, shown

_LEAST_ALPHA = 1e-6  # already one class per agent; far below, logarithms overflow
_MOST = 1 << 34  # numbers in one array: 128 GiB


def check_sizes(**sizes: Any) -> list[int]:
    """Return sizes as Python's integers, or raise an error unless all are 1 or more and fit an array."""
    found = {name: count(name, value, least=1, error=ProblemError) for name, value in sizes.items()}
    for name, size in found.items():
        check_room(**{name: size})
    return list(found.values())


def check_room(**sizes: int) -> None:
    """Raise an error if an array of these sizes would be too large, before it is allocated."""
    if math.prod(map(int, sizes.values())) > _MOST:
        shape = ", ".join(f"{name} = {value}" for name, value in sizes.items())
        raise ProblemError(f"{shape}: an array may hold {_MOST:,} numbers; choose smaller ones")


def check_alpha(alpha: float | Sequence[float], agents: int) -> Floats:
    """Return one positive Dirichlet concentration per agent, from one number or one per agent."""
    values = reals("alpha", alpha, error=ProblemError)
    if values.shape not in ((), (agents,)):
        raise ProblemError(f"alpha has shape {values.shape}; give one number, or one for each of {agents} agents")
    if not (np.isfinite(values).all() and values.min() >= _LEAST_ALPHA):
        raise ProblemError(f"alpha = {shown(alpha)}; every concentration must be a number of {_LEAST_ALPHA:g} or more")
    return np.broadcast_to(values, (agents,))


def check_block(block: Ints | Sequence[int] | None, agents: int) -> Ints:
    """Return the agents whose data to generate, by default all."""
    if block is None:
        return np.arange(agents)
    chosen = as_array("block", block, error=ProblemError)
    if chosen.ndim != 1 or chosen.size == 0 or chosen.dtype.kind not in "iu":
        raise ProblemError(f"block = {shown(block)}: it must be a non-empty list of agents from 0 to {agents - 1}")
    if chosen.min() < 0 or chosen.max() >= agents:
        wrong = chosen[(chosen < 0) | (chosen >= agents)][0]
        raise ProblemError(f"block holds the agent {wrong}; it must be a list of agents from 0 to {agents - 1}")
    return chosen.astype(np.int64)


def check_labels(y: Array, name: str) -> Ints:
    """Return labels, or raise an error unless they are whole numbers of 0 or more; ``name`` is their owner."""
    advice = "number the classes with integers 0, 1, 2, ..."
    if y.dtype.kind not in "iu":
        raise ProblemError(f"{name} has labels of type {y.dtype}; {advice}")
    if y.min() < 0:
        raise ProblemError(f"{name} has the label {y.min()}; {advice}")
    return y.astype(np.int64)
