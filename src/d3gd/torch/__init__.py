"""PyTorch: an optimizer for one agent per process."""

from d3gd.errors import D3GDError

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise D3GDError(f"d3gd.torch needs PyTorch ({error}); install it with: pip install 'd3gd[torch]'") from error

from d3gd.problems.torch.batches import KeyedBatches
from d3gd.torch.networks import network, sample_weight
from d3gd.torch.optimizer import DecentralizedOptimizer
from d3gd.torch.private import PrivateGradients

__all__ = ["DecentralizedOptimizer", "KeyedBatches", "PrivateGradients", "network", "sample_weight"]
