"""The table of docs/explanation/survival.md: where each method ends under conditions, as its step size falls.

python -m docs.scripts.conditions_table (some minutes).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import d3gd
from d3gd import Conditions
from d3gd.arrays import Floats
from docs.scripts import between

# A hub that everyone hears, and a few links besides: undirected, so that every method can run, and far from regular.
HUB = d3gd.Digraph.from_edges(
    6,
    [pair for i in range(1, 6) for pair in ((0, i), (i, 0))] + [(1, 2), (2, 1), (2, 3), (3, 2)],
)
CENTRES = np.random.default_rng(0).normal(size=(6, 40))
CONDITIONS = {
    "ideal": None,
    "links 0.5": Conditions(links=0.5, biased=True),
    "loss 0.5": Conditions(loss=0.5, biased=True),
    "pause 0.2, back 0.2": Conditions(pause=0.2, back=0.2, biased=True),
    "delay 5": Conditions(delay=5, biased=True),
}
METHODS: dict[str, Callable[[float], Any]] = {
    "DiDGD averaged": lambda gamma: d3gd.DiDGD(step_size=gamma, averaged=True),
    "DiDGD": lambda gamma: d3gd.DiDGD(step_size=gamma),
    "DGD": lambda gamma: d3gd.DGD(step_size=gamma),
    "PerronD3GD": lambda gamma: d3gd.PerronD3GD(step_size=gamma),
    "PerronD3GD, uncorrected": lambda gamma: d3gd.PerronD3GD(step_size=gamma, correct=False),
    "FROST": lambda gamma: d3gd.FROST(step_size=gamma),
    "FRSD": lambda gamma: d3gd.FRSD(step_size=gamma),
    "EXTRA": lambda gamma: d3gd.EXTRA(step_size=gamma),
    "ExactDiffusion": lambda gamma: d3gd.ExactDiffusion(step_size=gamma),
    "DIGing": lambda gamma: d3gd.DIGing(step_size=gamma),
    "SGP": lambda gamma: d3gd.SGP(step_size=gamma),
    "PushDIGing": lambda gamma: d3gd.PushDIGing(step_size=gamma),
    "PushPull": lambda gamma: d3gd.PushPull(step_size=gamma),
    "RFAST": lambda gamma: d3gd.RFAST(step_size=gamma),
    # Its bias falls with the number of rounds, not with the step.
    "PULMDGD, 30, 120 rounds": lambda gamma: d3gd.PULMDGD(step_size=0.8, rounds=round(3 / gamma)),
}
TIME = 150  # gamma times the iterations, in which a model forgets its start 150 times by a factor e


class Centred(d3gd.problems.Problem):
    r"""Everyone's :math:`f_i(x) = \frac12 \|x - b_i\|^2`: what a method gives each of them is where it ends."""

    def __init__(self, b: Floats) -> None:
        self.agents, self.dim = b.shape
        self.b = b

    def gradients(self, x: Floats, k: int | None = None) -> Floats:
        """Return how far each agent is from its own centre."""
        return x - self.b


def distance(method: Any, conditions: Conditions | None, iterations: int) -> float:
    """Return how far the mean of all models, averaged over the second half of a run, is from the optimum.

    Args:
        method: The method.
        conditions: What the network does.
        iterations: How many to run.

    Returns:
        The root mean square over coordinates; the centres' own spread is 1. Infinite if it diverged.
    """
    late: list[Floats] = []
    result = d3gd.run(
        method,
        HUB,
        Centred(CENTRES),
        iterations=iterations,
        conditions=conditions,
        metrics={},
        callbacks=[lambda snapshot: late.append(snapshot.x.mean(axis=0)) if snapshot.k >= iterations / 2 else None],
        progress=False,
    )
    if result.status == "diverged":
        return float("inf")
    return float(np.sqrt(np.mean((np.mean(late, axis=0) - CENTRES.mean(axis=0)) ** 2)))


def row(name: str, steps: tuple[float, ...]) -> str:
    """Return a line of the table; bold where the method claims to survive."""
    make, cells = METHODS[name], []
    for conditions in CONDITIONS.values():
        found = [distance(make(gamma), conditions, round(TIME / gamma)) for gamma in steps]
        text = " → ".join("diverged" if np.isinf(value) else f"{value:.1g}" for value in found)
        kept = conditions is None or set(conditions.hardships) <= make(1.0).survives
        cells.append(f"**{text}**" if kept else text)
    return f"| {name} | {' | '.join(cells)} |"


if __name__ == "__main__":
    header = [f"| method | {' | '.join(CONDITIONS)} |", f"|---|{'---|' * len(CONDITIONS)}"]
    rows = [row(method, (0.1, 0.025)) for method in METHODS]
    between.write("explanation/survival.md", "bias", "\n".join([*header, *rows]))
