"""What an optimizer refuses, in words."""

import warnings
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from d3gd.algorithms.base import Algorithm, require_admissible, require_method
from d3gd.arrays import Array
from d3gd.engine.checks import require_declared
from d3gd.errors import D3GDError, DivergedError, RecordError, SettingsError
from d3gd.network import Network


def require_computable(elsewhere: bool, whole: bool, closure: bool, local: bool) -> None:
    """Raise an error for gradients at other points, or on all data, if nothing computes them."""
    if elsewhere and local:
        raise SettingsError(
            "this method evaluates gradients at other points, and a local optimizer proposes one displacement per "
            "step; leave local out"
        )
    if elsewhere and not closure:
        raise SettingsError(
            "this method evaluates gradients at other points, and backward() computes those at the model; pass step a "
            "closure that computes the loss and calls backward(), or in place of d3gd.Local give the optimizer every="
        )
    if whole:
        raise SettingsError(
            "this method evaluates gradients on all data (draw=None), which an optimizer does not have; run it with "
            "d3gd.problems.torch_module and d3gd.run"
        )


def require_network(net: Any) -> None:
    """Raise an error unless this is a network; a graph is none."""
    if not isinstance(net, Network):
        raise SettingsError(
            f"network is a {type(net).__name__}; make a network of your graph: d3gd.torch.network(graph, transport=...)"
        )


def require_one_agent(algorithm: Algorithm[Any], net: Network) -> None:
    """Raise an error unless the method can train one agent in this process."""
    require_method(algorithm)
    if len(net.agents) != 1:
        raise SettingsError(
            f"this process has {len(net.agents)} agents, and an optimizer trains one; start one process per agent, or "
            "train all in one with d3gd.problems.torch_module and d3gd.run"
        )
    if algorithm.needs == "all agents":
        raise SettingsError(
            f"{type(algorithm).__name__} needs the values of all agents, which a process does not have; choose a "
            "decentralized method, such as PerronD3GD, or simulate with d3gd.run"
        )
    require_admissible(algorithm, net.given.graph, net.given.graph.matrix(net.given.a0))
    require_declared(algorithm)


def require_real(parameters: Sequence[torch.Tensor]) -> None:
    """Raise an error unless there are parameters to train, all of them real and with memory of their own."""
    if not parameters:
        raise SettingsError("no parameter is trainable; set requires_grad on some of them")
    for parameter in parameters:
        if isinstance(parameter, torch.nn.parameter.UninitializedParameter):
            raise SettingsError("a lazy layer has no parameters yet; call the model once on some inputs first")
        if hasattr(parameter, "device_mesh"):
            raise SettingsError(
                "a parameter is a DTensor, of which this process holds a part; leave out fully_shard and the like: "
                "each process has a model of its own"
            )
        if not parameter.is_floating_point():
            raise SettingsError(f"a parameter is {parameter.dtype}; models are real: use float32 or float64 parameters")
        if parameter.is_meta:
            raise SettingsError("a parameter is on the meta device, without numbers; load the model before")
    if not any(parameter.numel() for parameter in parameters):
        raise SettingsError("all trainable parameters are empty; a model has at least one number")
    plain = {id(p): p for p in parameters if _has_memory(p)}.values()
    places = sorted((str(p.device), p.data_ptr(), p.data_ptr() + p.nbytes) for p in plain if p.numel())
    for (device, _, end), (other, begin, _) in pairwise(places):
        if device == other and begin < end:
            raise SettingsError(
                "two parameters share memory, and would be trained apart; tie layers by using one parameter in both: "
                "decoder.weight = encoder.weight"
            )


def _has_memory(parameter: torch.Tensor) -> bool:
    """Whether the address of a parameter is that of its numbers: wrappers around other tensors have none."""
    return type(parameter.data) is torch.Tensor and parameter.layout == torch.strided and parameter.is_contiguous()


def require_in_step(behind: bool) -> None:
    """Raise an error if the last step failed after it had sent: another attempt would send again what others have."""
    if behind:
        raise D3GDError(
            "the last step failed after this process had sent its messages, and others have gone on without it; load a "
            "saved state on all of them"
        )


def warn_without_gradients(parameters: Sequence[torch.Tensor]) -> None:
    """Warn the caller of ``step`` if there is nothing to descend along."""
    if all(parameter.grad is None for parameter in parameters):
        warnings.warn(
            "no parameter has a gradient, and this step only mixes; was backward() called, on the model whose "
            "parameters the optimizer has? (to go on without data, use opt.join())",
            stacklevel=5,  # PyTorch wraps step twice
        )


def require_named_tensors(state: Any) -> None:
    """Raise an error for what is no state, or that of another optimizer."""
    if not isinstance(state, Mapping):
        raise RecordError(f"the state is a {type(state).__name__}; give what state_dict() returned: torch.load(file)")
    other = next((name for name, value in state.items() if not isinstance(value, torch.Tensor)), None)
    if other is not None:
        raise RecordError(
            f"the state has {other!r}, as those of PyTorch's own optimizers have; load one that DecentralizedOptimizer "
            "saved, or start from the model alone"
        )


def require_same_agent(arrays: Mapping[str, Array], own: Mapping[str, Array]) -> None:
    """Raise an error for the state of another agent."""
    if "agent" in arrays and not np.array_equal(arrays["agent"], own["agent"]):
        raise RecordError(
            f"this state is of agent {arrays['agent']}, but this process trains agent {own['agent']}; load the file "
            "that this process saved"
        )


def require_same_steps(arrays: Mapping[str, Array], own: Mapping[str, Array]) -> None:
    """Raise an error for a state of other local steps."""
    if "every" in arrays and arrays["every"].shape == () and arrays["every"] != own["every"]:
        raise RecordError(
            f"the state was saved with every = {int(arrays['every'])}, and this optimizer has every = "
            f"{int(own['every'])}; keep it"
        )


def require_same_network(arrays: Mapping[str, Array], own: Mapping[str, Array]) -> None:
    """Raise an error for a state of another network, whose corrections would not cancel."""
    if "network" in arrays and not np.array_equal(arrays["network"], own["network"]):
        raise RecordError(
            "the state was saved on another network; what agents have learnt of each other holds for its links and "
            "weights: use the same, or load the model alone"
        )


def require_local(*, found: bool, wanted: bool) -> None:
    """Raise an error for a state with a local optimizer where there is none, or the reverse."""
    if found != wanted:
        raise RecordError(
            f"the state was saved {'with' if found else 'without'} a local optimizer; create the optimizer as when the "
            "state was saved"
        )


def require_fitting(arrays: Mapping[str, Array], own: Mapping[str, Array]) -> None:
    """Raise an error for the state of another algorithm, network or model, given arrays like those it should have."""
    other = sorted(own.keys() ^ arrays.keys())
    if other:
        raise RecordError(
            f"the state {'lacks' if other[0] in own else 'has'} {other[0]!r}: it is of another algorithm or version; "
            "create the optimizer as when the state was saved"
        )
    wrong = [name for name in own if own[name].shape != arrays[name].shape or own[name].dtype != arrays[name].dtype]
    if wrong:
        found, wanted = arrays[wrong[0]], own[wrong[0]]
        raise RecordError(
            f"{wrong[0]!r} of the state is {found.dtype}{list(found.shape)} instead of {wanted.dtype}"
            f"{list(wanted.shape)}; create model, network and optimizer as when the state was saved"
        )


def require_undamaged(arrays: Mapping[str, Array]) -> None:
    """Raise an error for a state that no optimizer saves."""
    for name, array in arrays.items():
        if name.startswith("state.") and not np.isfinite(array).all():
            raise RecordError(f"{name!r} of the state has numbers that are NaN or infinite; load an earlier state")
    iteration, skipped, every = (int(arrays[name]) for name in ("iteration", "skipped", "every"))
    steps, size = (float(arrays.get(f"between.{name}", np.array(0))) for name in ("steps", "size"))
    if not (0 <= skipped <= iteration and 0 <= steps < every and (steps == 0) == (size == 0) and size >= 0):
        raise RecordError("the steps that the state counts contradict each other; load it as it was saved")


def require_finite(finite: bool) -> None:
    """Raise an error unless the numbers of a step are finite."""
    if not finite:
        raise DivergedError(
            "this step would make the model NaN or infinite; the parameters keep their last values: try a smaller "
            "step size, or look for such numbers in the data, the loss and the gradients"
        )
