"""The state of an optimizer as named tensors."""

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import torch

from d3gd import __version__
from d3gd.arrays import Array
from d3gd.digest import digest
from d3gd.errors import RecordError
from d3gd.network import Network
from d3gd.state import flatten, named_later, restore
from d3gd.torch.checks import (
    require_fitting,
    require_local,
    require_named_tensors,
    require_same_agent,
    require_same_network,
    require_same_steps,
    require_undamaged,
)
from d3gd.torch.local import PREFIX
from d3gd.torch.plain import sizes

S = TypeVar("S")

_PREFIX = "state."  # of the algorithm's arrays
_VERSION = 16  # bytes of a version


def saved(memory: Any, counts: dict[str, int], groups: Sequence[dict[str, Any]]) -> dict[str, Array]:
    """Return named arrays of an algorithm's state, of counters, and of the step sizes in groups."""
    arrays: dict[str, Array] = {_PREFIX + name: array for name, array in flatten(memory).items()}
    arrays |= {name: np.array(value) for name, value in counts.items()}
    arrays["version"] = np.frombuffer(__version__.encode().ljust(_VERSION)[:_VERSION], dtype=np.uint8)
    return arrays | sizes(groups)


def key_of(network: Network) -> int:
    """Return a number that tells networks apart; sites know by themselves when theirs has changed."""
    given = network.given
    return int(digest(given.graph.indptr, given.graph.sources, given.a0)[:15], 16) if network.repeatable else 0


def read(
    state_dict: dict[str, torch.Tensor], own: dict[str, Array], memory: Any, *, local: bool
) -> tuple[dict[str, Array], dict[str, torch.Tensor]]:
    """Return the arrays of a state, and the tensors of a local optimizer in it; raise an error if they do not fit.

    Args:
        state_dict: The state, as named tensors.
        own: The arrays that the optimizer would save itself.
        memory: The algorithm's state; its arrays that are named at run time need not be there yet.
        local: Whether it has a local optimizer.
    """
    require_named_tensors(state_dict)
    theirs = {name: tensor for name, tensor in state_dict.items() if name.startswith(PREFIX)}
    names = sorted(state_dict.keys() - theirs.keys())  # what is sent of them goes in the same order on every rank
    arrays = {name: _array(name, state_dict[name]) for name in names}
    for require in (
        require_same_network,
        require_same_agent,
        require_same_steps,
    ):  # before shapes, which follow from them
        require(arrays, own)
    later = tuple(_PREFIX + prefix for prefix in named_later(memory))
    fixed = {name: array for name, array in arrays.items() if not name.startswith(later)}
    require_fitting(fixed, {name: torch.tensor(own[name]).numpy() for name in own if not name.startswith(later)})
    require_undamaged(arrays)
    require_local(found=bool(theirs), wanted=local)
    return arrays, theirs


def _array(name: str, tensor: torch.Tensor) -> Array:
    """Return a tensor of a state as an array."""
    try:
        return tensor.detach().cpu().numpy().copy()
    except (TypeError, RuntimeError):  # a precision or layout that NumPy does not have
        raise RecordError(f"{name!r} of the state is {tensor.dtype}; load the state as it was saved") from None


def restored(memory: S, arrays: dict[str, Array]) -> S:
    """Return an algorithm's state like ``memory`` from the arrays of :func:`saved`."""
    return restore(memory, {name.removeprefix(_PREFIX): array for name, array in arrays.items()})
