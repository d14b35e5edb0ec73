"""A local optimizer, whose displacement takes the place of step size times gradient."""

import json
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import torch

from d3gd.algorithms.around import require_along_gradients, resized
from d3gd.algorithms.base import Algorithm
from d3gd.arrays import Array
from d3gd.errors import D3GDError, RecordError, SettingsError
from d3gd.kernels.tensors import torch_dtype
from d3gd.torch.checks import require_finite
from d3gd.torch.model import Model
from d3gd.torch.rows import Row

Make: TypeAlias = Callable[[list[Any]], torch.optim.Optimizer]

PREFIX = "local."  # of its tensors in a state_dict
_FORM = PREFIX + "form"  # the rest of its state, as JSON in bytes
_CONTAINERS: dict[str, type] = {"list": list, "tuple": tuple}


class Local:
    r"""An optimizer of PyTorch that proposes this agent's displacements.

    Its learning rate, the largest of all groups, is the unit in which methods see them: displacement
    :math:`= \gamma_k g_i^k` with :math:`\gamma_k` that learning rate. Corrections and trackers are per unit of
    :math:`\gamma`, so that they follow a schedule at once.

    Args:
        algorithm: The method.
        make: Creates the optimizer, given the parameters or groups.
        params: The parameters, or groups of them.
    """

    def __init__(self, algorithm: Algorithm[Any], make: Make, params: Iterable[Any]) -> None:
        _require_unit(algorithm)
        require_along_gradients(algorithm, "local")
        _require_function(make)
        given = [_listed(item) for item in params]
        made = make(given)
        if not isinstance(made, torch.optim.Optimizer):
            raise SettingsError(
                f"local returned a {type(made).__name__}; return an optimizer of the parameters that it is given: "
                "local=lambda p: torch.optim.AdamW(p, lr=1e-3)"
            )
        _require_all(given, made)
        self.optimizer, self.defaults, self._algorithm = made, made.defaults, algorithm
        self._now = 1.0, algorithm  # the last learning rate, and the method with it as its step size

    def groups(self, params: Iterable[Any]) -> Iterable[Any]:
        """Return the groups of the local optimizer."""
        return self.optimizer.param_groups

    def share(self, owner: torch.optim.Optimizer) -> None:
        """Show its groups and its state as those of their owner, for schedulers and readers."""
        owner.param_groups, owner.state = self.optimizer.param_groups, self.optimizer.state

    def plan(self) -> list[Any]:
        """Return what all ranks must have in common; they compare learning rates elsewhere."""
        groups = self.optimizer.state_dict()["param_groups"]
        options = [{name: value for name, value in group.items() if name != "lr"} for group in groups]
        return [type(self.optimizer).__name__, json.dumps(_packed(options, []))]

    @property
    def _size(self) -> float:
        return max((float(group["lr"]) for group in self.optimizer.param_groups if "lr" in group), default=1.0)

    def current(self, k: int) -> Algorithm[Any] | None:
        """Return the algorithm with the learning rate for its step size; None if that is zero."""
        size = self._size
        if size and size != self._now[0]:
            self._now = size, resized(self._algorithm, size)
        return self._now[1] if size else None

    def show(self, k: int) -> None:
        """Do nothing: groups belong to the local optimizer."""

    def direction(self, model: Model, dtype: Any, closure: Callable[[], float] | None, k: int) -> Row:
        """Return by how much the optimizer would change the parameters, per unit of its learning rate.

        The parameters keep their values. Learning rates may change in the step itself: those before it count. The
        arguments are those of :class:`d3gd.torch.turn.Source`.
        """
        losses: list[float] = []

        def require_sound() -> None:  # or else NaN would stay in its moments
            require_finite(model.gradients(dtype).is_finite())

        def checked() -> float:
            losses.append(closure())  # type: ignore[misc]  # it is called only if there is one
            if len(losses) == 1:  # at the model; LBFGS goes on elsewhere
                require_sound()
            return losses[-1]

        if closure is None:
            require_sound()
        size, trained = self._size, model.parameters
        before = [parameter.detach().clone() for parameter in trained]
        moved = torch.empty(model.dim, dtype=torch_dtype(dtype), device=model.device)
        try:
            self.optimizer.step(*[] if closure is None else [checked])
            for part, old, new in zip(torch.split(moved, model.sizes), before, trained, strict=True):
                part.copy_(old.reshape(-1)).sub_(new.detach().reshape(-1).to(part))
        finally:
            for parameter, value in zip(trained, before, strict=True):
                parameter.copy_(value)
        return model.row(moved.div_(size) if size else moved, dtype)

    def state(self) -> dict[str, torch.Tensor]:
        """Return its state as named tensors."""
        tensors: list[torch.Tensor] = []
        form = json.dumps(_packed(self.optimizer.state_dict(), tensors)).encode()
        named = {f"{PREFIX}{i}": tensor.detach().clone() for i, tensor in enumerate(tensors)}
        return {_FORM: torch.tensor(list(form), dtype=torch.uint8), **named}

    def load(self, arrays: dict[str, Array], state: dict[str, torch.Tensor]) -> None:
        """Continue from the result of :meth:`state`."""
        try:
            kept = _unpacked(json.loads(bytes(state[_FORM].tolist())), state)
            self.optimizer.load_state_dict(kept)
        except (KeyError, ValueError, TypeError, RuntimeError, AttributeError) as error:
            raise RecordError(
                f"the local optimizer cannot continue from this state ({' '.join(str(error).split())}); create it as "
                "when the state was saved"
            ) from None
        for group, places in zip(self.optimizer.param_groups, kept["param_groups"], strict=True):
            for parameter, place in zip(group["params"], places["params"], strict=True):
                if place in kept["state"]:  # a look at one that is missing would make it
                    _keep_precision(self.optimizer.state[parameter], kept["state"][place])


def _keep_precision(state: dict[str, Any], kept: dict[str, Any]) -> None:
    """Undo what PyTorch does to tensors of a loaded state: it converts them to the precision of their parameter."""
    for name, value in kept.items():
        if isinstance(value, torch.Tensor) and state[name].dtype != value.dtype:
            state[name] = value.to(state[name].device)


def _listed(item: Any) -> Any:
    """Return a parameter, or a group with a list of them in place of an iterator, which could be read only once."""
    if isinstance(item, dict) and not isinstance(item.get("params"), torch.Tensor | None):
        return {**item, "params": list(item["params"])}
    return item


def _require_all(given: list[Any], made: torch.optim.Optimizer) -> None:
    """Raise an error unless an optimizer has the parameters that it was given."""
    groups = [item["params"] if isinstance(item, dict) else item for item in given]
    flat = [each for group in groups for each in (group if isinstance(group, list) else [group])]
    wanted = {id(p): p for p in (each[1] if isinstance(each, tuple) else each for each in flat) if p.requires_grad}
    has = {id(p): p for group in made.param_groups for p in group["params"] if p.requires_grad}
    other = [{**wanted, **has}[key] for key in wanted.keys() ^ has.keys()]
    if other:
        what = "leaves out a parameter" if id(other[0]) in wanted else "has another parameter,"
        raise SettingsError(
            f"the optimizer that local returned {what} of shape {tuple(other[0].shape)}; give it those that local is "
            "called with, and freeze what is not to be trained: requires_grad_(False)"
        )


def _require_function(make: Any) -> None:
    """Raise an error for an optimizer, where a function that makes one is wanted."""
    if not callable(make):
        raise SettingsError(
            f"local is a {type(make).__name__}; give a function that makes an optimizer: "
            "local=lambda p: torch.optim.AdamW(p, lr=1e-3)"
        )


def _require_unit(algorithm: Algorithm[Any]) -> None:
    """Raise an error for a step size besides that of the local optimizer."""
    if getattr(algorithm, "step_size", None) != 1:
        raise SettingsError(
            f"{type(algorithm).__name__} has a step size of its own, besides that of the local optimizer; write "
            "step_size=1, which takes its displacements as they are"
        )


def _packed(value: Any, tensors: list[torch.Tensor]) -> Any:
    """Return a nested value for JSON, with its tensors moved to a list."""
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return {"tensor": len(tensors) - 1}
    if isinstance(value, dict):
        return {"dict": [[key, _packed(item, tensors)] for key, item in value.items()]}
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [_packed(item, tensors) for item in value]}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise D3GDError(
        f"the local optimizer keeps a {type(value).__name__}, which cannot be saved as numbers; choose another one"
    )


def _unpacked(form: Any, state: dict[str, torch.Tensor]) -> Any:
    """Return the value of :func:`_packed`."""
    if not isinstance(form, dict):
        return form
    [(kind, inside)] = form.items()
    if kind == "tensor":
        return state[f"{PREFIX}{inside}"].detach().clone()
    if kind == "dict":
        return {key: _unpacked(item, state) for key, item in inside}
    return _CONTAINERS[kind](_unpacked(item, state) for item in inside)
