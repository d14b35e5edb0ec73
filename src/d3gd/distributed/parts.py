"""A problem whose agents live on several ranks."""

from typing import Any

from d3gd.arrays import Array, Floats
from d3gd.digest import digest
from d3gd.distributed.halo import Halo
from d3gd.errors import ProblemError
from d3gd.problems import Problem


class SharedProblem(Problem):
    """All agents' objectives, seen from one rank: what its own part does not know is asked of the others.

    No data travel, only models, gradients and sums of them. Every method is collective: all ranks call it with the same
    models. It serves metrics, which look at all agents; steps use the part alone.

    Args:
        part: The objectives of this rank's agents.
        halo: The rank's border.
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
        """Where the part starts."""
        return self.part.start()

    @property
    def has_loss(self) -> bool:
        """Whether the part has one."""
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
        """The test data are everyone's: each rank does its own agents' models."""
        if len(x) != self.agents:
            return self.part.accuracies(x)
        own = self.part.accuracies(self._own(x))
        return None if own is None else self._halo.everyone(own)

    def describe(self) -> dict[str, Any]:
        """What the whole problem would say."""
        facts = self.part.describe()
        facts.pop("block", None)
        return facts | {"agents": self.agents} | ({"fingerprint": self.fingerprint()} if "fingerprint" in facts else {})

    def common(self) -> dict[str, Any]:
        """What the part says."""
        return self.part.common()

    def fingerprints(self) -> Array:
        """Those of all agents."""
        return self._halo.everyone(self.part.fingerprints())

    def fingerprint(self) -> str:
        """What the whole problem would say."""
        return type(self.part)._joined_fingerprint(self.fingerprints())

    def _own(self, x: Floats) -> Floats:
        return x[self._halo.block.agents]


def divided(problem: Any, halo: Halo, n: int) -> tuple[Any, Any]:
    """Return the objectives of this rank's agents, for steps, and those of all agents, for metrics.

    The only place that tells what a run was handed: a whole problem, or a function that makes the objectives of the
    agents it is given. Where such a function makes the whole problem all the same, only this rank's part is kept.
    All ranks must have been handed the same: dimension, settings and, as far as a rank knows them, data.

    Args:
        problem: The problem, or the function.
        halo: The rank's border.
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
    return part, SharedProblem(part, halo, n)


def _require_problem(made: Any, several: bool) -> None:
    if several and not isinstance(made, Problem):
        raise ProblemError(
            f"a {type(made).__name__} cannot be divided among ranks; pass a d3gd.problems.Problem with a restrict "
            "method, or a function that takes a list of agents and returns their problem"
        )
    missing = [name for name in ("agents", "dim", "gradients") if name not in dir(made)]
    if missing:
        raise ProblemError(
            f"a {type(made).__name__} is no problem: it has no {missing[0]!r}; pass a d3gd.problems.Problem, such as "
            "d3gd.problems.from_functions(...)"
        )


def _misfit(found: int, agents: int, n: int, *, whole: bool) -> str:
    if whole or agents == n:
        return f"the problem has {found} agents but the graph has {n}; make both the same size"
    return f"asked for the problem of {agents} agents, the function made one of {found}; make just these"
