"""Running statistics, which stay with each process."""

import gc
import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch.nn.modules.batchnorm import _NormBase


def warn_of_local(parameters: Sequence[torch.Tensor]) -> None:
    """Warn once if layers of these parameters keep running statistics: those of each process are of its own data.

    An optimizer is given parameters, not layers, so the layers that hold them are searched for.
    """
    wanted = {id(parameter) for parameter in parameters}
    for layer in _layers():
        if layer.track_running_stats and id(layer.weight) in wanted:
            warnings.warn(
                f"{type(layer).__name__} keeps running statistics, which stay with each process and describe its own "
                "data only; average them before you evaluate: opt.mix_buffers(model), or use group or layer norm",
                stacklevel=3,
            )
            return


def _layers() -> list[Any]:
    """Return all layers that may keep statistics.

    Whoever holds a tuple that another thread is making breaks it, so this asks for what refers to their classes, as
    instances do, and not for all objects.
    """
    kinds = {_NormBase}
    while more := {kind for known in kinds for kind in known.__subclasses__()} - kinds:
        kinds |= more
    return [layer for layer in gc.get_referrers(*kinds) if type(layer) in kinds]
