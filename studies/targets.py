"""The targets of PerronD3GD's rules, with the results of a study."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from d3gd.comparison.numbers import shown
from studies.plan import BASELINE, CONTROL, DEFAULT
from studies.summary import METRICS, Row, summary

# Means over cells of the ratios to Di-DGD at equal steps: stationarity, disagreement.
_MEANS = {
    (DEFAULT, "developed"): (0.10, 0.03),
    (DEFAULT, "held out"): (0.10, 0.02),
}


@dataclass(frozen=True)
class Target:
    """A target, the result, whether it is met, and the cells that violate it."""

    asked: str
    found: str
    met: bool
    against: tuple[str, ...] = ()


def targets(rows: Sequence[Row]) -> list[Target]:
    """Return the targets for a comparison at equal steps."""
    found = []
    for (method, group), limits in _MEANS.items():
        one = summary(rows, method, group)
        if one is not None:
            means = [one.mean[metric] for metric in METRICS]
            asked = f"{method}, {group} cells: means at most {limits[0]:.2f} and {limits[1]:.2f} of {BASELINE}"
            met = means[0] <= limits[0] and means[1] <= limits[1]
            found.append(Target(asked, f"{shown(means[0])} and {shown(means[1])}", met))
    found += [_no_cell_above(rows, reference) for reference in (BASELINE, CONTROL)]
    lost = [f"{row.cell}: {row.lost} seeds" for row in rows if row.method == DEFAULT and row.lost]
    asked = f"{DEFAULT}: no run diverges where {BASELINE} does not"
    found.append(Target(asked, f"in {len(lost)} cells" if lost else "none does", not lost, tuple(lost)))
    return found


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
        f"{DEFAULT}: no cell above 1.0 of {reference} beyond seed noise",
        f"{len(beyond)} of {len(ratios)} ratios ({len(above)} in the median); worst {shown(worst[0])} ({worst[2]})",
        not beyond,
        tuple(f"{cell}: {shown(median)}, lower quartile {shown(low)}" for median, low, cell in beyond),
    )
