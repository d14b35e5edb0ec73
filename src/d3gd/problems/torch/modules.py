"""Any PyTorch module with any loss: one network per agent, all evaluated at once."""

from collections.abc import Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np

from d3gd.arrays import Array, Bools, Floats, Ints
from d3gd.digest import digest
from d3gd.errors import ProblemError
from d3gd.problems.base import Examples, Problem, as_bytes
from d3gd.problems.checks import check_ids, check_regularization
from d3gd.problems.torch.batches import Batch, Data, Fit, Tensors, pieces
from d3gd.problems.torch.clipping import require_separable
from d3gd.problems.torch.layers import calibrate, one_type
from d3gd.problems.torch.networks import Loss, Networks
from d3gd.problems.torch.sources import gather

if TYPE_CHECKING:
    import torch
    from torch import nn


class TorchModule(Problem):
    """Networks of one architecture, one per agent, with the parameters of all in one array; see `torch_module`.

    Args:
        module: The architecture, with the parameters of `start`.
        data: The batches of the agents.
        loss: A function of outputs and targets.
        regularization: Factor of half the squared norm.
        seed: Seed of the module's random draws, such as dropout.
        test: Inputs and labels for the accuracy.
        agent_ids: Global ids of the agents.
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
        self._networks = Networks(module, loss, seed=self.seed, agent_ids=agent_ids)
        self.agents, self.dim = data.agents, self._networks.dim

    @property
    def stacked(self) -> bool | None:
        """Whether one vectorized call trains all agents, not one call each; None before the first step."""
        return self._networks.stacked

    def start(self) -> Floats:
        """The module's own parameters."""
        return self._networks.start()

    def gradients(self, x: Floats, k: int | None = None) -> Floats:
        """The gradient of every agent's loss at its own model, on the mini-batch of iteration k."""
        self._check_models(x)
        mean = self._networks.gradients(x, self.data.rounds(k), k)
        gradients: Floats = mean.cpu().numpy().astype(x.dtype, copy=False)
        return gradients + self.regularization * x if self.regularization else gradients

    def examples(self) -> Examples | None:
        """The samples, if they are in memory; layers that mix them are refused."""
        data = self.data
        if not isinstance(data, Tensors):
            return None
        require_separable(self.module)

        def sums(x: Floats, chosen: Bools, clip: float) -> Floats:
            found = np.zeros((self.agents, self.dim))
            for row in range(self.agents):
                batch = data.chosen(row, np.flatnonzero(chosen[row]))
                if len(batch[0]):
                    found[row] = self._networks.clipped_sum(x[row], batch, clip, int(self.agent_ids[row]))
            return found

        return Examples(data.sizes, data.batch, self.agent_ids, sums, lambda x: self.regularization * x)

    def losses(self, x: Floats) -> Floats:
        """Every agent's loss on all its data at its own model, and the regularization."""
        self._check_models(x)
        mean = self._networks.losses(x, self.data.rounds(None))
        squares = np.einsum("id,id->i", x, x, dtype=np.float64)
        losses: Floats = mean.cpu().numpy().astype(np.float64) + 0.5 * self.regularization * squares
        return losses

    def accuracies(self, x: Floats) -> Floats | None:
        """Share of the test samples whose label has the largest output.

        Modules with batch statistics are calibrated first, see `model`: row i on the data of agent i, or, if there
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
        """A network to use or to save: the module with the parameters of one model, in evaluation mode.

        Args:
            row: The model, shape (dim,), such as a row of a result's ``x``.
            agent: The position in this block of the agent on whose data running statistics (batch norm) are
                calibrated; by default, on the data of all agents in the block.

        Returns:
            A copy; the problem's own module does not change.
        """
        import torch

        model = deepcopy(self.module)
        numbers = self._networks.parameters(self._networks.models(np.asarray(row)[None]))
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if name in numbers:
                    parameter.copy_(numbers[name][0])
        if self._networks.batch_statistics:
            agents = range(self.agents) if agent is None else [agent]
            calibrate(model, (batch for a in agents for batch in self.data.of(a)))
        return model.eval()

    def restrict(self, agents: Ints | Sequence[int]) -> "TorchModule":
        """Only these agents, with the same keys; stacks of another size may round differently."""
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
        trained = self._networks.trained
        fixed = [value for name, value in self.module.state_dict().items() if name not in trained]
        shapes = [[name, list(p.shape), str(p.dtype)] for name, p in trained.items()]
        settings = [str(self.module), shapes, _name(self.loss_function), self.regularization, self.seed]
        return digest(settings, *(value.cpu().numpy() for value in [*fixed, *(self.test or ())]))


def _scores(model: "nn.Module", inputs: Any) -> "torch.Tensor":
    outputs: torch.Tensor = model(*inputs)
    if outputs.ndim < 2:
        raise ProblemError(
            f"outputs of shape {tuple(outputs.shape)} hold no scores of classes; leave test= out, and record a metric "
            "of your own by d3gd.run(metrics={name: function})"
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

    A model x_i is the module's trainable parameters, flattened and concatenated; frozen ones
    (``requires_grad=False``) stay as they are. All agents' gradients are computed at once, behind a leading axis of
    agents (torch.func), if the module allows it. Agents start from the module's own parameters, see `start`.

    Args:
        module: The architecture with its initial parameters; it is copied. Layers keep their mode.
        data: For every agent a tuple (inputs, ..., target) of arrays or tensors, a map-style ``Dataset`` of such, or a
            ``DataLoader`` of batches of such.
        loss: loss(outputs, target), the mean over a batch: a function of ``torch.nn.functional`` or a loss module.
        batch: Samples for a gradient, drawn with replacement, keyed by (seed, agent, iteration); None: all. A
            ``DataLoader`` makes its own batches.
        seed: Seed of the mini-batches and of the module's own draws (dropout).
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
            "metric of your own by d3gd.run(metrics={name: function})"
        )
    return fitted
