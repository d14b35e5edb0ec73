r"""Claims of the paper, their measurements, and the rules of the verdicts.

With T the last iteration, Di-DGD's curve :math:`b` and another curve :math:`c` of the same seed:

- *speed-up*: :math:`1 - k / (T/2)`, with k the iteration from which c stays at or below :math:`b(T/2)`; for a curve
  above this level at T, k = T, a speed-up of -100 %.
- *reduction*: :math:`1 - c(T) / b(T)`.

Every measurement has one value per seed and is judged by its claim's rule. A claim with several measurements is
reproduced if all of them are, not reproduced if none is even partly, and partly otherwise.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from d3gd.arrays import Floats, Ints
from d3gd.reproduce.trial import REFINED, Trial

Verdict: TypeAlias = Literal["reproduced", "partly", "not reproduced"]

_MOST = 0.8  # share of the seeds for which a sign counts as reproduced


@dataclass(frozen=True)
class Rule:
    """A rule that turns the values of all seeds into a verdict."""

    text: str
    judge: Callable[[Floats], Verdict]


@dataclass(frozen=True)
class Measurement:
    """One quantity over all seeds; ``unit`` is "%", where a value of 0.3 is shown as 30 %, or empty."""

    label: str
    values: tuple[float, ...]
    verdict: Verdict
    unit: Literal["%", ""] = "%"

    @property
    def quartiles(self) -> tuple[float, float, float]:
        """The lower quartile, the median and the upper quartile."""
        low, median, high = np.quantile(self.values, [0.25, 0.5, 0.75]).tolist()
        return low, median, high

    def as_dict(self) -> dict[str, Any]:
        """Return all fields, ready for JSON."""
        low, median, high = self.quartiles
        return {**asdict(self), "shown": str(self), "median": median, "lower_quartile": low, "upper_quartile": high}

    def __str__(self) -> str:
        low, median, high = (f"{100 * value:z.1f}" if self.unit else f"{value:+z.2f}" for value in self.quartiles)
        return f"{median} % [{low}, {high}]" if self.unit else f"{median} [{low}, {high}]"


@dataclass(frozen=True)
class Claim:
    """A claim of the paper with our measurements.

    Attributes:
        claim: The claim, in short.
        where: Its place in the paper.
        paper: The paper's figure.
        measure: The measured quantity.
        rule: The rule of the verdict.
        ours: The measurements.
    """

    claim: str
    where: str
    paper: str
    measure: str
    rule: str
    ours: tuple[Measurement, ...]

    @property
    def verdict(self) -> Verdict:
        """The verdict on all measurements together."""
        verdicts = {measurement.verdict for measurement in self.ours}
        return verdicts.pop() if len(verdicts) == 1 else "partly"

    def as_dict(self) -> dict[str, Any]:
        """Return all fields, ready for JSON."""
        return {**asdict(self), "ours": [m.as_dict() for m in self.ours], "verdict": self.verdict}


def speed_up(iterations: Ints, curve: Floats, baseline: Floats) -> float:
    """Return the share of iterations that a curve saves to reach the baseline's level at half time.

    The crossing is interpolated exponentially between two records. Disagreement starts at zero, rises and falls, so the
    iteration counts from which a curve *stays* at or below the level.

    Args:
        iterations: The recorded iterations.
        curve: The values of the curve.
        baseline: The values of the baseline.

    Returns:
        At most 1; negative for a slower curve, -1 for one that is still above the level at the end.

    Example:
        >>> k = np.arange(0, 1001, 2)
        >>> round(speed_up(k, np.exp(-0.02 * k), np.exp(-0.01 * k)), 9)
        0.5
    """
    half = float(iterations[-1]) / 2
    level = float(np.interp(half, iterations, baseline))
    above = np.flatnonzero(curve > level)
    if above.size == 0:
        return 1.0
    last = int(above[-1])
    if last == len(curve) - 1:
        return -1.0
    reached = float(iterations[last + 1])
    if curve[last + 1] > 0:
        share = np.log(curve[last] / level) / np.log(curve[last] / curve[last + 1])
        reached = float(iterations[last] + share * (iterations[last + 1] - iterations[last]))
    return 1 - reached / half


def reduction(curve: Floats, baseline: Floats) -> float:
    """Return the relative reduction of a curve's last value below the baseline's; negative if above.

    Example:
        >>> reduction(np.array([1.0, 0.3]), np.array([1.0, 0.5]))
        0.4
    """
    return float(1 - curve[-1] / baseline[-1])


def at_least(level: float, unit: Literal["%", ""] = "%") -> Rule:
    """Judge a gain by its median and its lower quartile."""

    def judge(values: Floats) -> Verdict:
        low, median = np.quantile(values, [0.25, 0.5])
        met = int(median >= level) + int(low > 0)
        return "reproduced" if met == 2 else "partly" if met == 1 else "not reproduced"

    shown = f"{100 * level:.0f} %" if unit else f"{level:g}"
    return Rule(f"reproduced: median at least {shown} and lower quartile above 0; partly: one of the two", judge)


def has_sign(sign: int) -> Rule:
    """Judge a sign by the share of seeds that have it."""

    def judge(values: Floats) -> Verdict:
        share = float(np.mean(sign * values > 0))
        return "reproduced" if share >= _MOST else "partly" if share > 0.5 else "not reproduced"

    way = "above" if sign > 0 else "below"
    return Rule(f"reproduced: {way} 0 in {100 * _MOST:.0f} % of seeds; partly: in more than half", judge)


def near_zero(tolerance: float) -> Rule:
    """Judge a similarity by the distance of the quartiles from zero."""

    def judge(values: Floats) -> Verdict:
        low, median, high = np.abs(np.quantile(values, [0.25, 0.5, 0.75]))
        if max(low, high) <= tolerance:
            return "reproduced"
        return "partly" if median <= tolerance else "not reproduced"

    return Rule(f"reproduced: quartiles within {100 * tolerance:.0f} points of 0; partly: median is", judge)


def measured(
    rule: Rule, values: Mapping[str, Sequence[float]], unit: Literal["%", ""] = "%"
) -> tuple[Measurement, ...]:
    """Return measurements, one value per seed each, judged by one rule."""
    return tuple(
        Measurement(label, tuple(float(value) for value in row), rule.judge(np.asarray(row, dtype=np.float64)), unit)
        for label, row in values.items()
    )


def judged(
    claim: str,
    where: str,
    paper: str,
    measure: str,
    rule: Rule,
    values: Mapping[str, Sequence[float]],
    unit: Literal["%", ""] = "%",
) -> Claim:
    """Return a claim whose measurements are all judged by one rule."""
    return Claim(claim, where, paper, measure, rule.text, measured(rule, values, unit))


def correlations(trials: Sequence[Trial]) -> dict[str, list[float]]:
    """Return, by algorithm, Spearman's rank correlation over links between heterogeneity and weights."""
    from scipy.stats import spearmanr

    def rho(trial: Trial, weights: Floats) -> float:
        return float(spearmanr(trial.heterogeneity[trial.links], weights[trial.links]).statistic)

    rows: dict[str, list[float]] = {}
    for name in REFINED:
        rows[f"{name}, weight"] = [rho(trial, trial.final[name]) for trial in trials]
        rows[f"{name}, change"] = [rho(trial, trial.final[name] - trial.initial) for trial in trials]
    return rows
