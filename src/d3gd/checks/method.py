"""Checks that a method is decentralized, reproducible and has the properties it declares."""

import tempfile
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from d3gd.algorithms.base import Algorithm, require_method
from d3gd.arrays import Array, Bools, Floats
from d3gd.checks.report import Report, SkippedCheckError, report, require
from d3gd.digraph import Digraph, require_graph
from d3gd.distributed.inbox import Inbox
from d3gd.engine import run
from d3gd.engine.gradients import Gradients
from d3gd.errors import ProblemError
from d3gd.graphs import exponential, grid
from d3gd.network import Network
from d3gd.problems import Problem, quadratic
from d3gd.problems.checks import require_problem
from d3gd.result import Result
from d3gd.state import flatten, kinds, restore
from d3gd.transports.threads import on_threads
from d3gd.validation import flag
from d3gd.weights import metropolis

_AGENTS, _DIM = 8, 3
_ITERATIONS = 24
_LONG = 3000  # iterations in which an exact method should converge
_NUDGE = 1e6  # factor of one agent's gradient, large enough to be visible


def check_method(
    method: Algorithm[Any], graph: Digraph | None = None, problem: Problem | None = None, *, show: bool = True
) -> Report:
    """Check a method on a small network: declarations, purity, decentralization, equal results on several ranks.

    Args:
        method: The method.
        graph: The network; by default one of 8 agents that suits the method.
        problem: The problem; by default quadratics. It needs ``restrict`` for the check of ranks.
        show: Whether to print the table.

    Returns:
        The checks; ``report.passed`` is whether all of them passed.

    Example:
        >>> import d3gd
        >>> d3gd.check_method(d3gd.DiDGD(step_size=0.05), show=False).passed
        True
    """
    require_method(method)
    flag("show", show)
    if graph is None:
        graph = grid(2, _AGENTS // 2) if method.needs == "undirected links" else exponential(_AGENTS)
    require_graph(graph)
    usual = quadratic(agents=graph.n, dim=_DIM, seed=0, conditioning=2.0)  # a small step converges soon, too
    chosen = usual if problem is None else problem
    require_problem(chosen)
    if chosen.agents != graph.n:
        raise ProblemError(f"the problem has {chosen.agents} agents but the graph has {graph.n}; make them equal")
    checks = _Checks(method, graph, chosen)
    return report(
        str(method) if is_dataclass(method) else type(method).__name__,
        {
            "first step": checks.first_step,
            "state": checks.state,
            "step is pure": checks.purity,
            "weights": checks.weights,
            "nothing faster than messages": checks.light_cone,
            "same bits on 2 and 3 ranks": checks.ranks,
            "resumed as if never stopped": checks.resume,
            "single precision": checks.single,
            "exact, as declared": checks.exact,
        },
        show=show,
    )


class _Checks:
    """The checks, on one network and problem."""

    def __init__(self, method: Algorithm[Any], graph: Digraph, problem: Problem) -> None:
        self.method, self.graph, self.problem = method, graph, problem

    def first_step(self) -> str:
        """The engine validates a method's declarations and the result of its first step."""
        traffic = self._run(iterations=1).traffic
        sent = [] if traffic is None else traffic.data[self.graph.sources != self.graph.targets].tolist()
        least, most = min(sent, default=0), max(sent, default=0)
        return f"sends {least} bytes per link" if least == most else f"sends {least} to {most} bytes per link"

    def state(self) -> str:
        """Every field is declared per agent, per edge or common: ranks, pauses and checkpoints rely on it."""
        fields = kinds(self._begin()[1])
        return ", ".join(f"{name} per {kind}" if kind in ("agent", "edge") else name for name, kind in fields.items())

    def purity(self) -> str:
        """A step does not change its state and is repeatable, also from a state that was written and read."""
        net, s = self._begin()
        for k in range(3):
            before = {name: np.array(array) for name, array in flatten(s).items()}
            first, second = self._step(net, s, k), self._step(net, s, k)
            for name, array in flatten(s).items():
                require(
                    np.array_equal(array, before[name], equal_nan=True), f"step changed the field {name!r} of its state"
                )
            _require_same(first, second, "two steps from one state differ; key what is random by net.draw(k)")
            again = self._step(net, restore(s, before), k)
            _require_same(first, again, "a step from a copy of the state differs: something is kept outside of it")
            s = first
        return ""

    def weights(self) -> str:
        """The weights in use are averages: not negative, rows that sum to one."""
        A = self._run(iterations=_ITERATIONS).weights
        require(A.data.min() >= 0, f"a weight is {A.data.min():.3g}; weights must not be negative")
        away = float(np.abs(A.sum(axis=1) - 1).max())
        require(away <= 1e-9, f"rows of the weights sum to one only within {away:.1e}")
        return ""

    def light_cone(self) -> str:
        """Information travels at most one link per exchange; a method that never exchanges has none to check."""
        if self.method.needs == "all agents":
            raise SkippedCheckError('it needs "all agents"')
        hops, nudged = self.graph.hops_from(0), _Nudged(self.problem)
        (net, s), (other, t) = self._begin(), self._begin()
        for k in range(_ITERATIONS):
            if net.rounds and k > hops.max():
                break
            s, t = self._step(net, s, k), self._step(other, t, k, nudged)
            changed = (self.method.point(s) != self.method.point(t)).any(axis=1)
            early = np.flatnonzero(changed & (hops > net.rounds))
            require(
                early.size == 0,
                f"after {net.rounds} exchanges, agent {early[:1]} knows of agent 0, {hops[early[:1]]} links away",
            )
        if not net.rounds:
            raise SkippedCheckError(f"it never exchanges: in {_ITERATIONS} iterations every agent worked alone")
        return f"up to {int(hops.max())} links away"

    def ranks(self) -> str:
        """Models on several ranks are bitwise equal to those on one."""
        if type(self.problem).restrict is Problem.restrict:
            raise SkippedCheckError("the problem has no restrict(agents)")
        alone = self._run(iterations=_ITERATIONS)
        for count in (2, 3):
            for result in on_threads(count, lambda rank: self._run(iterations=_ITERATIONS, transport=rank)):
                require(np.array_equal(result.x, alone.x), f"models on {count} ranks differ from those on one")
                sent = int(result.metrics["bytes"][-1])
                require(sent == alone.metrics["bytes"][-1], f"{count} ranks count {sent} bytes, one counts others")
        return ""

    def resume(self) -> str:
        """A resumed run is bitwise equal to an uninterrupted one."""
        whole = self._run(iterations=_ITERATIONS)
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "run"
            self._run(iterations=_ITERATIONS // 2, out=out)
            resumed = self._run(iterations=_ITERATIONS, out=out, resume=True)
        require(np.array_equal(whole.x, resumed.x), "resumed models differ; keep all that a step needs in its state")
        return ""

    def single(self) -> str:
        """Models stay in single precision, and near those of double precision."""
        double, single = (self._run(iterations=_ITERATIONS, dtype=dtype).x for dtype in ("float64", "float32"))
        require(single.dtype == np.float32, f"models became {single.dtype}; use net.precise")
        away = float(np.abs(single - double).max() / (1 + np.abs(double).max()))
        require(away < 1e-2, f"models are {away:.1e} away from those in double precision")
        return f"within {away:.0e} after {_ITERATIONS} iterations"

    def exact(self) -> str:
        """With constant steps and exact gradients, an exact method converges to a stationary point."""
        if not self.method.exact:
            raise SkippedCheckError("it is declared inexact")
        first = float(self._run(iterations=0).metrics["stationarity"][0])
        goal = {"stationarity": 1e-12 * first}
        result = self._run(iterations=_LONG, every=100, metrics=list(goal), target=goal)
        if result.status == "diverged":
            raise SkippedCheckError(f"it diverges at this step size: {result.message}")
        last = float(result.metrics["stationarity"][-1])
        require(last <= goal["stationarity"], f"stationarity fell from {first:.1e} to {last:.1e} only")
        return f"stationarity {last:.0e} after {result.iterations[-1]} iterations"

    def _run(self, *, problem: Problem | None = None, **options: Any) -> Result:
        return run(self.method, self.graph, problem or self.problem, **{"progress": False, "every": 1000, **options})

    def _begin(self) -> tuple["_Counting", Any]:
        net = _Counting(self.graph, metropolis(self.graph), needs=self.method.needs)
        return net, self.method.init(net, np.zeros((self.graph.n, self.problem.dim)))

    def _step(self, net: Network, s: Any, k: int, problem: Problem | None = None) -> Any:
        part, x = problem or self.problem, self.method.point(s)
        gradient = Gradients(part.gradients, x.shape, net.dtype, source=type(part).__name__, agents=net.agents)
        gradient.begin(x, k)
        return self.method.step(net, gradient, s, k)


class _Counting(Network):
    """A network that counts its rounds."""

    rounds = 0

    def exchange(self, *, over: Bools | None = None, **arrays: Array) -> Inbox:
        self.rounds += 1
        return super().exchange(over=over, **arrays)

    def relay(self, table: Floats, fresh: Bools) -> tuple[Floats, Bools]:
        self.rounds += 1
        return super().relay(table, fresh)


class _Nudged(Problem):
    """A problem with a modified gradient of the first agent."""

    def __init__(self, problem: Problem) -> None:
        self._problem, self.agents, self.dim = problem, problem.agents, problem.dim

    def gradients(self, x: Floats, k: int | None = None) -> Floats:
        g = np.array(self._problem.gradients(x, k))
        g[0] += _NUDGE
        return g

    def start(self) -> Floats:
        return self._problem.start()


def _require_same(one: Any, other: Any, otherwise: str) -> None:
    arrays = flatten(other)
    for name, array in flatten(one).items():
        require(np.array_equal(array, arrays[name], equal_nan=True), f"{otherwise} (field {name!r})")
