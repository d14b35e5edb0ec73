"""Steps of a large model, slice by slice.

A step of a coordinate-wise method on some coordinates is the step of the whole model, restricted to them. Slices that
stay in the cache need no memory for messages and intermediate results as large as the model, and the state is updated
in place.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, cast

import numpy as np
import torch

from d3gd.algorithms.base import Algorithm, is_coordinatewise
from d3gd.arrays import Array, Bools, Floats
from d3gd.distributed.inbox import Inbox
from d3gd.engine.gradients import Gradients
from d3gd.errors import DivergedError
from d3gd.network import Network
from d3gd.state import flatten, restore

_WHOLE = 1 << 18  # numbers up to which a model is stepped whole: it keeps its values if a step fails
_SLICE = 1 << 20  # numbers below which another message costs more than memory for a longer one
_SLICES = 8  # of a model, about
_READ = 1 << 14  # numbers of a tensor that cost more to copy than another call to step them by themselves


def bounds(algorithm: Algorithm[Any], net: Network, sizes: Sequence[int]) -> list[int] | None:
    """Return where the slices of a large model start, and its end; None if it is small or the method needs it whole.

    A large tensor is divided by itself, so that its gradients can be read in place.

    Args:
        algorithm: The method.
        net: The network.
        sizes: The number of numbers of each tensor.
    """
    dim, end, cuts = sum(sizes), 0, [0]
    if dim <= _WHOLE or not (is_coordinatewise(algorithm) and net.reliable and net.repeatable):
        return None
    most = max(_SLICE, -(-dim // _SLICES))
    for size in sizes:
        begin, end = end, end + size
        if size >= _SLICE or end - cuts[-1] > most:
            cuts += np.linspace(begin, end if size >= _SLICE else begin, -(-size // most) + 1).astype(int).tolist()
    return sorted({*cuts, dim})


def seams(sizes: Sequence[int]) -> list[int]:
    """Return where a large model is cut for steps that send nothing, and its end: every large tensor by itself.

    Gradients are then read in place.

    Args:
        sizes: The number of numbers of each tensor.
    """
    cuts, end = [0], 0
    for size in sizes:
        begin, end = end, end + size
        if size >= _READ:
            cuts += [begin, end]
    return sorted({*cuts, end})


def sums(row: Floats, cuts: list[int]) -> list[float]:
    """Return the sum of each slice, which tells whether numbers have changed, and whether they are finite."""
    numbers = torch.from_numpy(row[0])  # PyTorch adds faster than NumPy
    return [float(numbers[first:last].sum()) for first, last in pairwise(cuts)]


def separate(memory: Any, dim: int) -> Any:
    """Return a state whose rows as long as the model have memory of their own, so that they can be updated in place."""
    arrays, seen = flatten(memory), list[Array]()
    for name in _wide(arrays, dim):
        if any(np.may_share_memory(arrays[name], other) for other in seen) or not arrays[name].flags.writeable:
            arrays[name] = arrays[name].copy()
        seen.append(arrays[name])
    return restore(memory, arrays)


def pieces(memory: Any, cuts: list[int]) -> Iterator[tuple[int, int, Any]]:
    """Yield where each slice starts and ends, and the state restricted to it."""
    arrays = flatten(memory)
    wide = _wide(arrays, cuts[-1])
    for first, last in pairwise(cuts):
        yield first, last, restore(memory, {n: a[:, first:last] if n in wide else a for n, a in arrays.items()})


def step(
    algorithm: Algorithm[Any],
    net: Network,
    memory: Any,
    k: int,
    direction: Callable[[Any, int, int], Floats],
    cuts: list[int],
    *,
    into: Floats | None = None,
) -> tuple[Any, list[float]]:
    """Take iteration ``k`` slice by slice, in place.

    Args:
        algorithm: A coordinate-wise method.
        net: The network.
        memory: The state, from :func:`separate`.
        k: The iteration.
        direction: Returns the gradient or what takes its place, for the state of a slice, its start and its end.
        cuts: The result of :func:`bounds`.
        into: Where the model is copied to, a slice at a time, while it is in the cache.

    Returns:
        The state, and the sum over each slice of the model.
    """
    arrays, totals, later = flatten(memory), list[float](), Sliced(net)
    wide, after, rest = _wide(arrays, cuts[-1]), memory, dict[str, Array]()
    for first, last, before in pieces(memory, cuts):
        point = algorithm.point(before)

        def evaluate(x: Floats, key: int | None, at: Any = (before, first, last)) -> Floats:
            return direction(*at)

        gradients = Gradients(evaluate, point.shape, point.dtype, source="the model", agents=net.agents)
        gradients.begin(point, k)
        later.begin(last - first)
        after = algorithm.step(cast(Network, later), gradients, before, k)
        net.halo.transport.settle()  # what is overwritten below may have been sent
        totals.append(finite_sum(algorithm.point(after)))
        if into is not None:
            into[:, first:last] = algorithm.point(after)
        rest = _put_wide(after, arrays, wide, first, last)
    return restore(after, {**{name: arrays[name] for name in wide}, **rest}), totals


def finite_sum(row: Floats) -> float:
    """Return the sum of a slice that is written in place; raise an error unless its numbers are finite."""
    [total] = sums(row, [0, row.shape[1]])
    if not (np.isfinite(total) or np.isfinite(row).all()):
        raise DivergedError(
            "this step made the model NaN or infinite, and part of it has changed; load the last saved state, and try "
            "a smaller step size"
        )
    return total


def put(values: Array, into: Array) -> None:
    """Write values to their place, unless they are there already."""
    if values is not into and values.ctypes.data != into.ctypes.data:
        into[:] = values


def follow(memory: Any, cuts: list[int], move: Callable[[Any, int, int], Any], *, changes: bool) -> Any:
    """Take a local step slice by slice, in place, and return the state.

    Args:
        memory: The state, from :func:`separate`.
        cuts: The result of :func:`seams`.
        move: Returns the state of a slice, given that before and where it starts and ends.
        changes: Whether the state changes; if not, ``move`` is given the whole.
    """
    if not changes:
        for first, last in pairwise(cuts):
            move(memory, first, last)
        return memory
    arrays, rest = flatten(memory), dict[str, Array]()
    wide = _wide(arrays, cuts[-1])
    for first, last, before in pieces(memory, cuts):
        rest = _put_wide(move(before, first, last), arrays, wide, first, last)
    return restore(memory, {**arrays, **rest})


def _put_wide(after: Any, arrays: dict[str, Array], wide: list[str], first: int, last: int) -> dict[str, Array]:
    """Write the rows of a slice to their places, and return what else its state holds."""
    rest = flatten(after)
    for name in wide:
        put(rest.pop(name), arrays[name][:, first:last])
    return rest


def _wide(arrays: dict[str, Array], dim: int) -> list[str]:
    """Return the names of arrays with one row as long as the model."""
    return [name for name, array in arrays.items() if array.ndim == 2 and array.shape[1] == dim]


class Sliced:
    """A network on which slices are updated in place, and what does not belong to a slice is sent with the first only.

    Args:
        net: The network.
    """

    def __init__(self, net: Network) -> None:
        self._net = net
        # For each exchange of a step: the widths of arrays in the first slice, and those that are no slices.
        self._arrived: list[tuple[dict[str, int], Inbox]] = []
        self._widths, self._calls = list[int](), 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._net, name)

    def place(self, like: Array) -> Array:
        """Return an array of the state itself: it is updated in place."""
        return like

    def begin(self, width: int) -> None:
        """Begin a slice. Of the first one, only what others need as well is kept."""
        if len(self._widths) == 1:
            self._arrived = [
                (sizes, Inbox({name: getattr(inbox, name) for name in sizes if sizes[name] != self._widths[0]}))
                for sizes, inbox in self._arrived
            ]
        self._widths.append(width)
        self._calls = 0

    def exchange(self, *, over: Bools | None = None, **arrays: Array) -> Inbox:
        """Send the rows of this slice, and in the first one all others."""
        if len(self._widths) == 1:
            inbox = self._net.exchange(over=over, **arrays)
            self._arrived.append(({name: array.shape[1] for name, array in arrays.items()}, inbox))
            return inbox
        (sizes, first), self._calls = self._arrived[self._calls], self._calls + 1
        sliced = {name: array for name, array in arrays.items() if sizes[name] == self._widths[0]}
        if not sliced:
            return first
        inbox = self._net.exchange(over=over, **sliced)
        if len(sliced) == len(arrays):
            return inbox
        return Inbox({name: getattr(inbox if name in sliced else first, name) for name in arrays})
