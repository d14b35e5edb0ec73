"""Statistics of the study's trials: values, ratios by cell, and their means.

- The *value* of a run is the geometric mean of its records at 80, 90 and 100 % of the iterations, infinite if it
  diverged.
- A *cell* is a data set, network, batch size, hardship and step size. The *ratio* of a method there is the median over
  seeds of its value over the reference's at the same seed, in logarithms. Seeds on which the reference diverged have no
  ratio.
- A *mean* over cells is geometric, with ratios below ``FLOOR`` counted as ``FLOOR``, so that no cell decides it alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from d3gd.arrays import Floats
from d3gd.comparison.numbers import quantile
from studies.plan import GROUPS, Part, Trial
from studies.settings import AVERAGED, BASELINE, CONTROL, IDEAL

METRICS = ("stationarity", "disagreement")
REFERENCES = (BASELINE, CONTROL, AVERAGED)
FLOOR = 1e-7


class Cell(NamedTuple):
    """A setting in which methods are compared."""

    data: str
    network: str
    batch: int | None
    hardship: str
    step: float

    @property
    def group(self) -> str:
        """The part of the study to which it belongs; those with hardships, and quadratics, have none."""
        place = (self.data, self.network)
        return next((name for name, places in GROUPS.items() if place in places and self.hardship == IDEAL), "")

    @property
    def reference(self) -> str:
        """The method with which others are compared: under hardships, one that survives them."""
        return BASELINE if self.hardship == IDEAL else AVERAGED

    def __str__(self) -> str:
        hard = "" if self.hardship == IDEAL else f", {self.hardship}"
        return f"{self.data}, {self.network}, {batch_words(self.batch)}{hard}, step {self.step:g}"


def batch_words(batch: int | None) -> str:
    """Return a batch size in words."""
    return "full batch" if batch is None else f"batch {batch}"


@dataclass(frozen=True)
class Run:
    """One method's curves in one cell with one seed."""

    cell: Cell
    method: str
    seed: int
    diverged: bool
    dim: int
    curves: Mapping[str, Floats] = field(repr=False)

    def value(self, metric: str) -> float:
        """Return the geometric mean over the last fifth, or infinity if the run diverged."""
        iterations, curve = self.curves["iterations"], self.curves[metric]
        if self.diverged:
            return np.inf
        last = curve[np.isin(iterations, np.round(iterations[-1] * np.array([0.8, 0.9, 1.0])))]
        with np.errstate(divide="ignore"):
            value = float(np.exp(np.mean(np.log(last))))
        return np.inf if np.isnan(value) else value


class Ratio(NamedTuple):
    """The quartiles over seeds of a ratio; NaN if there is none."""

    low: float
    median: float
    high: float


@dataclass(frozen=True)
class Row:
    """One method in one cell: median values, ratios by reference and metric, and the status of its runs."""

    cell: Cell
    method: str
    values: Mapping[str, float]
    ratios: Mapping[str, Mapping[str, Ratio]]
    completed: int
    diverged: int
    lost: int  # seeds on which it diverged and the cell's reference did not
    won: int  # seeds on which that diverged and it did not

    @property
    def ratio(self) -> Mapping[str, Ratio]:
        """The ratios to the cell's reference."""
        return self.ratios[self.cell.reference]


class Worst(NamedTuple):
    """The largest ratio and its cell."""

    ratio: float
    cell: Cell


@dataclass(frozen=True)
class Summary:
    """One method over some cells, against their references; all but the counts by metric."""

    method: str
    cells: int
    mean: Mapping[str, float]
    finite_mean: Mapping[str, float]  # without the cells in which it diverged
    infinite: int
    worst: Mapping[str, Worst]
    above: Mapping[str, int]  # cells above 1 in the median and in the lower quartile


def runs_of(trials: Mapping[Trial, Mapping[str, Any]], part: Part) -> list[Run]:
    """Return the runs of a part."""
    return [
        Run(
            Cell(trial.data, trial.network, trial.batch, trial.hardship, trial.step),
            trial.method,
            trial.seed,
            trials[trial]["status"] == "diverged",
            int(trials[trial]["dim"]),
            {name: np.array(trials[trial][name], dtype=np.float64) for name in ("iterations", "bytes", *METRICS)},
        )
        for trial in part.trials
    ]


def rows_of(runs: Sequence[Run]) -> list[Row]:
    """Compare every method with the references in every cell, in the order of the runs."""
    found: dict[tuple[Cell, str], dict[int, Run]] = {}
    for run in runs:
        found.setdefault((run.cell, run.method), {})[run.seed] = run
    values = {
        (key, metric): {seed: run.value(metric) for seed, run in seeds.items()}
        for key, seeds in found.items()
        for metric in METRICS
    }
    rows = []
    for (cell, method), seeds in found.items():
        mine = {m: values[(cell, method), m] for m in METRICS}
        ratios = {
            reference: {m: ratio_of(mine[m], values.get(((cell, reference), m), {})) for m in METRICS}
            for reference in REFERENCES
        }
        others = found.get((cell, cell.reference), {})
        beside = [(run.diverged, others[seed].diverged) for seed, run in seeds.items() if seed in others]
        diverged = sum(run.diverged for run in seeds.values())
        rows.append(
            Row(
                cell,
                method,
                {m: quantile(list(mine[m].values()), 0.5) for m in METRICS},
                ratios,
                completed=len(seeds) - diverged,
                diverged=diverged,
                lost=beside.count((True, False)),
                won=beside.count((False, True)),
            )
        )
    return rows


def ratio_of(values: Mapping[int, float], reference: Mapping[int, float]) -> Ratio:
    """Return the quartiles, in logarithms, over the seeds on which the reference is finite.

    Example:
        >>> ratio_of({0: 1.0, 1: 4.0, 2: 5.0}, {0: 1.0, 1: 1.0, 2: np.inf})
        Ratio(low=1.414..., median=2.0, high=2.828...)
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = [float(np.log(values[seed] / r)) for seed, r in reference.items() if seed in values and np.isfinite(r)]
    if not logs:
        return Ratio(np.nan, np.nan, np.nan)
    low, median, high = (float(np.exp(quantile(logs, q))) for q in (0.25, 0.5, 0.75))
    return Ratio(low, median, high)


def mean_of(ratios: Sequence[float]) -> float:
    """Return the geometric mean with the floor; NaN without ratios.

    Example:
        >>> round(mean_of([0.0, 1e-1]), 9)
        0.0001
    """
    return float(np.exp(np.mean(np.log(np.maximum(ratios, FLOOR))))) if len(ratios) else float("nan")


def among(rows: Iterable[Row], group: str, batch: int | None) -> list[Row]:
    """Return the rows of a group with one batch size: exact and noisy gradients are two populations."""
    return [row for row in rows if row.cell.group == group and row.cell.batch == batch]


def summary(rows: Iterable[Row], method: str, reference: str | None = None) -> Summary | None:
    """Summarize one method over the cells of some rows; None if none of them has a ratio.

    Args:
        rows: The rows, of any method.
        method: The method.
        reference: The method to compare with; by default that of each cell.
    """
    here = [(row.cell, row.ratios[reference or row.cell.reference]) for row in rows if row.method == method]
    there = [(cell, ratio) for cell, ratio in here if not np.isnan(ratio["stationarity"].median)]
    if not there:
        return None
    finite = {m: [ratio[m].median for _, ratio in there if np.isfinite(ratio[m].median)] for m in METRICS}
    return Summary(
        method,
        cells=len(there),
        mean={m: mean_of([ratio[m].median for _, ratio in there]) for m in METRICS},
        finite_mean={m: mean_of(finite[m]) for m in METRICS},
        infinite=len(there) - len(finite["stationarity"]),
        worst={m: max((Worst(ratio[m].median, cell) for cell, ratio in there), key=lambda w: w.ratio) for m in METRICS},
        above={m: sum(min(ratio[m].low, ratio[m].median) > 1 for _, ratio in there) for m in METRICS},
    )


def against(rows: Sequence[Row], method: str, other: str, metric: str) -> dict[Cell, float]:
    """Return a method's median value over another's, by cell; cells in which both diverged are left out."""
    values = {(row.cell, row.method): row.values[metric] for row in rows}
    found = {}
    for (cell, name), value in values.items():
        if name == method and (cell, other) in values:
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = float(np.divide(value, values[cell, other]))
            if not np.isnan(ratio):
                found[cell] = ratio
    return found
