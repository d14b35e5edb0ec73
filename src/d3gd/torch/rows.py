"""Tensors as the row of numbers that is an agent's model."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from math import isfinite
from typing import Any

import numpy as np
import torch

from d3gd.arrays import Array, Floats
from d3gd.kernels.buffers import Buffers
from d3gd.kernels.tensors import DeviceRows, torch_dtype

_SOME = 4096  # numbers of a tensor by which it is recognized
_MANY = 1 << 10  # numbers of a tensor that are looked at in any case


class Row:
    """Tensors as one row of numbers, any part of which can be read; what needs no conversion is not copied.

    Args:
        tensors: The tensors; None stands for zeros.
        sizes: The number of numbers of each.
        dtype: The precision of the row.
        buffers: The memory for parts that need conversion.
    """

    def __init__(
        self, tensors: Sequence[torch.Tensor | None], sizes: Sequence[int], dtype: Any, buffers: Buffers
    ) -> None:
        self._tensors = [None if tensor is None else _flat(tensor) for tensor in tensors]
        self._ends = [0, *accumulate(sizes)]
        self._dtype, self._torch_dtype, self._buffers = np.dtype(dtype), torch_dtype(dtype), buffers
        self.dim = self._ends[-1]

    def part(self, first: int, last: int) -> Floats:
        """Return the numbers ``first`` to ``last - 1``, (1, last - first); they must not be changed."""
        found: Floats | None = None
        for place in range(bisect_right(self._ends, first) - 1, len(self._tensors)):
            tensor, begin, end = self._tensors[place], self._ends[place], self._ends[place + 1]
            if begin >= last:
                break
            low, high = max(first, begin), min(last, end)
            if low >= high:  # an empty tensor
                continue
            piece = None if tensor is None else tensor[low - begin : high - begin]
            if found is None:
                if piece is not None and (low, high) == (first, last) and _is_array(piece, self._torch_dtype):
                    return piece.numpy()[None]
                found = self._buffers.empty((1, last - first), self._dtype)
            into = found[0, low - first : high - first]
            if piece is None:
                into[:] = 0
            else:
                torch.from_numpy(into).copy_(piece)
        return np.empty((1, 0), dtype=self._dtype) if found is None else found

    def whole(self) -> Floats:
        """Return all numbers in a new array."""
        found: Floats = self._buffers.empty((1, self.dim), self._dtype)
        if all(tensor is not None and _is_array(tensor, self._torch_dtype) for tensor in self._tensors):
            torch.cat(self._tensors, out=torch.from_numpy(found[0]))  # type: ignore[arg-type]  # none is None
        else:
            found[...] = self.part(0, self.dim)
        return found

    def is_finite(self) -> bool:
        """Whether all numbers are finite."""
        return all(tensor is None or is_finite(tensor) for tensor in self._tensors)

    def looks_finite(self) -> bool:
        """Whether all numbers of small tensors, and some of each large one, are finite."""
        return all(tensor is None or is_finite(tensor[:: 1 + len(tensor) // _MANY]) for tensor in self._tensors)


def is_finite(numbers: Any) -> bool:
    """Whether all numbers of an array or tensor are finite: at first by their sum, which takes the least time."""
    if isinstance(numbers, DeviceRows):
        numbers = numbers.tensor
    lib = torch if isinstance(numbers, torch.Tensor) else np
    return isfinite(numbers.sum()) or bool(lib.isfinite(numbers).all())


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    dense = tensor.to_dense() if tensor.is_sparse else tensor
    return (dense.detach() if dense.requires_grad else dense).reshape(-1)


def _is_array(tensor: torch.Tensor, dtype: torch.dtype) -> bool:
    """Whether NumPy can read a tensor where it is."""
    return tensor.dtype == dtype and tensor.device.type == "cpu"


def gathered(tensors: Sequence[torch.Tensor], dtype: Any) -> Floats:
    """Return the numbers of some tensors as one new row."""
    row: Floats = np.empty((1, sum(tensor.numel() for tensor in tensors)), dtype=dtype)
    for part, tensor in zip(parts(row, tensors), tensors, strict=True):
        part.copy_(tensor.detach())
    return row


def parts(row: Any, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Return views of a row in the shapes of some tensors."""
    flat = row.tensor[0] if isinstance(row, DeviceRows) else torch.from_numpy(np.ascontiguousarray(row[0]))
    pieces = torch.split(flat, [tensor.numel() for tensor in tensors])
    return [piece.view(tensor.shape) for piece, tensor in zip(pieces, tensors, strict=True)]


def write(row: Array, tensors: Sequence[torch.Tensor]) -> None:
    """Write a row into some tensors, without a graph."""
    for part, tensor in zip(parts(row, tensors), tensors, strict=True):
        tensor.copy_(part)


def frozen(groups: Sequence[dict[str, Any]]) -> list[Array]:
    """Return some numbers of each parameter that is not trained, by which another base is recognized."""
    found = []
    for parameter in (p for group in groups for p in group["params"] if not p.requires_grad):
        plain = type(parameter.data) is torch.Tensor and parameter.layout == torch.strided and not parameter.is_meta
        numbers = parameter.detach().reshape(-1) if plain else torch.empty(0)
        some = numbers[:: max(1, len(numbers) // _SOME)].cpu()
        found.append((some.float() if some.is_floating_point() else some).resolve_conj().numpy())
    return found


def unscale(parameters: Sequence[torch.Tensor], scale: torch.Tensor) -> None:
    """Divide gradients by the factor that multiplied the loss."""
    for parameter in parameters:
        if parameter.grad is not None:
            parameter.grad.div_(scale)
