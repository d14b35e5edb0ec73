"""One grid of step sizes for all methods, and the best of it for each.

The grid has three steps per decade. Every method starts with the same steps; if its best one is at an end, further
ones are tried. The seeds are not those that are reported: no method is measured on what it was tuned on.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from d3gd.comparison.runs import Run
from d3gd.errors import SettingsError
from d3gd.validation import is_positive, listed, shown

Key: TypeAlias = tuple[str, float, int]  # method, step, seed
Runner: TypeAlias = Callable[[Sequence[Key], str], Mapping[Key, Run]]

_AT_A_TIME = 2  # steps by which the grid is extended


class Tuned(NamedTuple):
    """The best step of a method, and its flaws."""

    step: float
    diverged: bool  # at every step
    at_the_edge: bool
    failure: str  # the error of the method, or empty


@dataclass(frozen=True)
class Grid:
    """Steps in ascending order; those from ``first`` to ``last`` are always tried."""

    steps: tuple[float, ...]
    first: int
    last: int

    @property
    def start(self) -> tuple[float, ...]:
        """The steps that are always tried."""
        return self.steps[self.first : self.last + 1]

    def beyond(self, tried: Sequence[float], best: float) -> tuple[float, ...]:
        """Return the next steps to try: none if the best is not at an end, or there are no more."""
        low, high = self.steps.index(min(tried)), self.steps.index(max(tried))
        if best == self.steps[low]:
            return self.steps[max(0, low - _AT_A_TIME) : low]
        if best == self.steps[high]:
            return self.steps[high + 1 : high + 1 + _AT_A_TIME]
        return ()


def thirds(first: int, last: int) -> tuple[float, ...]:
    """Return powers of ten with exponents in steps of 1/3, to three digits.

    Example:
        >>> thirds(-3, 1)
        (0.1, 0.215, 0.464, 1.0, 2.15)
    """
    return tuple(float(f"{10 ** (j / 3):.3g}") for j in range(first, last + 1))


_LATTICE = thirds(-15, 12)
USUAL = Grid(_LATTICE, _LATTICE.index(0.01), _LATTICE.index(10.0))
QUICK = Grid(_LATTICE, _LATTICE.index(0.0464), _LATTICE.index(4.64))


def grid_of(steps: Sequence[float]) -> Grid:
    """Return the grid of a user's steps, which is not extended."""
    found = listed("steps", steps, "positive numbers, such as 0.01, 0.1, 1")
    wrong = [shown(step) for step in found if not is_positive(step)] if found else ["none"]
    if wrong:
        raise SettingsError(f"steps: found {wrong[0]}; give positive numbers, such as 0.01, 0.1, 1")
    ordered = tuple(sorted({float(step) for step in found}))
    return Grid(ordered, 0, len(ordered) - 1)


def tune(methods: Sequence[str], run: Runner, *, seeds: Sequence[int], grid: Grid, metric: str) -> dict[str, Tuned]:
    """Return the best step of every method.

    Args:
        methods: Their names.
        run: Performs runs.
        seeds: The seeds for tuning.
        grid: The steps.
        metric: The metric to minimize, at the end of the budget.
    """
    tried: dict[str, dict[float, list[Run]]] = {method: {} for method in methods}
    ahead = dict.fromkeys(methods, grid.start)
    what = "Tuning"
    while ahead:
        keys = [(method, step, seed) for method, steps in ahead.items() for step in steps for seed in seeds]
        for (method, step, _), found in run(keys, what).items():
            tried[method].setdefault(step, []).append(found)
        going = [method for method in ahead if not failure(tried[method])]
        ahead = {method: grid.beyond(list(tried[method]), best_of(tried[method], metric)) for method in going}
        ahead = {method: steps for method, steps in ahead.items() if steps}
        what = "Tuning, further steps"
    return {method: _judged(steps, metric) for method, steps in tried.items()}


def best_of(tried: Mapping[float, Sequence[Run]], metric: str) -> float:
    """Return the step with the smallest worst value over seeds; ties go to the smallest step.

    The median would select the fastest step, often the last before divergence, which fails on other seeds.
    """

    def score(step: float) -> float:
        return max(run.value(metric) for run in tried[step])

    return min(sorted(tried), key=score)


def failure(tried: Mapping[float, Sequence[Run]]) -> str:
    """Return the first message of a run that raised an error, or an empty text."""
    return next((run.message for runs in tried.values() for run in runs if run.status == "failed"), "")


def _judged(tried: Mapping[float, Sequence[Run]], metric: str) -> Tuned:
    step = best_of(tried, metric)
    lost = all(np.isinf(run.value(metric)) for runs in tried.values() for run in runs)
    return Tuned(step, lost, len(tried) > 1 and step in (min(tried), max(tried)), failure(tried))
