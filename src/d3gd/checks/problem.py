"""Checks that a problem has the properties that methods rely on."""

import json

import numpy as np

from d3gd.arrays import Floats
from d3gd.checks.report import Report, SkippedCheckError, report, require
from d3gd.errors import ProblemError
from d3gd.problems import Problem
from d3gd.problems.checks import check_returned, require_problem
from d3gd.validation import count, flag, shown

_STEP = 1e-6  # step of the finite differences
_CLOSE = 1e-4  # relative error that their rounding may leave
_DIRECTIONS = 5


def check_problem(problem: Problem, *, seed: int = 0, show: bool = True) -> Report:
    """Check that a problem's functions are consistent: shapes, derivatives, mini-batches, blocks.

    Args:
        problem: The problem.
        seed: The seed of the models at which it is checked.
        show: Whether to print the table.

    Returns:
        The checks; ``report.passed`` is whether all of them passed.

    Example:
        >>> import d3gd
        >>> d3gd.check_problem(d3gd.problems.quadratic(agents=3, dim=2), show=False).passed
        True
    """
    if not isinstance(problem, Problem):
        raise ProblemError(f"problem = {shown(problem)}: pass an object of a class derived from d3gd.problems.Problem")
    require_problem(problem)
    flag("show", show)
    checks = _Checks(problem, count("seed", seed, least=0))
    return report(
        f"{type(problem).__name__} ({problem.agents} agents, models of {problem.dim} numbers)",
        {
            "shapes": checks.shapes,
            "gradient of the loss": checks.derivative,
            "same call, same bits": checks.determinism,
            "arguments untouched": checks.purity,
            "mini-batches": checks.batches,
            "sums over agents": checks.sums,
            "blocks of agents": checks.blocks,
            "description": checks.description,
        },
        show=show,
    )


class _Checks:
    """The checks, at random models."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self.problem, self._rng = problem, np.random.default_rng(seed)
        start = check_returned(problem.start(), (problem.dim,), f"{type(problem).__name__}.start")
        self.x: Floats = start + self._rng.normal(size=(problem.agents, problem.dim))

    def shapes(self) -> str:
        """Gradients have the shape of models, losses are one number per agent, all are finite."""
        g = np.asarray(self.problem.gradients(self.x, None))
        require(g.shape == self.x.shape, f"gradients have shape {g.shape}; return {self.x.shape}")
        require(bool(np.isfinite(g).all()), f"gradients hold {g[~np.isfinite(g)][:1]} at finite models")
        if self.problem.has_loss:
            f = np.asarray(self.problem.losses(self.x))
            require(f.shape == (len(self.x),), f"losses have shape {f.shape}; return {(len(self.x),)}")
            require(bool(np.isfinite(f).all()), f"losses hold {f[~np.isfinite(f)][:1]} at finite models")
        return f"gradients {g.shape}"

    def derivative(self) -> str:
        """Losses change along random directions as gradients predict."""
        if not self.problem.has_loss:
            raise SkippedCheckError("the problem has no loss")
        worst = 0.0
        g = self.problem.gradients(self.x, None)
        for _ in range(_DIRECTIONS):
            v = self._rng.normal(size=self.x.shape)
            step = _STEP * (1 + np.abs(self.x).max())
            ahead, behind = (self.problem.losses(self.x + sign * step * v) for sign in (1, -1))
            slope, expected = (ahead - behind) / (2 * step), np.einsum("id,id->i", g, v)
            away = np.abs(slope - expected) / (np.abs(slope) + np.abs(expected) + np.abs(g).max() + 1)
            agent = int(away.argmax())
            require(
                bool(away[agent] <= _CLOSE),
                f"agent {agent}: the loss changes by {slope[agent]:.6g}, the gradient predicts {expected[agent]:.6g}",
            )
            worst = max(worst, float(away[agent]))
        return f"finite differences agree to {worst:.0e}"

    def determinism(self) -> str:
        """Random draws depend on keys alone."""
        for k in (None, 0, 7):
            first, second = (self.problem.gradients(self.x, k) for _ in range(2))
            require(np.array_equal(first, second), f"two calls of gradients(x, k={k}) differ; key what is random by k")
        return "k = None, 0 and 7"

    def purity(self) -> str:
        """Models are not changed, and a later call does not overwrite earlier results."""
        x = self.x.copy()
        g = self.problem.gradients(x, 0)
        require(np.array_equal(x, self.x), "gradients(x) changed x; work on a copy")
        kept = np.array(g)
        self.problem.gradients(x + 1, 1)
        require(np.array_equal(g, kept), "a later call changed gradients that were returned; return a new array")
        return ""

    def batches(self) -> str:
        """Either every key gives the gradient on all data, or keys draw different samples."""
        full = self.problem.gradients(self.x, None)
        draws = [self.problem.gradients(self.x, k) for k in range(20)]
        if all(np.array_equal(draw, full) for draw in draws):
            return "none: all data every time"
        require(
            any(not np.array_equal(draw, draws[0]) for draw in draws),
            "every key draws the same samples, and not all data; draw by k",
        )
        return "drawn by the iteration"

    def sums(self) -> str:
        """Sums over agents equal the sums of their values."""
        x = self.x[:2]
        everywhere = [np.repeat(row[None], self.problem.agents, axis=0) for row in x]
        expected = np.stack([self.problem.gradients(rows, None).sum(axis=0) for rows in everywhere])
        found = self.problem.sum_gradients(x)
        close = np.allclose(found, expected, rtol=1e-6, atol=1e-6 * (1 + np.abs(expected).max()))
        require(close, "sum_gradients(x) is not the sum of the agents' gradients at x")
        if self.problem.has_loss:
            losses = np.array([self.problem.losses(rows).sum() for rows in everywhere])
            require(
                np.allclose(self.problem.sum_losses(x), losses, rtol=1e-6, atol=1e-6 * (1 + np.abs(losses).max())),
                "sum_losses(x) is not the sum of the agents' losses at x",
            )
        return ""

    def blocks(self) -> str:
        """An agent's gradient does not depend, bitwise, on the other agents in the block."""
        if type(self.problem).restrict is Problem.restrict:
            raise SkippedCheckError("no restrict(agents): runs on one process only")
        whole = self.problem.gradients(self.x, 3)
        for some in ([self.problem.agents - 1], list(range(0, self.problem.agents, 2))):
            part = self.problem.restrict(some)
            require(part.agents == len(some), f"restrict({some}) has {part.agents} agents; keep {len(some)}")
            require(
                np.array_equal(part.gradients(self.x[some], 3), whole[some]),
                f"gradients of restrict({some}) differ from those rows of the whole problem",
            )
        return "the same bits"

    def description(self) -> str:
        """The problem can be described in a run's settings and recognized."""
        json.dumps(self.problem.describe())
        require(self.problem.fingerprint() == self.problem.fingerprint(), "its fingerprint changes from call to call")
        return ""
