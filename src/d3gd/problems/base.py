"""The base class of problems: one objective per agent, with its gradient."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from d3gd.arrays import Array, Bools, Floats, Ints
from d3gd.digest import digest
from d3gd.errors import ProblemError
from d3gd.problems.checks import check_returned
from d3gd.random import keyed_uniform
from d3gd.validation import as_array, html_table


class Examples(NamedTuple):
    """The examples of which objectives are means, one by one: what privacy needs to bound the influence of each.

    Attributes:
        sizes: The number of examples of every agent of the block.
        batch: The number of examples that an evaluation draws; None: all.
        ids: Global ids of the agents.
        sums: Given models (agents, dim), a mask (agents, longest) of examples and a bound, returns for every agent the
            sum of the chosen examples' gradients, each clipped to a norm of at most the bound, (agents, dim).
        rest: Given models, returns the gradients of the terms that depend on no example, such as regularization.
    """

    sizes: Ints
    batch: int | None
    ids: Ints
    sums: Callable[[Floats, Bools, float], Floats]
    rest: Callable[[Floats], Floats]


class Problem(ABC):
    r"""The objectives :math:`f_i`, one per agent of a block, of :math:`F = \frac1n \sum_i f_i`.

    A subclass sets `agents` and `dim` and implements `gradients`. `losses` adds the loss to the metrics, `restrict`
    allows runs on several ranks. `sum_gradients` and `sum_losses` are worth overriding if pooling the data is cheaper
    than one call of `gradients` per row. Rows of `gradients` must not depend on which other agents are in the block.

    Attributes:
        agents: Number of agents in this block.
        dim: Length of a model.

    Example:
        >>> class Distance(Problem):
        ...     def __init__(self, targets):
        ...         self.targets = targets
        ...         self.agents, self.dim = targets.shape
        ...     def gradients(self, x, k=None):
        ...         return x - self.targets
        ...     def losses(self, x):
        ...         return 0.5 * ((x - self.targets) ** 2).sum(axis=1)
        >>> problem = Distance(np.array([[0.0, 0.0], [2.0, 4.0]]))
        >>> problem.global_gradients(np.zeros((1, 2)))
        array([[-1., -2.]])
        >>> problem.loss(np.array([[1.0, 2.0]]))
        2.5
    """

    agents: int
    dim: int

    @abstractmethod
    def gradients(self, x: Floats, k: int | None = None) -> Floats:
        """Every agent's gradient at its own model.

        Args:
            x: Models, shape (agents, dim).
            k: The key of the mini-batches; None for the gradient on all data. The first evaluation of an iteration has
                the iteration as its key; further ones have larger integers (`d3gd.random.draw_key`). Draw from
                (seed, agent, k) alone.

        Returns:
            Shape (agents, dim); row i is the gradient of f_i at x[i].
        """

    def start(self) -> Floats:
        """The default initial model of all agents, shape (dim,): zeros here."""
        return np.zeros(self.dim)

    @property
    def has_loss(self) -> bool:
        """Whether `losses` is implemented."""
        return type(self).losses is not Problem.losses

    def losses(self, x: Floats) -> Floats:
        """Every agent's objective on all its data at its own model: f_i(x[i]), shape (agents,)."""
        raise ProblemError(f"{type(self).__name__} has no loss; write its losses(x) method to record one")

    def sum_gradients(self, x: Floats) -> Floats:
        """Gradients of the sum of this block's objectives, on all data, at every row of x; shaped like x."""
        return np.stack([self._whole_gradients(self._everywhere(row)).sum(axis=0) for row in x])

    def sum_losses(self, x: Floats) -> Floats:
        """The sum of this block's objectives, on all data, at every row of x; shape (rows,)."""
        shape, what = (self.agents,), f"{type(self).__name__}.losses"
        return np.array([check_returned(self.losses(self._everywhere(row)), shape, what).sum() for row in x])

    def global_gradients(self, x: Floats) -> Floats:
        """The gradient of F at every row of x, on all data; same shape as x."""
        return self.sum_gradients(x) / self.agents

    def loss(self, x: Floats) -> float:
        """F averaged over the rows of x."""
        return float(self.sum_losses(x).mean()) / self.agents

    def accuracies(self, x: Floats) -> Floats | None:
        """Test accuracy of the model in each row, or None without test data."""
        return None

    def class_proportions(self) -> Floats | None:
        """The share of each class among every agent's samples, shape (agents, classes); None without labels."""
        return None

    def examples(self) -> Examples | None:
        """The examples of which every objective is the mean; None if there are none, as privacy would need."""
        return None

    def restrict(self, agents: Ints | Sequence[int]) -> "Problem":
        """The same problem with only some of its agents.

        Args:
            agents: Positions in this block, in the desired order.

        Returns:
            A problem whose gradients, also on mini-batches, are bitwise equal to these rows of this one's.
        """
        raise ProblemError(
            f"{type(self).__name__} cannot be restricted to some agents; write its restrict(agents) method"
        )

    def describe(self) -> dict[str, Any]:
        """What is needed to rebuild or to recognize this problem, ready for JSON."""
        return {
            "kind": type(self).__name__,
            "agents": int(self.agents),
            "dim": int(self.dim),
            "fingerprint": self.fingerprint(),
        }

    def _repr_html_(self) -> str:
        return html_table(type(self).__name__, [("agents", self.agents), ("dim", self.dim)])

    def common(self) -> dict[str, Any]:
        """What must be equal on all ranks, ready for JSON; here, kind and dimension.

        A subclass adds the settings that all agents share: seed, batch, regularization, test data.
        """
        return {"kind": type(self).__name__, "dim": int(self.dim)}

    def fingerprint(self) -> str:
        """SHA-256 of what defines the problem, equal for a whole problem and one joined from parts."""
        return self._joined_fingerprint(self.fingerprints())

    @classmethod
    def _joined_fingerprint(cls, fingerprints: Array) -> str:
        return digest(cls.__name__, fingerprints)

    def fingerprints(self) -> Array:
        """SHA-256 of what defines each agent's objective, (agents, 32) bytes; here, of its gradient at one point."""
        point = keyed_uniform(0, np.arange(1), 0, self.dim)
        with np.errstate(all="ignore"):
            gradients = self._whole_gradients(np.repeat(point, self.agents, axis=0))
        return as_bytes(digest(row) for row in gradients)

    def _whole_gradients(self, x: Floats) -> Array:
        """The gradients on all data, checked."""
        return check_returned(self.gradients(x, None), (self.agents, self.dim), f"{type(self).__name__}.gradients")

    def _everywhere(self, row: Floats) -> Floats:
        return np.broadcast_to(row, (self.agents, self.dim))

    def _positions(self, agents: Ints | Sequence[int]) -> Ints:
        """Check the argument of `restrict`."""
        positions = as_array("agents", agents, error=ProblemError)
        if positions.ndim != 1 or positions.size == 0 or positions.dtype.kind not in "iu":
            raise ProblemError(f"restrict found {positions.dtype} of shape {positions.shape}; pass a list of agents")
        wrong = positions[(positions < 0) | (positions >= self.agents)]
        if wrong.size:
            raise ProblemError(f"there is no agent {wrong[0]}: this block has agents 0 to {self.agents - 1}")
        return positions.astype(np.int64)

    def _check_models(self, x: Floats) -> None:
        if x.shape != (self.agents, self.dim):
            raise ProblemError(
                f"models of shape {x.shape} do not match {self.agents} agents with {self.dim} numbers each; "
                f"pass an array of shape {(self.agents, self.dim)}"
            )


class Sourced(Problem):
    """A problem that stores the call that built it."""

    _source: dict[str, Any] | None = None

    def _made_by(self, kind: str, *, block: Any = None, **arguments: Any) -> Self:
        if "alpha" in arguments:
            arguments["alpha"] = np.asarray(arguments["alpha"], dtype=np.float64)
        plain = {name: value if value is None else np.asarray(value).tolist() for name, value in arguments.items()}
        self._source = {"kind": kind, **plain}
        return self if block is None else self._of_block(np.asarray(block).tolist())

    def _inherit(self, parent: "Sourced", ids: Ints) -> Self:
        self._source = parent._source
        return self if self._source is None else self._of_block(ids.tolist())

    def _of_block(self, block: list[int]) -> Self:
        source = {key: value for key, value in (self._source or {}).items() if key != "block"}
        self._source = source if block == list(range(source["agents"])) else {**source, "block": block}
        return self

    def common(self) -> dict[str, Any]:
        """Also the call that built this problem."""
        source = {key: value for key, value in (self._source or {}).items() if key != "block"}
        return super().common() | {"source": source}

    def _repr_html_(self) -> str:
        made = {"dim": self.dim, **(self._source or {"agents": self.agents})}
        return html_table(str(made.pop("kind", type(self).__name__)), list(made.items()))

    def describe(self) -> dict[str, Any]:
        """The call that built this problem, or its shapes and fingerprint if it was built from arrays."""
        return dict(self._source) if self._source is not None else super().describe()


def as_bytes(digests: Iterable[str]) -> Array:
    """Convert hexadecimal digests to the rows of an array of bytes."""
    return np.array([list(bytes.fromhex(text)) for text in digests], dtype=np.uint8)
