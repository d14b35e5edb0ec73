"""Any PyTorch module with any loss: one network per agent, all evaluated at once."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from d3gd.arrays import Array, Floats, Ints
from d3gd.digest import digest
from d3gd.errors import ProblemError
from d3gd.problems.base import Problem, as_bytes
from d3gd.problems.checks import check_ids, check_regularization
from d3gd.problems.torch.batches import Batch, Data, Fit, Group, pieces
from d3gd.problems.torch.layers import calibrate, keyed, one_type, with_batch_statistics
from d3gd.problems.torch.sources import gather

if TYPE_CHECKING:
    import torch
    from torch import nn

Loss: TypeAlias = "Callable[[Any, Any], torch.Tensor]"


class TorchModule(Problem):
    """Networks of one architecture, one per agent, with the parameters of all in one array; see `torch_module`.

    Args:
        module: The architecture; its numbers are those of `start`.
        data: The batches of the agents.
        loss: A function of outputs and targets.
        regularization: Factor of half the squared norm.
        seed: Of what the module itself draws, such as dropout.
        test: Inputs and labels for the accuracy.
        agent_ids: The agents' global numbers.
    """

    def __init__(
        self,
        module: "nn.Module",
        data: Data,
        *,
        loss: Loss,
        regularization: float,
        seed: int,
        test: Batch | None,
        agent_ids: Ints,
    ) -> None:
        self.module, self.data, self.loss_function, self.test = module, data, loss, test
        self.regularization, self.seed, self.agent_ids = check_regularization(regularization), int(seed), agent_ids
        self._trained = {name: p.detach() for name, p in module.named_parameters() if p.requires_grad}
        self.agents, self.dim = data.agents, sum(p.numel() for p in self._trained.values())
        first = next(iter(self._trained.values()))
        self._dtype, self._device = first.dtype, first.device
        self._training, calibrated = with_batch_statistics(module)
        self._evaluating = deepcopy(self._training).eval()
        self._calibrates = calibrated
        self._stacks: dict[tuple[str, bool], bool] = {}

    @property
    def stacked(self) -> bool | None:
        """Whether one vectorised call trains all agents, or each is trained by itself; None before the first step."""
        return self._stacks.get(("gradient", False))

    def start(self) -> Floats:
        """The module's own parameters."""
        import torch

        flat = torch.cat([p.reshape(-1) for p in self._trained.values()])
        start: Floats = flat.cpu().numpy().astype(np.float64)
        return start

    def gradients(self, x: Floats, k: int | None = None) -> Floats:
        """The gradient of every agent's loss at its own model, on the mini-batch of iteration k."""
        import torch

        self._check_models(x)
        loss = partial(self._loss, self._evaluating if k is None else self._training)
        functional = torch.func.grad(loss)

        def stackable(parameters: dict[str, torch.Tensor], batch: Batch) -> torch.Tensor:
            return torch.cat([part.reshape(-1) for part in functional(parameters, batch).values()])

        def ordinary(parameters: dict[str, torch.Tensor], batch: Batch) -> torch.Tensor:
            own = {name: p.detach().requires_grad_() for name, p in parameters.items()}
            with torch.enable_grad():
                parts = torch.autograd.grad(loss(own, batch), list(own.values()), materialize_grads=True)
            return torch.cat([part.reshape(-1) for part in parts])

        mean = self._mean("gradient", stackable, ordinary, x, k)
        gradients: Floats = mean.cpu().numpy().astype(x.dtype, copy=False)
        return gradients + self.regularization * x if self.regularization else gradients

    def losses(self, x: Floats) -> Floats:
        """Every agent's loss on all its data at its own model, and the regularization."""
        import torch

        self._check_models(x)
        with torch.no_grad():
            loss = partial(self._loss, self._evaluating)
            mean = self._mean("loss", loss, loss, x, None)
        squares = np.einsum("id,id->i", x, x, dtype=np.float64)
        losses: Floats = mean.cpu().numpy().astype(np.float64) + 0.5 * self.regularization * squares
        return losses

    def accuracies(self, x: Floats) -> Floats | None:
        """Share of the test samples whose label has the largest output.

        Modules with batch statistics are calibrated first, see `model`: row i on the data of agent i, or, where there
        are more or fewer rows than agents, every row on all data.
        """
        import torch

        if self.test is None:
            return None
        own = len(x) == self.agents
        shares = np.empty(len(x))
        with torch.no_grad():
            for i, row in enumerate(x):
                model = self.model(row, agent=i if own else None)
                right = [(_scores(model, inputs).argmax(dim=1) == y).flatten() for *inputs, y in pieces(self.test)]
                shares[i] = float(torch.cat(right).double().mean())
        return shares

    def model(self, row: Floats, agent: int | None = None) -> "nn.Module":
        """A network to use or to save: the module with the numbers of one model, in evaluation mode.

        Args:
            row: The model, shape (dim,), such as a row of a result's ``x``.
            agent: The position in this block of the agent on whose data running statistics (batch norm) are
                calibrated; by default, on the data of all agents in the block.

        Returns:
            A copy; the problem's own module does not change.
        """
        import torch

        model = deepcopy(self.module)
        numbers = self._parameters(self._tensor(np.asarray(row)[None]))
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if name in numbers:
                    parameter.copy_(numbers[name][0])
        if self._calibrates:
            agents = range(self.agents) if agent is None else [agent]
            calibrate(model, (batch for a in agents for batch in self.data.of(a)))
        return model.eval()

    def restrict(self, agents: Ints | Sequence[int]) -> "TorchModule":
        """Only these agents, under the same keys; stacks of another size may round otherwise."""
        positions = self._positions(agents)
        return TorchModule(
            self.module,
            self.data.restrict(positions),
            loss=self.loss_function,
            regularization=self.regularization,
            seed=self.seed,
            test=self.test,
            agent_ids=self.agent_ids[positions],
        )

    def common(self) -> dict[str, Any]:
        """Also the architecture, its buffers, the loss, the settings and the test data."""
        return super().common() | {"settings": self._settings(), "draws": self.data.common()}

    def fingerprints(self) -> Array:
        """SHA-256 of each agent's data and keys, of the architecture, its buffers and the loss."""
        settings = self._settings()
        return as_bytes(digest(settings, text) for text in self.data.digests())

    def _settings(self) -> str:
        fixed = [value for name, value in self.module.state_dict().items() if name not in self._trained]
        shapes = [[name, list(p.shape), str(p.dtype)] for name, p in self._trained.items()]
        settings = [str(self.module), shapes, _name(self.loss_function), self.regularization, self.seed]
        return digest(settings, *(value.cpu().numpy() for value in [*fixed, *(self.test or ())]))

    def _loss(self, module: "nn.Module", parameters: "dict[str, torch.Tensor]", batch: Batch) -> "torch.Tensor":
        from torch.func import functional_call

        *inputs, target = batch
        value = self.loss_function(functional_call(module, parameters, tuple(inputs)), target)
        if value.ndim > 0:
            raise ProblemError(
                f"the loss has shape {tuple(value.shape)}; return one number, the mean over the batch "
                "(reduction='mean')"
            )
        return value

    def _mean(self, what: str, stackable: Any, ordinary: Any, x: Floats, k: int | None) -> "torch.Tensor":
        """The mean over each agent's samples of a function, which is given as one to stack and as an ordinary one."""
        import torch

        models = self._tensor(x)
        mean: torch.Tensor | None = None
        seen = torch.zeros(self.agents, dtype=models.dtype, device=models.device)
        for groups in self.data.rounds(k):
            for group in groups:
                values = self._each(what, stackable, ordinary, models, group, k)
                rows, size = torch.from_numpy(group.rows).to(models.device), group.tensors[-1].shape[1]
                seen[rows] += size
                if mean is None:
                    if len(rows) == self.agents:  # as with mini-batches: nothing to add up
                        mean = values
                        continue
                    mean = torch.zeros((self.agents, *values.shape[1:]), dtype=values.dtype, device=values.device)
                share = (size / seen[rows]).reshape(-1, *[1] * (values.ndim - 1))
                mean[rows] += share * (values - mean[rows])
        if mean is None or not seen.all():
            raise ProblemError("an agent's loader gives no batch; give every agent data")
        return mean

    def _each(
        self, what: str, stackable: Any, ordinary: Any, models: "torch.Tensor", group: Group, k: int | None
    ) -> "torch.Tensor":
        """A function of every member's parameters and batch: at once where the module allows, else one by one."""
        import torch

        whole = len(group.rows) == self.agents
        parameters = self._parameters(models if whole else models[torch.from_numpy(group.rows)])
        call = (what, k is None)  # in evaluation mode more modules can be stacked
        before = self._buffers()
        if self._stacks.get(call, True):
            try:
                values: torch.Tensor = torch.func.vmap(stackable)(parameters, group.tensors)
            except (RuntimeError, ValueError):
                # Dropout, control flow that depends on data, ...: or a mistake, which shows itself below.
                if call in self._stacks:
                    raise
                self._stacks[call] = False
            else:
                self._stacks[call] = True
        if not self._stacks[call]:
            rows = []
            for place, position in enumerate(group.rows.tolist()):
                with keyed(self.seed, int(self.agent_ids[position]), k):
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
        """Marks of all buffers, by which a change is seen."""
        evaluating = dict(self._evaluating.named_buffers())
        pairs = {name: (buffer, evaluating[name]) for name, buffer in self._training.named_buffers()}
        return {name: [mark for b in pair for mark in (id(b), b._version)] for name, pair in pairs.items()}

    def _tensor(self, x: Floats) -> "torch.Tensor":
        """The models as a tensor, on the same memory where types and devices allow."""
        import torch

        ours = np.ascontiguousarray(x)
        # torch has no read-only tensors and warns of such memory.
        tensor = torch.from_numpy(ours if ours.flags.writeable else ours.copy())
        return tensor.to(self._device, self._dtype)

    def _parameters(self, models: "torch.Tensor") -> "dict[str, torch.Tensor]":
        """Views of the models' rows under the parameters' names and shapes, behind a leading axis of agents."""
        import torch

        parts = torch.split(models, [p.numel() for p in self._trained.values()], dim=1)
        named = zip(self._trained.items(), parts, strict=True)
        return {name: part.reshape(len(models), *p.shape) for (name, p), part in named}


def _scores(model: "nn.Module", inputs: Any) -> "torch.Tensor":
    outputs: torch.Tensor = model(*inputs)
    if outputs.ndim < 2:
        raise ProblemError(
            f"outputs of shape {tuple(outputs.shape)} hold no scores of classes; leave test= out, and record a metric "
            "of your own with d3gd.run(metrics={name: function})"
        )
    return outputs


def _name(function: Any) -> str:
    from torch import nn

    return (
        str(function) if isinstance(function, nn.Module) else getattr(function, "__qualname__", type(function).__name__)
    )


def torch_module(
    module: "nn.Module",
    data: Sequence[Any],
    *,
    loss: Loss,
    batch: int | None = None,
    seed: int = 0,
    regularization: float = 0.0,
    test: Any = None,
    agent_ids: Ints | Sequence[int] | None = None,
) -> TorchModule:
    r"""Networks of one architecture, one per agent, trained on the agents' own data.

    .. math::
        f_i(\theta) = \frac{1}{M_i} \sum_{m=1}^{M_i} \ell\bigl(h_\theta(x_m), y_m\bigr) + \frac{\lambda}{2} \|\theta\|^2

    A model x_i is the module's trainable parameters, flattened one after the other; frozen ones
    (``requires_grad=False``) stay as they are. All agents' gradients are computed at once, behind a leading axis of
    agents (torch.func), where the module allows it. Agents start from the module's own parameters, see `start`.

    Args:
        module: The architecture with its initial parameters; it is copied. Layers are trained in the mode they are in.
        data: For every agent a tuple (inputs, ..., target) of arrays or tensors, a map-style ``Dataset`` of such, or a
            ``DataLoader`` of batches of such.
        loss: loss(outputs, target), the mean over a batch: a function of ``torch.nn.functional`` or a loss module.
        batch: Samples for a gradient, drawn with replacement by the key (seed, agent, iteration); None: all. A
            ``DataLoader`` makes its own batches.
        seed: Of the mini-batches and of what the module itself draws (dropout).
        regularization: The factor lambda.
        test: A tuple (inputs, ..., labels) or a ``Dataset`` to measure accuracy on.
        agent_ids: Global ids of the agents, the keys of their draws; by default 0, 1, ...

    Returns:
        The problem.

    Example:
        >>> import torch
        >>> left, right = (torch.eye(2), torch.tensor([0, 1])), (torch.ones(1, 2), torch.tensor([1]))
        >>> module = torch.nn.Linear(2, 2, bias=False)
        >>> problem = torch_module(module, [left, right], loss=torch.nn.functional.cross_entropy)
        >>> problem.gradients(np.zeros((2, 4)))
        array([[-0.25,  0.25,  0.25, -0.25],
               [ 0.5 ,  0.5 , -0.5 , -0.5 ]])
    """
    own = deepcopy(module)
    fit = Fit(*one_type(own))
    gathered = gather(data, fit, batch=batch, seed=seed, agent_ids=agent_ids)
    return TorchModule(
        own,
        gathered,
        loss=loss,
        regularization=regularization,
        seed=seed,
        test=None if test is None else _labelled(test, fit),
        agent_ids=check_ids(agent_ids, gathered.agents),
    )


def _labelled(test: Any, fit: Fit) -> Batch:
    from torch.utils.data import Dataset, TensorDataset, default_collate

    if isinstance(test, TensorDataset):
        test = test.tensors
    elif isinstance(test, Dataset):
        test = default_collate([test[i] for i in range(len(test))])  # type: ignore[arg-type]
    fitted = fit(test, "the test set")
    if fitted[-1].is_floating_point():
        raise ProblemError(
            f"test labels are {fitted[-1].dtype}; accuracy counts classes 0, 1, ...: leave test= out, and record a "
            "metric of your own with d3gd.run(metrics={name: function})"
        )
    return fitted
