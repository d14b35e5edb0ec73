r"""Statistics of a study's curves: ratios by cell, their means and maxima, and shares of the gain.

- The *value* of a run is the geometric mean of its records at 80, 90 and 100 % of the iterations, infinite if it
  diverged.
- A *cell* is a data set, network, batch size and step size. The *ratio* of a method there is the median over seeds of
  its value over the reference's at the same seed, in logarithms. Seeds on which the reference diverged have no ratio.
- *Equal step*: method and reference use the same step. *Tuned*: each uses the step of the grid with the smallest median
  stationarity for that data set, network and batch size, and the cell's ``step`` is None.
- A *mean* over cells is geometric, with ratios below ``FLOOR`` counted as ``FLOOR``, so that no cell decides it alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from d3gd.arrays import Floats
from d3gd.comparison.numbers import quantile
from studies.plan import ADAPT, BASELINE, CONTROL, CORRECTION, DEFAULT, DEVELOPED, MIXING

METRICS = ("stationarity", "disagreement")
GROUPS = ("developed", "held out")
FLOOR = 1e-7
PARTS = ("exact pi", ADAPT, CORRECTION, MIXING)


class Cell(NamedTuple):
    """A setting in which methods are compared; ``step`` is None if each uses its best."""

    data: str
    network: str
    batch: int | None
    step: float | None

    @property
    def group(self) -> str:
        """Whether the rules were developed on this cell."""
        return GROUPS[(self.data, self.network) not in DEVELOPED]

    def __str__(self) -> str:
        batch = "full batch" if self.batch is None else f"batch {self.batch}"
        return f"{self.data}, {self.network}, {batch}" + ("" if self.step is None else f", step {self.step:g}")


@dataclass(frozen=True)
class Run:
    """One method's curves in one cell with one seed."""

    cell: Cell
    method: str
    seed: int
    step: float
    diverged: bool
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
    """One method in one cell: its ratios by reference and metric, and the status of its runs."""

    cell: Cell
    method: str
    ratios: Mapping[str, Mapping[str, Ratio]]
    completed: int
    diverged: int
    lost: int  # seeds on which it diverged and Di-DGD did not
    won: int  # seeds on which Di-DGD diverged and it did not


class Worst(NamedTuple):
    """The largest ratio and its cell."""

    ratio: float
    cell: Cell


@dataclass(frozen=True)
class Summary:
    """One method over the cells of a group, against one reference; all but the counts by metric."""

    method: str
    cells: int
    mean: Mapping[str, float]
    finite_mean: Mapping[str, float]  # without the cells in which it diverged
    infinite: int
    worst: Mapping[str, Worst]
    above: Mapping[str, int]  # cells above 1 in the median and in the lower quartile
    lost: int
    won: int


def runs_of(trials: Iterable[Mapping[str, Any]]) -> list[Run]:
    """Return the runs of trials as :func:`studies.plan.run_trials` returns them."""
    return [
        Run(
            Cell(t["trial"]["data"], t["trial"]["network"], t["trial"]["batch"], run["step_size"]),
            run["method"],
            t["trial"]["seed"],
            run["step_size"],
            run["status"] == "diverged",
            {name: np.array(run[name], dtype=np.float64) for name in ("iterations", "bytes", *METRICS)},
        )
        for t in trials
        for run in t["runs"]
    ]


def tuned(runs: Sequence[Run]) -> list[Run]:
    """Keep each method's runs at its best step, as one cell; at the smallest step if all diverge."""
    values: dict[tuple[Cell, str], dict[float, list[float]]] = {}
    for run in runs:
        place = values.setdefault((run.cell._replace(step=None), run.method), {})
        place.setdefault(run.step, []).append(run.value("stationarity"))
    best = {key: min(sorted(steps), key=lambda s: quantile(steps[s], 0.5)) for key, steps in values.items()}
    kept = [replace(run, cell=run.cell._replace(step=None)) for run in runs]
    order = {method: i for i, method in enumerate(dict.fromkeys(run.method for run in runs))}
    return sorted((r for r in kept if r.step == best[r.cell, r.method]), key=lambda run: order[run.method])


def rows_of(runs: Sequence[Run]) -> list[Row]:
    """Compare every method with both references in every cell, in the order of the runs."""
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
        ratios = {
            reference: {m: ratio_of(values[(cell, method), m], values.get(((cell, reference), m), {})) for m in METRICS}
            for reference in (BASELINE, CONTROL)
        }
        beside = [(run.diverged, found[cell, BASELINE][seed].diverged) for seed, run in seeds.items()]
        diverged = sum(run.diverged for run in seeds.values())
        rows.append(
            Row(
                cell,
                method,
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
    with np.errstate(divide="ignore"):
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


def summary(rows: Sequence[Row], method: str, group: str, reference: str = BASELINE) -> Summary | None:
    """Summarize one method over the cells of a group; None if none of them has a ratio."""
    here = [row for row in rows if row.method == method and row.cell.group == group]
    there = [row for row in here if not np.isnan(row.ratios[reference]["stationarity"].median)]
    if not there:
        return None
    ratios = {m: [(row.ratios[reference][m], row.cell) for row in there] for m in METRICS}
    finite = {m: [r.median for r, _ in ratios[m] if np.isfinite(r.median)] for m in METRICS}
    return Summary(
        method,
        cells=len(there),
        mean={m: mean_of([r.median for r, _ in ratios[m]]) for m in METRICS},
        finite_mean={m: mean_of(finite[m]) for m in METRICS},
        infinite=len(there) - len(finite["stationarity"]),
        worst={m: max((Worst(r.median, cell) for r, cell in ratios[m]), key=lambda w: w.ratio) for m in METRICS},
        above={m: sum(min(r.low, r.median) > 1 for r, _ in ratios[m]) for m in METRICS},
        lost=sum(row.lost for row in here),
        won=sum(row.won for row in here),
    )


def shares(rows: Sequence[Row], group: str, metric: str) -> tuple[dict[str, float], int] | None:
    """Split the default's mean gain, in logarithms, among its parts; return the shares and the number of cells.

    The exact pi and the order (adapt-then-combine) come first, as the methods are built on them. Correction and mixing
    weights may be added in either order: each is credited with the average of its gains as the first and as the last.
    Cells in which one of the methods diverged are left out. None if there is no gain.
    """
    logs: dict[Cell, dict[str, float]] = {}
    for row in rows:
        if row.cell.group == group:
            logs.setdefault(row.cell, {})[row.method] = row.ratios[BASELINE][metric].median
    names = (CONTROL, ADAPT, CORRECTION, MIXING, DEFAULT)
    whole = [cell for cell in logs.values() if all(np.isfinite(cell.get(name, np.nan)) for name in names)]
    pi, adapt, correct, mix, both = (np.log(mean_of([cell[name] for cell in whole])) for name in names)
    if not both < 0:
        return None
    gains = (pi, adapt - pi, (correct - adapt + both - mix) / 2, (mix - adapt + both - correct) / 2)
    return {name: float(gain / both) for name, gain in zip(PARTS, gains, strict=True)}, len(whole)
