"""The networks of a block of agents: one architecture, evaluated for all agents at once if it allows that."""

from collections.abc import Callable, Iterable
from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from d3gd.arrays import Floats, Ints
from d3gd.digest import digest
from d3gd.errors import ProblemError
from d3gd.problems.torch.batches import Batch, Group
from d3gd.problems.torch.clipping import clipped_sum
from d3gd.problems.torch.layers import keyed, with_batch_statistics

if TYPE_CHECKING:
    import torch
    from torch import nn

Loss: TypeAlias = "Callable[[Any, Any], torch.Tensor]"


class Networks:
    """A module as a function of parameters and batches, for many agents.

    Args:
        module: The architecture.
        loss: A function of outputs and targets.
        seed: Seed of the module's random draws, such as dropout.
        agent_ids: Global ids of the agents.

    Attributes:
        trained: The trained parameters, by name.
        dim: Their total length.
        batch_statistics: Whether layers use batch statistics (batch norm).
    """

    def __init__(self, module: "nn.Module", loss: Loss, *, seed: int, agent_ids: Ints) -> None:
        self._loss_function, self._seed, self._ids = loss, seed, agent_ids
        self.trained = {name: p.detach() for name, p in module.named_parameters() if p.requires_grad}
        self.dim = sum(p.numel() for p in self.trained.values())
        first = next(iter(self.trained.values()))
        self._dtype, self._device = first.dtype, first.device
        self._training, self.batch_statistics = with_batch_statistics(module)
        self._evaluating = deepcopy(self._training).eval()
        self._stacks: dict[tuple[str, bool], bool] = {}

    @property
    def stacked(self) -> bool | None:
        """Whether one vectorized call trains all agents, not one call each; None before the first step."""
        return self._stacks.get(("gradient", False))

    def start(self) -> Floats:
        """The module's own parameters, flattened and concatenated."""
        import torch

        flat = torch.cat([p.reshape(-1) for p in self.trained.values()])
        start: Floats = flat.cpu().numpy().astype(np.float64)
        return start

    def gradients(self, x: Floats, rounds: Iterable[list[Group]], k: int | None) -> "torch.Tensor":
        """Every agent's mean gradient over some batches; in evaluation mode if k is None."""
        import torch

        loss = partial(self._loss, self._evaluating if k is None else self._training)
        functional = torch.func.grad(loss)

        def stackable(parameters: dict[str, torch.Tensor], batch: Batch) -> torch.Tensor:
            return torch.cat([part.reshape(-1) for part in functional(parameters, batch).values()])

        def ordinary(parameters: dict[str, torch.Tensor], batch: Batch) -> torch.Tensor:
            own = {name: p.detach().requires_grad_() for name, p in parameters.items()}
            with torch.enable_grad():
                parts = torch.autograd.grad(loss(own, batch), list(own.values()), materialize_grads=True)
            return torch.cat([part.reshape(-1) for part in parts])

        return self._mean("gradient", stackable, ordinary, x, rounds, k)

    def clipped_sum(self, row: Floats, batch: Batch, clip: float, agent: int) -> Floats:
        """The sum of one agent's gradients on the examples of a batch, each clipped; see `clipped_sum`."""
        loss = partial(self._loss, self._training)
        parameters = {name: stack[0] for name, stack in self.parameters(self.models(row[None])).items()}
        with keyed(self._seed, agent, int(digest(row)[:10], 16)):  # a repeated evaluation drops the same units
            total: Floats = clipped_sum(loss, parameters, batch, clip).cpu().numpy()
        return total

    def losses(self, x: Floats, rounds: Iterable[list[Group]]) -> "torch.Tensor":
        """Every agent's mean loss over some batches, in evaluation mode."""
        import torch

        with torch.no_grad():
            loss = partial(self._loss, self._evaluating)
            return self._mean("loss", loss, loss, x, rounds, None)

    def models(self, x: Floats) -> "torch.Tensor":
        """The models as a tensor, sharing memory if types and devices allow."""
        import torch

        ours = np.ascontiguousarray(x)
        # torch has no read-only tensors and warns about read-only arrays.
        tensor = torch.from_numpy(ours if ours.flags.writeable else ours.copy())
        return tensor.to(self._device, self._dtype)

    def parameters(self, models: "torch.Tensor") -> "dict[str, torch.Tensor]":
        """Views of the models' rows under the parameters' names and shapes, behind a leading axis of agents."""
        import torch

        parts = torch.split(models, [p.numel() for p in self.trained.values()], dim=1)
        named = zip(self.trained.items(), parts, strict=True)
        return {name: part.reshape(len(models), *p.shape) for (name, p), part in named}

    def _loss(self, module: "nn.Module", parameters: "dict[str, torch.Tensor]", batch: Batch) -> "torch.Tensor":
        from torch.func import functional_call

        *inputs, target = batch
        value = self._loss_function(functional_call(module, parameters, tuple(inputs)), target)
        if value.ndim > 0:
            raise ProblemError(
                f"the loss has shape {tuple(value.shape)}; return one number, the mean over the batch "
                "(reduction='mean')"
            )
        return value

    def _mean(
        self, what: str, stackable: Any, ordinary: Any, x: Floats, rounds: Iterable[list[Group]], k: int | None
    ) -> "torch.Tensor":
        """The mean of a function over each agent's samples; it is given in a stackable and an ordinary form."""
        import torch

        models = self.models(x)
        mean: torch.Tensor | None = None
        seen = torch.zeros(len(models), dtype=models.dtype, device=models.device)
        for groups in rounds:
            for group in groups:
                values = self._each(what, stackable, ordinary, models, group, k)
                rows, size = torch.from_numpy(group.rows).to(models.device), group.tensors[-1].shape[1]
                seen[rows] += size
                if mean is None:
                    if len(rows) == len(models):  # as with mini-batches: nothing to sum
                        mean = values
                        continue
                    mean = torch.zeros((len(models), *values.shape[1:]), dtype=values.dtype, device=values.device)
                share = (size / seen[rows]).reshape(-1, *[1] * (values.ndim - 1))
                mean[rows] += share * (values - mean[rows])
        if mean is None or not seen.all():
            raise ProblemError("an agent's loader yields no batch; give every agent data")
        return mean

    def _each(
        self, what: str, stackable: Any, ordinary: Any, models: "torch.Tensor", group: Group, k: int | None
    ) -> "torch.Tensor":
        """Evaluate a function for every member: vectorized if the module allows, else one by one."""
        import torch

        whole = len(group.rows) == len(models)
        parameters = self.parameters(models if whole else models[torch.from_numpy(group.rows)])
        call = (what, k is None)  # in evaluation mode more modules can be stacked
        before = self._buffers()
        if self._stacks.get(call, True):
            try:
                values: torch.Tensor = torch.func.vmap(stackable)(parameters, group.tensors)
            except (RuntimeError, ValueError):
                # Dropout, data-dependent control flow, ...; or a user's error, which is raised again below.
                if call in self._stacks:
                    raise
                self._stacks[call] = False
            else:
                self._stacks[call] = True
        if not self._stacks[call]:
            rows = []
            for place, position in enumerate(group.rows.tolist()):
                with keyed(self._seed, int(self._ids[position]), k):
                    own = {name: stack[place] for name, stack in parameters.items()}
                    rows.append(ordinary(own, tuple(tensor[place] for tensor in group.tensors)))
            values = torch.stack(rows)
        changed = [name for name, mark in self._buffers().items() if before.get(name) != mark]
        if changed:
            raise ProblemError(
                f"the module changes its buffer {changed[0]!r} when it is called, which agents in one process would "
                "share; use one process per agent (d3gd.torch.DecentralizedOptimizer), or leave the buffer out"
            )
        return values

    def _buffers(self) -> dict[str, list[int]]:
        """Version counters of all buffers, to detect changes."""
        evaluating = dict(self._evaluating.named_buffers())
        pairs = {name: (buffer, evaluating[name]) for name, buffer in self._training.named_buffers()}
        return {name: [mark for b in pair for mark in (id(b), b._version)] for name, pair in pairs.items()}
