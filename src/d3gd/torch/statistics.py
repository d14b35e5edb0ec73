"""Running statistics, which stay with each process."""

import gc
import warnings
from collections.abc import Sequence

import torch
from torch.nn.modules.batchnorm import _NormBase


def warn_of_local(parameters: Sequence[torch.Tensor]) -> None:
    """Warn once if layers of these parameters keep running statistics: those of each process are of its own data.

    An optimizer is given parameters, not layers, so the layers that hold them are searched for.
    """
    wanted = {id(parameter) for parameter in parameters}
    for layer in gc.get_objects():
        if issubclass(type(layer), _NormBase) and layer.track_running_stats and id(layer.weight) in wanted:
            warnings.warn(
                f"{type(layer).__name__} keeps running statistics, which stay with each process and describe its own "
                "data only; average them before you evaluate: opt.mix_buffers(model), or use group or layer norm",
                stacklevel=4,
            )
            return
