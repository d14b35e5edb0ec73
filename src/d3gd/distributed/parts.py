"""A problem whose agents live on several ranks."""

from typing import Any

from d3gd.arrays import Array, Floats, Ints
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

    def fingerprints(self) -> Array:
        """Those of all agents."""
        return self._halo.everyone(self.part.fingerprints())

    def fingerprint(self) -> str:
        """What the whole problem would say."""
        return type(self.part)._joined_fingerprint(self.fingerprints())

    def _own(self, x: Floats) -> Floats:
        return x[self._halo.block.agents]


def is_factory(problem: Any) -> bool:
    """Whether this makes problems rather than being one."""
    return callable(problem) and not isinstance(problem, Problem)


def part_of(problem: Any, agents: Ints, n: int) -> Problem:
    """Return the objectives of some agents.

    Args:
        problem: The whole problem, or a function that makes those of the agents it is given.
        agents: The agents.
        n: The number of agents in the network.
    """
    if isinstance(problem, Problem):
        if problem.agents != n:
            raise ProblemError(
                f"the problem has {problem.agents} agents but the graph has {n}; make both the same size"
            )
        return problem.restrict(agents)
    if not is_factory(problem):
        raise ProblemError(
            f"a {type(problem).__name__} cannot be divided among ranks; pass a d3gd.problems.Problem with a restrict "
            "method, or a function that takes a list of agents and returns their problem"
        )
    part = problem(agents)
    if not isinstance(part, Problem) or part.agents != len(agents):
        found = f"{part.agents} agents" if isinstance(part, Problem) else f"a {type(part).__name__}"
        raise ProblemError(f"asked for the problem of {len(agents)} agents, the function made {found}; make just these")
    return part
