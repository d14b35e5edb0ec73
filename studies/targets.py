"""The targets of PerronD3GD, with what a study found."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from d3gd.comparison.numbers import shown
from d3gd.comparison.result import Comparison
from studies.plan import PARTS
from studies.settings import ALL, AVERAGED, BASELINE, CENTRAL, CONTROL, DEFAULT, SINGLE
from studies.summary import FLOOR, METRICS, Cell, Row, among, batch_words, summary
from studies.tuned import Setting

# Means over cells of the ratios to Di-DGD at equal steps: stationarity, disagreement.
_MEANS = {"developed": (0.10, 0.03), "held out": (0.10, 0.02)}
_HARD, _HARDEST = (1 / 30, 1 / 1000), (1 / 20, 1 / 1000)  # of averaged Di-DGD's, with full batches
_BATCHES = 0.7  # of its stationarity, with mini-batches
_WORSE = 1.05  # than the first version, in any cell
_LISTED = 12  # cells against a target
_PRECISION = 10  # times the stationarity of centralized gradient descent in the same precision
FIRST = Path(__file__).parent / "first.csv"  # the ratios of the first version
_FIRST_SEEDS = 5  # behind their medians


@dataclass(frozen=True)
class Target:
    """A target, the result, whether it is met (None if that cannot be judged), and what violates it."""

    asked: str
    found: str
    met: bool | None
    against: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """The verdict in words."""
        return "not judged" if self.met is None else "met" if self.met else "not met"


def targets(rows: Mapping[str, Sequence[Row]], tuned: Mapping[Setting, Comparison]) -> list[Target]:
    """Return the targets.

    Args:
        rows: The rows of the study's parts, by name.
        tuned: The comparisons at tuned steps.
    """
    rows = {**dict.fromkeys(PARTS, ()), **rows}
    equal = [*rows["equal steps"], *rows["bottlenecks"], *rows["large"]]
    return [
        *_means(rows["equal steps"]),
        *(_no_cell_above(equal, reference) for reference in (BASELINE, CONTROL)),
        _no_divergence(equal),
        *(_no_cell_worse(rows["first version"], metric) for metric in METRICS),
        *_hardships(rows["hardships"]),
        *_noisy_hardships(rows["hardships, batches"]),
        *_precision(rows["precision"]),
        _inside(tuned),
    ]


def _means(rows: Sequence[Row]) -> Iterator[Target]:
    for group, limits in _MEANS.items():
        for batch in dict.fromkeys(row.cell.batch for row in rows):
            one = summary(among(rows, group, batch), DEFAULT)
            if one is not None:
                means = [one.mean[metric] for metric in METRICS]
                asked = f"{group} cells, {batch_words(batch)}: means at most {limits[0]:.2f} and {limits[1]:.2f} of"
                met = means[0] <= limits[0] and means[1] <= limits[1]
                yield Target(f"{asked} {BASELINE}", f"{shown(means[0])} and {shown(means[1])}", met)


def _no_cell_above(rows: Sequence[Row], reference: str) -> Target:
    """Beyond seed noise, that is, with both the median and the lower quartile above 1."""
    ratios = [
        (ratio.median, ratio.low, f"{metric}, {row.cell}")
        for row in rows
        if row.method == DEFAULT
        for metric, ratio in row.ratios[reference].items()
        if not np.isnan(ratio.median)
    ]
    above = [ratio for ratio in ratios if ratio[0] > 1]
    beyond = sorted((ratio for ratio in above if ratio[1] > 1), reverse=True)
    worst = max(ratios, default=(float("nan"), 0.0, "no cell"))
    return Target(
        f"no cell above 1.0 of {reference} beyond seed noise",
        f"{len(beyond)} of {len(ratios)} ratios ({len(above)} in the median); worst {shown(worst[0])} ({worst[2]})",
        not beyond,
        tuple(f"{cell}: {shown(median)}, lower quartile {shown(low)}" for median, low, cell in beyond),
    )


def _no_divergence(rows: Sequence[Row]) -> Target:
    lost = [f"{row.cell}: {row.lost} seeds" for row in rows if row.method == DEFAULT and row.lost]
    asked = f"no run diverges where {BASELINE} does not"
    return Target(asked, f"in {len(lost)} cells" if lost else "none does", not lost, tuple(lost))


def first_version() -> dict[tuple[str, str, str, float], dict[str, float]]:
    """Return the ratios of PerronD3GD's first version to Di-DGD, by data set, network, batch size and step size."""
    with FIRST.open(newline="") as file:
        return {
            (line["data"], line["network"], line["batch"], float(line["step_size"])): {
                metric: float(line[metric]) for metric in METRICS
            }
            for line in csv.DictReader(file)
        }


def _no_cell_worse(rows: Sequence[Row], metric: str) -> Target:
    """Ratios below the floor of means count as the floor: both are then zero for any purpose."""
    first = first_version()
    found: dict[Cell, float] = {}
    for row in rows:
        cell = row.cell
        key = (cell.data, cell.network, str(cell.batch or "all"), cell.step)
        if row.method == DEFAULT and key in first and not np.isnan(row.ratio[metric].median):
            found[cell] = max(row.ratio[metric].median, FLOOR) / max(first[key][metric], FLOOR)
    asked = f"{metric}: no cell more than 5 % worse than in the first version"
    seeds = max((row.completed + row.diverged for row in rows), default=0)
    if seeds != _FIRST_SEEDS:
        return Target(asked, f"medians of {seeds} seeds cannot be compared with those of {_FIRST_SEEDS}", None)
    worse = sorted(((cell, ratio) for cell, ratio in found.items() if ratio > _WORSE), key=lambda one: -one[1])
    better = sum(ratio < 1 / _WORSE for ratio in found.values())
    return Target(
        asked,
        f"{len(worse)} of {len(found)} worse, {better} better by as much",
        not worse,
        tuple(f"{cell}: {ratio:.2f} times" for cell, ratio in worse[:_LISTED])
        + ((f"{len(worse) - _LISTED} more",) if len(worse) > _LISTED else ()),
    )


def _hardships(rows: Sequence[Row]) -> Iterator[Target]:
    for hardship in dict.fromkeys(row.cell.hardship for row in rows):
        one = summary([row for row in rows if row.cell.hardship == hardship], DEFAULT)
        if one is not None:
            limits = _HARDEST if hardship == ALL else _HARD
            means = [one.mean[metric] for metric in METRICS]
            yield Target(
                f"{hardship}, exact gradients: means at most 1/{1 / limits[0]:.0f} and 1/{1 / limits[1]:,.0f} of "
                f"{AVERAGED}",
                f"{shown(means[0])} and {shown(means[1])}, {one.cells} networks",
                means[0] <= limits[0] and means[1] <= limits[1],
            )


def _noisy_hardships(rows: Sequence[Row]) -> Iterator[Target]:
    one = summary(rows, DEFAULT)
    if one is not None:
        mean, worst = one.mean["stationarity"], one.worst["stationarity"]
        yield Target(
            f"hardships with mini-batches: mean stationarity at most {_BATCHES} of {AVERAGED}, none above 1",
            f"{shown(mean)} over {one.cells} cells; worst {shown(worst.ratio)} ({worst.cell})",
            mean <= _BATCHES and worst.ratio <= 1,
        )


def _precision(rows: Sequence[Row]) -> Iterator[Target]:
    floor = {row.cell: row.values["stationarity"] for row in rows if row.method == CENTRAL + SINGLE}
    found = {
        f"{row.method.removesuffix(SINGLE)}, {row.cell.network}": row.values["stationarity"] / floor[row.cell]
        for row in rows
        if row.method != CENTRAL + SINGLE
    }
    above = {name: ratio for name, ratio in found.items() if not ratio <= _PRECISION}
    if not found:
        return
    worst = max(found, key=lambda name: found[name])
    yield Target(
        f"in float32 every method ends within {_PRECISION} times of {CENTRAL}",
        f"{len(found) - len(above)} of {len(found)}; worst {shown(found[worst])} ({worst})",
        not above,
        tuple(f"{name}: {shown(ratio)}" for name, ratio in above.items()),
    )


def _inside(tuned: Mapping[Setting, Comparison]) -> Target:
    rows = [(setting, row) for setting, found in tuned.items() for row in found.rows if row.status != "diverged"]
    edge = [f"{row.method} ({setting})" for setting, row in rows if "edge" in row.note]
    asked = "no method's tuned step is at the edge of the grid"
    return Target(asked, f"{len(edge)} of {len(rows)}", not edge, tuple(edge))
