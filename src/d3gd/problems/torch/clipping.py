"""Gradients of single examples, clipped: what privacy needs of a module."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from d3gd.errors import ProblemError
from d3gd.problems.torch.batches import Batch
from d3gd.problems.torch.layers import with_batch_statistics

if TYPE_CHECKING:
    import torch
    from torch import nn

_AT_ONCE = 64  # examples whose gradients are held in memory together


def clipped_sum(
    loss: "Callable[[dict[str, torch.Tensor], Batch], torch.Tensor]",
    parameters: "dict[str, torch.Tensor]",
    batch: Batch,
    clip: float,
) -> "torch.Tensor":
    """Return the sum of the examples' gradients, each clipped to a norm of at most ``clip``, in double precision.

    Args:
        loss: The loss of parameters on a batch.
        parameters: The parameters, by name.
        batch: The examples, along the first axis.
        clip: The bound.
    """
    import torch

    def one(parameters: dict[str, torch.Tensor], example: Batch) -> torch.Tensor:
        return loss(parameters, tuple(tensor[None] for tensor in example))

    each = torch.func.vmap(torch.func.grad(one), in_dims=(None, 0), randomness="different")
    first = next(iter(parameters.values()))
    total = torch.zeros(sum(p.numel() for p in parameters.values()), dtype=torch.float64, device=first.device)
    for begin in range(0, len(batch[0]), _AT_ONCE):
        gradients = each(parameters, tuple(tensor[begin : begin + _AT_ONCE] for tensor in batch))
        rows = torch.cat([part.flatten(1) for part in gradients.values()], dim=1).double()
        norms = rows.norm(dim=1, keepdim=True)
        factors = torch.where(norms > clip, clip / norms, torch.ones_like(norms))
        # An example whose gradient is not finite must not count at all.
        total += torch.where(torch.isfinite(norms), rows * factors, torch.zeros_like(rows)).sum(dim=0)
    return total


def require_separable(module: "nn.Module") -> None:
    """Raise an error if a layer mixes examples, or keeps statistics of them that would be sent without noise."""
    from torch import nn

    mixing = [type(layer).__name__ for layer in module.modules() if isinstance(layer, nn.modules.batchnorm._BatchNorm)]
    if mixing or with_batch_statistics(module)[1]:
        found = mixing[0] if mixing else "running statistics"
        raise ProblemError(
            f"the module has {found}, which mixes examples, so that none can be clipped by itself; replace batch norm "
            "by group or layer norm"
        )
