"""What the runs of a comparison say: medians with intervals, ranks with ties, and the cost of a common target."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import comb
from typing import NamedTuple

import numpy as np

from d3gd.comparison.numbers import quantile, reached
from d3gd.comparison.runs import Run

YARDSTICK = "all agents"  # what no agent of a network knows: such methods are shown, but not ranked
_AT_LEAST = 0.9  # with what chance an interval holds the median, where there are seeds enough
_SLACK = 1e-9  # the method that the target was taken from has got there, whatever interpolation rounds


class Interval(NamedTuple):
    """A median over seeds, and between which values the true one lies."""

    low: float
    median: float
    high: float


class Cost(NamedTuple):
    """What it took to get to the target and stay there; infinite for a median run that did not."""

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
        note: What there is to say about it.
        step: The tuned step size; NaN if it was never run.
        rank: 1 is best; None where there is none.
        ties: The ranks of those from which it cannot be told, see :func:`alike`.
        value: The metric at the end of the budget.
        disagreement: Its median there.
        cost: What the target took.
        numbers: Numbers sent per link and iteration.
        pace: Seconds per iteration.
        diverged: In how many seeds.
        seeds: Of how many.
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
    """Return the chance that the k-th least and k-th greatest of n values lie around the median they are drawn from.

    It holds for any distribution without jumps: values fall above and below its median as coins do.

    Example:
        >>> coverage(5, 1), coverage(3, 1)
        (0.9375, 0.75)
    """
    return 1 - 2 * sum(comb(n, i) for i in range(k)) / 2.0**n


def places(n: int) -> int:
    """Return the k of the narrowest interval that holds the median with a chance of 90 %, or 1 if none does."""
    return max([1, *(k for k in range(1, (n + 1) // 2 + 1) if coverage(n, k) >= _AT_LEAST)])


def interval(values: Sequence[float]) -> Interval:
    """Return the median and the distribution-free interval around it.

    Example:
        >>> interval([5.0, 1.0, 2.0, 4.0, 3.0])
        Interval(low=1.0, median=3.0, high=5.0)
    """
    ordered, k = sorted(values), places(len(values))
    return Interval(ordered[k - 1], quantile(ordered, 0.5), ordered[-k])


def row_of(method: str, needs: str, runs: Sequence[Run], metric: str, note: str = "") -> Row:
    """Sum up a method's reported runs, all at one step; what depends on other methods comes with :func:`ranked`."""
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
    """Order rows by their medians, number them and note ties; what was not measured comes last."""
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
    """Return the level that half of the ranked methods end at or below; NaN if there are none."""
    medians = sorted(row.value.median for row in rows if row.status == "ranked")
    return medians[(len(medians) - 1) // 2] if medians else float("nan")


def with_costs(rows: Sequence[Row], runs: Mapping[str, Sequence[Run]], metric: str, target: float) -> list[Row]:
    """Add to rows what it took their runs to get to the target, the median over seeds."""
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
