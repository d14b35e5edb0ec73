"""A problem whose agents are held by several ranks."""

from contextlib import suppress
from typing import Any

import numpy as np

from d3gd.arrays import Array, Floats
from d3gd.data.checks import check_room, check_sizes
from d3gd.digest import digest
from d3gd.distributed.halo import Halo
from d3gd.errors import ProblemError
from d3gd.problems import Problem
from d3gd.random import keyed_uniform


class SharedProblem(Problem):
    """All agents' objectives, as seen by one rank, which queries the other ranks.

    No data are sent, only models, gradients and their sums. Every method is collective: all ranks call it with the same
    models. It serves metrics, which see all agents; steps use the rank's part alone.

    Args:
        part: The objectives of this rank's agents.
        halo: The exchange with other ranks.
        n: The number of agents in the network.
    """

    def __init__(self, part: Problem, halo: Halo, n: int) -> None:
        self.agents, self.dim = n, part.dim
        self.part = part
        self._halo = halo

    def gradients(self, x: Floats, k: int | None = None) -> Floats:
        """Every agent's gradient at its own model."""
        return self._halo.everyone(self.part.gradients(self._own(x), k))

    def start(self) -> Floats:
        """The initial model of the part."""
        return self.part.start()

    @property
    def has_loss(self) -> bool:
        """Whether the part has a loss."""
        return self.part.has_loss

    def losses(self, x: Floats) -> Floats:
        """Every agent's objective at its own model."""
        return self._halo.everyone(self.part.losses(self._own(x)))

    def sum_gradients(self, x: Floats) -> Floats:
        """A sum over ranks."""
        return self._halo.total(self.part.sum_gradients(x))

    def sum_losses(self, x: Floats) -> Floats:
        """A sum over ranks."""
        return self._halo.total(self.part.sum_losses(x))

    def accuracies(self, x: Floats) -> Floats | None:
        """All ranks have the test data: each evaluates its own agents' models."""
        if len(x) != self.agents:
            return self.part.accuracies(x)
        own = self.part.accuracies(self._own(x))
        return None if own is None else self._halo.everyone(own)

    def class_proportions(self) -> Floats | None:
        """The class proportions of all agents."""
        own = self.part.class_proportions()
        return None if own is None else self._halo.everyone(own)

    def describe(self) -> dict[str, Any]:
        """The description of the whole problem."""
        facts = self.part.describe()
        facts.pop("block", None)
        return facts | {"agents": self.agents} | ({"fingerprint": self.fingerprint()} if "fingerprint" in facts else {})

    def common(self) -> dict[str, Any]:
        """The common settings of the part."""
        return self.part.common()

    def fingerprints(self) -> Array:
        """The fingerprints of all agents."""
        return self._halo.everyone(self.part.fingerprints())

    def fingerprint(self) -> str:
        """The fingerprint of the whole problem."""
        return type(self.part)._joined_fingerprint(self.fingerprints())

    def _own(self, x: Floats) -> Floats:
        return x[self._halo.block.agents]


def divided(problem: Any, halo: Halo, n: int) -> tuple[Any, Any]:
    """Return the objectives of this rank's agents, for steps, and those of all agents, for metrics.

    Only this function decides what a run was given: a whole problem, or a function that builds the objectives of the
    given agents. If such a function returns the whole problem, only this rank's part is kept. Dimension, settings and,
    as far as a rank knows them, data must be equal on all ranks.

    Args:
        problem: The problem, or the function.
        halo: The exchange with other ranks.
        n: The number of agents in the network.
    """
    ranks, agents = halo.transport, halo.block.agents
    with ranks.together():
        made = problem(agents) if callable(problem) and not isinstance(problem, Problem) else problem
        _require_problem(made, ranks.ranks > 1)
        if made.agents not in (n, len(agents)) or (made is problem and made.agents != n):
            raise ProblemError(_misfit(made.agents, len(agents), n, whole=made is problem))
        part = made.restrict(agents) if made.agents > len(agents) else made
    if ranks.ranks == 1:
        return part, part
    ranks.require_same(str(part.dim), "models of a length")
    known = [part.common(), made.fingerprint() if made is not part else None]
    ranks.require_same(digest(*known), "a problem (kind, settings or data)")
    if not ranks.any(made is not part):
        _require_same_maker(problem, halo, part.dim)
    return part, SharedProblem(part, halo, n)


def _require_same_maker(make: Any, halo: Halo, dim: int) -> None:
    """Raise an error if the ranks' functions build different objectives for the same agents; collective.

    All ranks build those of the first few agents, in a number that none of them holds: a function that cannot, because
    its rank has the data of its own agents only, fails or returns another number, and is trusted.
    """
    held = halo.transport.each(np.array(len(halo.block.agents))).tolist()
    asked = np.arange(next(m for m in range(1, sum(held)) if m not in held))
    answer = ""
    with suppress(Exception):
        made, point = make(asked), np.repeat(keyed_uniform(0, np.arange(1), 0, dim), len(asked), axis=0)
        if made.agents == len(asked):
            answer = digest(made.fingerprints(), made.gradients(point, 0))
    if all(halo.transport.texts(answer)):
        halo.transport.require_same(answer, "a problem (settings or data of the same agents)")


def _require_problem(made: Any, several: bool) -> None:
    if several and not isinstance(made, Problem):
        raise ProblemError(
            f"a {type(made).__name__} cannot be divided among ranks; pass a d3gd.problems.Problem with a restrict "
            "method, or a function of a list of agents that returns their problem"
        )
    missing = [name for name in ("agents", "dim", "gradients") if name not in dir(made)]
    if missing:
        raise ProblemError(
            f"a {type(made).__name__} is no problem: it has no {missing[0]!r}; pass a d3gd.problems.Problem, such as "
            "d3gd.problems.from_functions(...)"
        )
    sizes = {"agents": made.agents, "dim": made.dim}
    check_sizes(**sizes)
    check_room(**sizes)


def _misfit(found: int, agents: int, n: int, *, whole: bool) -> str:
    if whole or agents == n:
        return f"the problem has {found} agents but the graph has {n}; make them equal"
    return f"asked for {agents} agents, the function returned a problem of {found}; return just these"
