"""The table of docs/explanation/perron.md on the study's cells where the first version of PerronD3GD was better.

python -m docs.scripts.first_table (five minutes). The first version planned weights from data and had a gain of at most
0.05: ``rule="planned"`` under such a gain.
"""

from collections.abc import Callable
from unittest.mock import patch

import numpy as np
from scipy.stats import t

from d3gd.arrays import CSR, Floats
from d3gd.rules.gain import Gain, gain_under
from docs.scripts import between
from studies.plan import Trial
from studies.settings import DEFAULT, IDEAL, PLANNED

CELLS = (
    ("digits", "star (12)"),
    ("digits", "torus (16)"),
    ("cancer", "Erdos-Renyi 0.2 (20)"),
    ("cancer", "torus (16)"),
    ("wine", "one-way ring (10)"),
    ("digits", "regular, degree 3 (30)"),
    ("digits", "exponential (32)"),
)
SEEDS, STEP, BATCH, ITERATIONS, CAP = 10, 0.5, 16, 1000, 0.05
LATE = [16, 18, 20]  # records at 800, 900 and 1,000 iterations


def capped(A: CSR) -> Gain:
    """Return the gain of the first version."""
    gain = gain_under(A)
    return Gain(min(gain.first, CAP), min(gain.last, CAP))


def ends(place: tuple[str, str], method: str, gain: Callable[[CSR], Gain]) -> Floats:
    """Return the logarithm of the late stationarity for every seed."""
    with patch("d3gd.rules.fixed.gain_under", gain):
        runs = [Trial(*place, BATCH, IDEAL, STEP, method, seed, ITERATIONS).run() for seed in range(SEEDS)]
    return np.log([np.array(run["stationarity"])[LATE] for run in runs]).mean(axis=1)


def ratio(one: Floats, other: Floats) -> str:
    """Return the mean ratio over seeds with its 95 % interval."""
    away = one - other
    half = t.ppf(0.975, SEEDS - 1) * away.std(ddof=1) / np.sqrt(SEEDS)
    mean, low, high = (f"{np.exp(away.mean() + side * half):.2f}" for side in (0, -1, 1))
    return f"{mean} ({low} to {high})"


def row(place: tuple[str, str]) -> str:
    """Return a cell's row of the table."""
    first, mixing = ends(place, PLANNED, capped), ends(place, DEFAULT, capped)
    now, planned = ends(place, DEFAULT, gain_under), ends(place, PLANNED, gain_under)
    ratios = [ratio(now, first), ratio(mixing, first), ratio(now, mixing), ratio(planned, first)]
    return f"| {', '.join(place)} | {' | '.join(ratios)} |"


def main() -> None:
    """Write the table."""
    header = [
        '| | default / first version | by the weights | by the gain | `rule="planned"` / first version |',
        "|" + 5 * "---|",
    ]
    between.write("explanation/perron.md", "first", "\n".join([*header, *map(row, CELLS)]))


if __name__ == "__main__":
    main()
