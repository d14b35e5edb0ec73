"""One run of a comparison: a method with a step size on the network and data of a seed, within a budget."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from d3gd import engine, metrics
from d3gd.algorithms.base import Algorithm
from d3gd.arrays import Floats
from d3gd.comparison.scenario import Budget, Scenario
from d3gd.digest import digest
from d3gd.metrics import Metric, Snapshot
from d3gd.runs.trials import in_one_line

SPENT: Mapping[str, Metric] = {name: metrics.METRICS[name] for name in ("bytes", "gradients")}
_FLOOR = 1e-24  # relative to the start: below it, a sum of squares is zero up to rounding


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes:
        method: The method's name.
        step: Its step size.
        seed: The seed of network, data and noise.
        status: How it ended, ``"failed"`` if the method raised an error.
        message: An explanation of the status.
        links: Number of links of the network.
        width: Bytes per number.
        curves: The recorded metrics, including ``iterations``.
        budget: Its budget.
    """

    method: str
    step: float
    seed: int
    status: str
    message: str
    links: int
    width: int
    curves: Mapping[str, Floats] = field(repr=False)
    budget: Budget = field(repr=False)

    @property
    def diverged(self) -> bool:
        """Whether the run diverged."""
        return self.status == "diverged"

    @property
    def end(self) -> float:
        """The iteration at which the budget is used up, interpolated between records."""
        k = self.curves["iterations"]
        ends = [float(np.interp(limit, self.curves[name], k)) for name, limit in self.budget.limits.items()]
        return min([float(k[-1]), *ends])

    def value(self, metric: str) -> float:
        """Return a metric at the end of the budget, or infinity if the run did not get there."""
        if self.status in ("diverged", "failed"):
            return np.inf
        curve = self.curves[metric]
        last = float(between(self.end, self.curves["iterations"], curve))
        if metric.startswith("stationarity"):
            last = max(last, _FLOOR * float(curve[0]))
        return last if np.isfinite(last) else np.inf


def between(at: Any, x: Floats, y: Floats) -> Any:
    """Interpolate a curve, exponentially if it is positive.

    Example:
        >>> round(float(between(1.0, np.array([0.0, 2.0]), np.array([1.0, 1e-4]))), 9)
        0.01
    """
    if np.all((y > 0) & (y < np.inf)):
        return np.exp(np.interp(at, x, np.log(y)))
    return np.interp(at, x, y)


@dataclass(frozen=True)
class Piece:
    """A run to perform."""

    method: str
    step: float
    seed: int
    algorithm: Algorithm[Any]
    scenario: Scenario
    budget: Budget
    metrics: tuple[str, ...]
    records: int  # records of the run

    def run(self, key: str) -> dict[str, Any]:
        """Perform the run and return its content, ready for JSON; errors of the method are part of it."""
        case = self.scenario.case(self.seed)
        iterations = self.budget.most(case, self.algorithm)
        known, watch = recorded(case.problem, case.graph.n), Stopwatch()
        content = {"key": key, "method": self.method, "step": self.step, "seed": self.seed}
        content |= {"links": case.graph.link_count, "width": case.width, "curves": {}}
        try:
            result = engine.run(
                self.algorithm,
                case.graph,
                case.problem,
                weights=case.weights,
                # Methods that do not survive the conditions are shown too, as biased.
                conditions=None if case.conditions is None else replace(case.conditions, biased=True),
                dtype=case.dtype,
                iterations=iterations,
                every=max(1, iterations // self.records),
                seed=self.seed,
                metrics={"seconds": watch, **{name: known[name] for name in self.metrics}, **SPENT},
                callbacks=[self._is_used_up, watch.resume],
                progress=False,
            )
        except Exception as error:  # an error of one method must not end the comparison
            return {**content, "status": "failed", "message": in_one_line(error)}
        if result.status == "interrupted":  # by Ctrl-C, which ends the whole comparison
            raise KeyboardInterrupt
        curves = {"iterations": result.iterations, **result.metrics}
        return {
            **content,
            "status": result.status,
            "message": result.message,
            "curves": {name: values.tolist() for name, values in curves.items()},
        }

    def _is_used_up(self, snapshot: Snapshot) -> bool:
        return any(SPENT[name](snapshot) >= limit for name, limit in self.budget.limits.items())


def read(content: Mapping[str, Any], budget: Budget) -> Run:
    """Return the run from its stored content."""
    words = {name: content[name] for name in ("method", "step", "seed", "status", "message", "links", "width")}
    curves = {name: np.array(values, dtype=np.float64) for name, values in content["curves"].items()}
    return Run(**words, curves=curves, budget=budget)


def place(out: Path, method: str) -> Path:
    """Return the folder of a method's runs in that of a comparison; a method's name may be any text."""
    word = "-".join("".join(c if c.isascii() and c.isalnum() else " " for c in method).split())[:40]
    return out / "runs" / f"{word}-{digest(method)[:6]}"


class Stopwatch:
    """The processor time of the iterations, as a metric: it pauses while other metrics are computed.

    Of the process, so that other processes on the machine do not count.

    It must be the first metric, and :meth:`resume` the last callback.
    """

    def __init__(self) -> None:
        self._seconds = 0.0
        self._since: float | None = None

    def __call__(self, snapshot: Snapshot) -> float:
        """Stop, and return the time so far."""
        if self._since is not None:
            self._seconds += time.process_time() - self._since
        return self._seconds

    def resume(self, snapshot: Snapshot) -> None:
        """Resume the measurement."""
        self._since = time.process_time()


def recorded(problem: Any, n: int) -> dict[str, Metric]:
    """Return the metrics by which methods can be ranked on a problem; smaller is better for all of them."""
    usual = metrics.default_metrics(problem, n)
    others = ("accuracy", "n_min_pi", *SPENT)
    kept = {name: metric for name, metric in usual.items() if not name.startswith(others)}
    return kept | ({"error": error_rate} if "accuracy" in usual else {})


def error_rate(snapshot: Snapshot) -> float:
    """Return the test error, averaged over agents."""
    return 1 - metrics.accuracy(snapshot)
