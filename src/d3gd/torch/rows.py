"""Tensors as the row of numbers that is an agent's model."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from d3gd.arrays import Array, Floats


def gathered(tensors: Sequence[torch.Tensor], dtype: Any) -> Floats:
    """Return the numbers of some tensors as one row."""
    row: Floats = np.empty((1, sum(tensor.numel() for tensor in tensors)), dtype=dtype)
    for part, tensor in zip(parts(row, tensors), tensors, strict=True):
        part.copy_(tensor.detach())
    return row


def parts(row: Array, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Return views of a row in the shapes of some tensors."""
    flat = torch.from_numpy(np.ascontiguousarray(row[0]))
    pieces = torch.split(flat, [tensor.numel() for tensor in tensors])
    return [piece.view(tensor.shape) for piece, tensor in zip(pieces, tensors, strict=True)]


@torch.no_grad()
def write(row: Array, tensors: Sequence[torch.Tensor]) -> None:
    """Write a row into some tensors."""
    for part, tensor in zip(parts(row, tensors), tensors, strict=True):
        tensor.copy_(part)


def gradient(parameter: torch.Tensor) -> torch.Tensor:
    """Return the gradient of a parameter: dense, and zero if it has none."""
    if parameter.grad is None:
        return torch.zeros_like(parameter)
    return parameter.grad.to_dense() if parameter.grad.is_sparse else parameter.grad


def unscale(parameters: Sequence[torch.Tensor], scale: torch.Tensor) -> None:
    """Divide gradients by the factor that multiplied the loss."""
    for parameter in parameters:
        if parameter.grad is not None:
            parameter.grad.div_(scale)
