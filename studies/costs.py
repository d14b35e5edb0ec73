"""The cost of each method, in iterations and bytes, to reach the final value of tuned Di-DGD."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from d3gd.comparison.numbers import quantile, reached
from studies.plan import BASELINE
from studies.summary import Cell, Ratio, Run


def costs(best: Sequence[Run]) -> dict[tuple[Cell, str, int], tuple[float, float]]:
    """Return the cost of reaching tuned Di-DGD's final stationarity, by cell, method and seed.

    Args:
        best: The runs at their tuned steps.

    Returns:
        Iterations and bytes, as shares of Di-DGD's whole run; infinite for a run that does not reach the target.
        Trials in which tuned Di-DGD diverged have no target.
    """
    baselines = {(run.cell, run.seed): run for run in best if run.method == BASELINE}
    found = {}
    for run in best:
        baseline = baselines[run.cell, run.seed]
        if baseline.diverged:
            continue
        when = np.inf
        if not run.diverged:
            when = reached(run.curves["iterations"], run.curves["stationarity"], baseline.value("stationarity"))
        sent = np.inf if np.isinf(when) else float(np.interp(when, run.curves["iterations"], run.curves["bytes"]))
        whole = (baseline.curves["iterations"][-1], baseline.curves["bytes"][-1])
        found[run.cell, run.method, run.seed] = (when / float(whole[0]), sent / float(whole[1]))
    return found


@dataclass(frozen=True)
class Cost:
    """The cost of a method's runs in a group to reach tuned Di-DGD's result, as shares of Di-DGD's whole run."""

    method: str
    group: str
    iterations: Ratio
    bytes: Ratio
    reached: int
    trials: int


def cost_summaries(best: Sequence[Run]) -> list[Cost]:
    """Return the quartiles over trials of :func:`costs`, for each group and method."""
    spent: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for (cell, method, _), value in costs(best).items():
        spent.setdefault((cell.group, method), []).append(value)
    found = []
    for (group, method), values in spent.items():
        iterations, sent = (Ratio(*(quantile([v[i] for v in values], q) for q in (0.25, 0.5, 0.75))) for i in (0, 1))
        reached_by = sum(bool(np.isfinite(when)) for when, _ in values)
        found.append(Cost(method, group, iterations, sent, reached_by, len(values)))
    return found
