"""The targets of PerronD3GD's rules, with the results of a study."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from d3gd.comparison.numbers import shown
from studies.plan import BASELINE, CONTROL, DEFAULT, LOCAL
from studies.summary import METRICS, Row, summary

# Means over cells of the ratios to Di-DGD at equal steps: stationarity, disagreement.
_MEANS = {
    (DEFAULT, "developed"): (0.10, 0.03),
    (DEFAULT, "held out"): (0.10, 0.02),
    (LOCAL, "developed"): (0.15, 0.05),
    (LOCAL, "held out"): (0.25, 0.10),
}
# No cell may exceed these; for the default only beyond seed noise, that is, if its lower quartile exceeds too.
_CEILINGS = {DEFAULT: (1.0, " beyond seed noise"), LOCAL: (1.2, "")}


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
    for method in _CEILINGS:
        found += [_no_cell_above(rows, method, reference) for reference in (BASELINE, CONTROL)]
        lost = [f"{row.cell}: {row.lost} seeds" for row in rows if row.method == method and row.lost]
        asked = f"{method}: no run diverges where {BASELINE} does not"
        found.append(Target(asked, f"in {len(lost)} cells" if lost else "none does", not lost, tuple(lost)))
    return found


def _no_cell_above(rows: Sequence[Row], method: str, reference: str) -> Target:
    limit, noise = _CEILINGS[method]
    ratios = [
        (ratio.median, ratio.low, f"{metric}, {row.cell}")
        for row in rows
        if row.method == method
        for metric, ratio in row.ratios[reference].items()
        if not np.isnan(ratio.median)
    ]
    above = [ratio for ratio in ratios if ratio[0] > limit]
    beyond = sorted((ratio for ratio in above if not noise or ratio[1] > limit), reverse=True)
    worst = max(ratios, default=(float("nan"), 0.0, "no cell"))
    counts = f"{len(beyond)} of {len(ratios)} ratios" + (f" ({len(above)} in the median)" if noise else "")
    return Target(
        f"{method}: no cell above {limit:.1f} of {reference}{noise}",
        f"{counts}; worst {shown(worst[0])} ({worst[2]})",
        not beyond,
        tuple(f"{cell}: {shown(median)}, lower quartile {shown(low)}" for median, low, cell in beyond),
    )
