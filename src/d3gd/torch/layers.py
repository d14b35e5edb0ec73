"""What the modules around the trained parameters do, which an optimizer is not given and searches for."""

import gc
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import distributed
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.parallel import DistributedDataParallel

from d3gd.errors import SettingsError


def require_apart(parameters: Sequence[torch.Tensor]) -> None:
    """Raise an error if the model is in DDP or FSDP, which would average the gradients of all processes, too."""
    if not (distributed.is_available() and distributed.is_initialized()):
        return  # neither can be; a search takes some tenths of a second where there are many objects
    wanted = {id(parameter) for parameter in parameters}
    fsdp = sys.modules.get("torch.distributed.fsdp")  # slow to import, and there if a model is wrapped in it
    kinds = DistributedDataParallel, getattr(fsdp, "FullyShardedDataParallel", None)
    for wrapper in (each for kind in kinds if kind is not None for each in _instances(kind)):
        if any(id(parameter) in wanted for parameter in wrapper.parameters()):
            raise SettingsError(
                f"the model is wrapped in {type(wrapper).__name__}, which makes gradients those of all data, by "
                "sending them between all processes; leave it out: each process has a model of its own, and the "
                "optimizer mixes them"
            )


def warn_of_statistics(parameters: Sequence[torch.Tensor]) -> None:
    """Warn once if layers of these parameters keep running statistics: those of each process are of its own data."""
    wanted = {id(parameter) for parameter in parameters}
    for layer in _instances(_NormBase):
        if layer.track_running_stats and id(layer.weight) in wanted:
            warnings.warn(
                f"{type(layer).__name__} keeps running statistics, which stay with each process and describe its own "
                "data only; average them before you evaluate: opt.mix_buffers(model), or use group or layer norm",
                stacklevel=3,
            )
            return


def _instances(kind: type) -> list[Any]:
    """Return all instances of a class.

    Whoever holds a tuple that another thread is making breaks it, so this asks for what refers to the class and those
    derived from it, as instances do, and not for all objects.
    """
    kinds = _derived(kind)
    return [instance for instance in gc.get_referrers(*kinds) if type(instance) in kinds]


def _derived(kind: type) -> set[type]:
    """Return a class and all that are derived from it."""
    below: list[type] = kind.__subclasses__()
    return {kind}.union(*map(_derived, below))
