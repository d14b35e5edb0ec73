"""Two further readings of Figure 1: what the paper leaves open may decide its claims."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.special import expit

from d3gd.arrays import Floats
from d3gd.problems import Problem, SigmoidClassification
from d3gd.problems.sigmoid import slope
from d3gd.reproduce import figure1
from d3gd.reproduce.claims import Claim, at_least, judged, reduction
from d3gd.reproduce.trial import ALGORITHMS, DIDGD, ITERATIONS, REFINED, Trial, run_trial

START, LABELS = "start", "labels"
READINGS: Mapping[str, str] = {
    START: "models that start at random, x ~ N(0, 1), instead of at zero",
    LABELS: "labels in {-1, 1} instead of {0, 1}",
}
_EVERY = 100


class SignedLabels(Problem):
    r"""The paper's loss with :math:`y_{mc} = 1` for the true class and -1 for all others.

    .. math::
        f_i(\theta) = \frac1M \sum_{m=1}^{M} \sum_{c=1}^{K} \sigma(y_{mc}\, x_m^\top \theta_c)
        + \frac{\lambda}{2} \|\theta\|^2, \qquad y_{mc} \in \{-1, 1\}

    Args:
        drawn: The paper's problem, for its data.
    """

    def __init__(self, drawn: SigmoidClassification) -> None:
        self.agents, self.dim, self.classes, self.y = drawn.agents, drawn.dim, drawn.classes, drawn.y
        self._X, self._regularization = drawn.X, drawn.regularization
        self._signs: Floats = np.where(np.arange(drawn.classes) == drawn.y[:, :, None], 1.0, -1.0)

    def gradients(self, x: Floats, k: int | None = None) -> Floats:
        """The gradient of f_i at x_i for every agent."""
        theta = x.reshape(self.agents, self.classes, -1)
        scores = self._X @ theta.swapaxes(1, 2)  # (agents, samples, classes)
        slopes = slope(expit(self._signs * scores)) * self._signs / self._X.shape[1]
        gradients: Floats = (slopes.swapaxes(1, 2) @ self._X).reshape(x.shape) + self._regularization * x
        return gradients


def trial(reading: str, seed: int, iterations: int = ITERATIONS) -> Trial:
    """Run all three algorithms on Figure 1's graph and data, read otherwise."""
    graph, problem = figure1.drawn(seed)
    if reading == LABELS:
        return run_trial(seed, graph, SignedLabels(problem), tuple(ALGORITHMS), iterations=iterations, every=_EVERY)
    x0 = np.random.default_rng(seed).normal(size=(problem.agents, problem.dim))
    return run_trial(seed, graph, problem, tuple(ALGORITHMS), iterations=iterations, every=_EVERY, x0=x0)


def claims(trials: Mapping[str, Sequence[Trial]]) -> list[Claim]:
    """Return one row per reading: how far both variants of D3GD end below Di-DGD."""
    return [
        judged(
            f"Read with {READINGS[reading]}: both variants end below Di-DGD",
            "section 4, which leaves it open",
            "30-40 %",
            "reduction at T",
            at_least(0.3),
            {
                f"{name}, {metric}": [reduction(t.curves[name][metric], t.curves[DIDGD][metric]) for t in rows]
                for metric in ("stationarity", "disagreement")
                for name in REFINED
            },
        )
        for reading, rows in trials.items()
    ]
