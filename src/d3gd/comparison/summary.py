"""Statistics of a comparison: medians with confidence intervals, ranks with ties, cost of a common target."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import comb
from typing import NamedTuple

import numpy as np

from d3gd.comparison.numbers import quantile, reached
from d3gd.comparison.runs import Run

YARDSTICK = "all agents"  # needs that no agent of a network can meet: such methods are baselines, shown but not ranked
_AT_LEAST = 0.9  # coverage of the confidence intervals, if there are enough seeds
_SLACK = 1e-9  # tolerance of the target, so that the method that defines it reaches it despite rounding


class Interval(NamedTuple):
    """A median over seeds with its confidence interval."""

    low: float
    median: float
    high: float


class Cost(NamedTuple):
    """The cost of reaching the target and staying there; infinite if the median run did not."""

    iterations: float
    gradients: float
    bytes: float
    seconds: float


NOWHERE = Interval(np.inf, np.inf, np.inf)
NEVER = Cost(*[np.inf] * len(Cost._fields))


@dataclass(frozen=True)
class Row:
    """One method.

    Attributes:
        method: Its name.
        needs: What its agents must know.
        status: ``"ranked"``, ``"yardstick"``, ``"diverged"``, ``"refused"`` or ``"failed"``.
        note: Remarks.
        step: The tuned step size; NaN if it was never run.
        rank: 1 is best; None if it is not ranked.
        ties: The ranks of the methods that it ties with, see :func:`alike`.
        value: The metric at the end of the budget.
        disagreement: The median disagreement at the end of the budget.
        cost: The cost of reaching the target.
        numbers: Numbers sent per link and iteration.
        pace: Seconds per iteration.
        diverged: Number of seeds on which it diverged.
        seeds: Number of seeds.
        values: The metric by seed.
    """

    method: str
    needs: str
    status: str
    note: str = ""
    step: float = np.nan
    rank: int | None = None
    ties: tuple[int, ...] = ()
    value: Interval = NOWHERE
    disagreement: float = np.nan
    cost: Cost = NEVER
    numbers: float = np.nan
    pace: float = np.nan
    diverged: int = 0
    seeds: int = 0
    values: tuple[float, ...] = ()


def coverage(n: int, k: int) -> float:
    """Return the coverage of the interval between the k-th smallest and k-th largest of n values for their median.

    It holds for any continuous distribution: each value is above its median with probability 1/2.

    Example:
        >>> coverage(5, 1), coverage(3, 1)
        (0.9375, 0.75)
    """
    return 1 - 2 * sum(comb(n, i) for i in range(k)) / 2.0**n


def places(n: int) -> int:
    """Return the k of the narrowest interval with a coverage of at least 90 %, or 1 if there is none."""
    return max([1, *(k for k in range(1, (n + 1) // 2 + 1) if coverage(n, k) >= _AT_LEAST)])


def interval(values: Sequence[float]) -> Interval:
    """Return the median and its distribution-free confidence interval.

    Example:
        >>> interval([5.0, 1.0, 2.0, 4.0, 3.0])
        Interval(low=1.0, median=3.0, high=5.0)
    """
    ordered, k = sorted(values), places(len(values))
    return Interval(ordered[k - 1], quantile(ordered, 0.5), ordered[-k])


def row_of(method: str, needs: str, runs: Sequence[Run], metric: str, note: str = "") -> Row:
    """Summarize a method's reported runs, all with one step; :func:`ranked` adds what depends on other methods."""
    ended = [run for run in runs if run.status not in ("diverged", "failed")]
    values = tuple(run.value(metric) for run in runs)
    spread = interval(values)
    usual = "yardstick" if needs == YARDSTICK else "ranked"
    status = usual if np.isfinite(spread.median) else "diverged"
    lost = len(runs) - len(ended)
    notes = [note] if note else []
    if lost:
        notes.insert(0, f"diverged in {lost} of {len(runs)} seeds")
    starts = [float(run.curves[metric][0]) for run in ended]
    if status != "diverged" and metric != "disagreement" and spread.median >= quantile(starts, 0.5):
        notes.append("no better than the start")
    return Row(
        method,
        needs,
        status,
        "; ".join(notes),
        step=runs[0].step,
        value=spread,
        disagreement=_median([run.value("disagreement") for run in runs]),
        numbers=_median([run.curves["bytes"][-1] / (run.width * run.links * _last(run)) for run in ended]),
        pace=_median([run.curves["seconds"][-1] / _last(run) for run in ended]),
        diverged=lost,
        seeds=len(runs),
        values=values,
    )


def _last(run: Run) -> float:
    return max(1.0, float(run.curves["iterations"][-1]))


def _median(values: Sequence[float]) -> float:
    return quantile(values, 0.5) if len(values) else float("nan")


def ranked(rows: Sequence[Row]) -> list[Row]:
    """Order rows by their medians, number them and note ties; unmeasured rows are last."""
    order = {"ranked": 0, "yardstick": 0, "diverged": 1, "refused": 2, "failed": 3}
    ordered = sorted(rows, key=lambda row: (order[row.status], row.value.median))
    places = {row.method: i for i, row in enumerate((row for row in ordered if row.status == "ranked"), start=1)}
    found = []
    for row in ordered:
        others = [other for other in ordered if other.method in places and other.method != row.method]
        ties = tuple(places[other.method] for other in others if row.method in places and alike(row, other))
        found.append(replace(row, rank=places.get(row.method), ties=ties))
    return found


def alike(a: Row, b: Row) -> bool:
    """Whether two methods tie: their intervals overlap, and neither is better on every seed."""
    overlap = a.value.low <= b.value.high and b.value.low <= a.value.high
    signs = {np.sign(x - y) if x != y else 0.0 for x, y in zip(a.values, b.values, strict=True)}
    return overlap and signs not in ({-1.0}, {1.0})


def target_of(rows: Sequence[Row]) -> float:
    """Return the level at or below which half of the ranked methods end; NaN if there are none."""
    medians = sorted(row.value.median for row in rows if row.status == "ranked")
    return medians[(len(medians) - 1) // 2] if medians else float("nan")


def with_costs(rows: Sequence[Row], runs: Mapping[str, Sequence[Run]], metric: str, target: float) -> list[Row]:
    """Add the median cost of reaching the target to each row."""
    return [
        replace(row, cost=_cost(runs[row.method], metric, target)) if row.status in ("ranked", "yardstick") else row
        for row in rows
    ]


def _cost(runs: Sequence[Run], metric: str, target: float) -> Cost:
    level = target + _SLACK * abs(target)
    spent: list[Cost] = []
    for run in runs:
        k = run.curves["iterations"]
        when = np.inf if run.value(metric) > level else reached(k, run.curves[metric], level)
        cost = Cost(*(float(np.interp(when, k, run.curves[name])) for name in Cost._fields))
        spent.append(cost if np.isfinite(when) else NEVER)
    return Cost(*(quantile(each, 0.5) for each in zip(*spent, strict=True)))
