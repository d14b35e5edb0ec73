"""Adaptation of layers, so that a module is a function of its parameters and a batch alone."""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np

from d3gd.errors import ProblemError
from d3gd.problems.torch.batches import Batch
from d3gd.random import keyed_uniform

if TYPE_CHECKING:
    import torch
    from torch import nn

_STREAM = 2  # of the keyed draws, distinct from mini-batches and sketches


def with_batch_statistics(module: "nn.Module") -> "tuple[nn.Module, bool]":
    """Return a copy whose training layers keep no running statistics, and whether there were any.

    Running statistics change as a network is called. Without them a gradient is a function of model and batch
    alone, so that agents can be stacked and a run resumes exactly.
    """
    copy = deepcopy(module)
    layers = list(_tracking(copy))
    for layer in layers:
        layer.running_mean = layer.running_var = layer.num_batches_tracked = None
        layer.track_running_stats = False
    return copy, bool(layers)


def _tracking(module: "nn.Module") -> Iterator[Any]:
    """Layers that would update running statistics; layers in evaluation mode keep theirs."""
    from torch import nn

    kinds = (
        *(nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm),
        *(nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d),
    )
    for layer in module.modules():
        if isinstance(layer, kinds) and layer.training and layer.track_running_stats:
            yield layer


def calibrate(model: "nn.Module", batches: Iterator[Batch]) -> None:
    """Set running statistics to the averages over some batches."""
    import torch

    layers = list(_tracking(model))
    momenta = [layer.momentum for layer in layers]
    model.eval()
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None  # a plain average over the batches
        layer.train()
    with torch.no_grad():
        for *inputs, _ in batches:
            model(*inputs)
    for layer, momentum in zip(layers, momenta, strict=True):
        layer.momentum = momentum


@contextmanager
def keyed(seed: int, agent: int, k: int | None) -> Iterator[None]:
    """Make a module's random draws depend on the key alone; in evaluation mode nothing is drawn."""
    import torch

    if k is None:
        yield
        return
    with torch.random.fork_rng():
        torch.manual_seed(int(keyed_uniform(seed, np.array([agent]), k, 1, stream=_STREAM)[0, 0] * 2**53))
        yield


def one_type(module: "nn.Module") -> "tuple[torch.dtype, torch.device]":
    """The type and device that all trainable parameters share."""
    from torch import nn

    if any(isinstance(p, nn.parameter.UninitializedParameter) for p in module.parameters()):
        raise ProblemError("the module has lazy layers without parameters yet; call it on some inputs first")
    trained = {name: p for name, p in module.named_parameters() if p.requires_grad}
    kinds = {(p.dtype, p.device): name for name, p in trained.items()}
    if not kinds:
        raise ProblemError("the module has no parameters to train; set requires_grad on some of them")
    if len(kinds) > 1:
        (a, first), (b, second), *_ = kinds.items()
        raise ProblemError(
            f"parameter {first} is {a[0]} on {a[1]} but {second} is {b[0]} on {b[1]}; move all to one type and device "
            "with module.to(...)"
        )
    found = next(iter(kinds))
    if not found[0].is_floating_point:
        raise ProblemError(f"the parameters are {found[0]}; models are real: use float32 or float64 parameters")
    return found
