"""Problems given by two plain functions."""

from collections.abc import Callable, Sequence

import numpy as np

from d3gd.arrays import Array, Floats, Ints
from d3gd.data.checks import check_sizes
from d3gd.errors import ProblemError
from d3gd.problems.base import Problem
from d3gd.problems.checks import check_ids, check_returned

GradientFunction = Callable[[int, Floats], Array]
LossFunction = Callable[[int, Floats], float]


class Functions(Problem):
    """A problem whose agents are evaluated one by one; see `from_functions`."""

    def __init__(
        self,
        *,
        agents: int,
        dim: int,
        gradient: GradientFunction,
        loss: LossFunction | None,
        agent_ids: Ints | None = None,
    ) -> None:
        self.agents, self.dim = check_sizes(agents=agents, dim=dim)
        self.gradient, self.loss_function = gradient, loss
        self.agent_ids = check_ids(agent_ids, self.agents)

    @property
    def has_loss(self) -> bool:
        """Whether a loss function was given."""
        return self.loss_function is not None

    def gradients(self, x: Floats, k: int | None = None) -> Floats:
        """The user's gradient for every agent; there are no mini-batches."""
        self._check_models(x)
        models, out = _locked(x), np.empty((self.agents, self.dim))
        for row, agent in enumerate(self.agent_ids.tolist()):
            out[row] = check_returned(self.gradient(agent, models[row]), (self.dim,), f"gradient({agent}, x)")
        return out

    def losses(self, x: Floats) -> Floats:
        """The user's loss for every agent."""
        if self.loss_function is None:
            raise ProblemError("no loss was given; pass loss=function(i, x) to from_functions to record one")
        models, ids = _locked(x), self.agent_ids.tolist()
        losses = [self.loss_function(agent, models[row]) for row, agent in enumerate(ids)]
        checked = [check_returned(loss, (), f"loss({agent}, x)") for loss, agent in zip(losses, ids, strict=True)]
        return np.array(checked, dtype=np.float64)

    def restrict(self, agents: Ints | Sequence[int]) -> "Functions":
        """Only these agents; the functions are still called with global indices."""
        ids = self.agent_ids[self._positions(agents)]
        return Functions(agents=ids.size, dim=self.dim, gradient=self.gradient, loss=self.loss_function, agent_ids=ids)


def _locked(x: Floats) -> Floats:
    """A read-only view for the user's functions."""
    view = x.view()
    view.flags.writeable = False
    return view


def from_functions(*, agents: int, dim: int, gradient: GradientFunction, loss: LossFunction | None = None) -> Functions:
    """A problem given by plain functions of an agent's index and its model.

    Each call handles one agent; if that is too slow, subclass `Problem` and compute all agents at once.

    Args:
        agents: Number of agents.
        dim: Length of a model.
        gradient: gradient(i, x), the gradient of f_i at x, shape (dim,).
        loss: loss(i, x), the value f_i(x); without it the loss is not recorded.

    Returns:
        The problem.

    Example:
        >>> targets = np.array([[0.0, 1.0], [2.0, 3.0]])
        >>> problem = from_functions(agents=2, dim=2, gradient=lambda i, x: x - targets[i])
        >>> problem.global_gradients(np.zeros((1, 2)))
        array([[-1., -2.]])
        >>> problem.has_loss
        False
    """
    return Functions(agents=agents, dim=dim, gradient=gradient, loss=loss)
