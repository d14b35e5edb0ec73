"""The algorithms and the seeded trials of both figures.

The settings are the paper's: gamma = 0.1, eta = 1, delta = 0.2, every agent starts at zero with Metropolis weights. The
paper gives no number of iterations for Figure 1; both figures run the 1,000 that it gives for Figure 2.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from d3gd import engine, weights
from d3gd.algorithms.base import Algorithm
from d3gd.algorithms.d3gd import D3GD
from d3gd.algorithms.didgd import DiDGD
from d3gd.arrays import Array, Bools, Floats, Ints
from d3gd.graphs import Digraph

ITERATIONS = 1000
DIDGD, GLOBAL, DECENTRALIZED = "Di-DGD", "D3GD (global)", "D3GD (decentralized)"
REFINED = (GLOBAL, DECENTRALIZED)
ALGORITHMS: Mapping[str, Algorithm[Any]] = {
    DIDGD: DiDGD(step_size=0.1),
    GLOBAL: D3GD(step_size=0.1, refine_step=1.0, anchor=0.2, rule="global"),
    DECENTRALIZED: D3GD(step_size=0.1, refine_step=1.0, anchor=0.2, rule="decentralized"),
}
CURVES = ("stationarity", "disagreement", "n_min_pi", "perron_error")

# Grey and two of Okabe and Ito's colours, safe for colour blindness.
COLOURS: Mapping[str, str] = {DIDGD: "#7F7F7F", GLOBAL: "#0072B2", DECENTRALIZED: "#D55E00"}
STYLE: Mapping[str, Any] = {
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}


@dataclass(frozen=True)
class Trial:
    """Every algorithm on the graph and the data of one seed.

    Attributes:
        seed: The seed of graph and data.
        iterations: The recorded iterations.
        curves: The recorded metrics, by algorithm and name.
        sources: The source of each of the graph's entries, including self-loops.
        targets: The target of each entry.
        heterogeneity: The total variation distance between the two agents' class frequencies, per entry.
        initial: The initial weights, per entry.
        final: The weights after the last iteration, per entry, by algorithm.
    """

    seed: int
    iterations: Ints
    curves: dict[str, dict[str, Floats]]
    sources: Ints
    targets: Ints
    heterogeneity: Floats
    initial: Floats
    final: dict[str, Floats]

    @property
    def links(self) -> Bools:
        """Mask of the entries that are links, not self-loops."""
        return np.not_equal(self.sources, self.targets)


def run_trial(
    seed: int,
    graph: Digraph,
    problem: Any,
    names: tuple[str, ...],
    *,
    iterations: int,
    every: int,
    x0: Floats | None = None,
) -> Trial:
    """Run some of :data:`ALGORITHMS` on one graph and classification problem."""
    how: dict[str, Any] = {"iterations": iterations, "every": every, "metrics": CURVES, "progress": False, "x0": x0}
    results = {name: engine.run(ALGORITHMS[name], graph, problem, **how) for name in names}
    if any(result.status == "interrupted" for result in results.values()):  # Ctrl-C ends all trials
        raise KeyboardInterrupt
    recorded = np.unique(np.append(np.arange(0, iterations, every), iterations))
    frequencies = np.stack([np.bincount(y, minlength=problem.classes) / len(y) for y in problem.y])
    apart = np.abs(frequencies[graph.sources] - frequencies[graph.targets]).sum(axis=1) / 2
    return Trial(
        seed=seed,
        iterations=recorded,
        curves={
            name: {metric: _to_the_end(result.metrics[metric], metric, len(recorded)) for metric in CURVES}
            for name, result in results.items()
        },
        sources=graph.sources,
        targets=graph.targets,
        heterogeneity=apart,
        initial=weights.metropolis(graph).data,
        final={name: result.weights.data for name, result in results.items()},
    )


def _to_the_end(values: Array, metric: str, count: int) -> Floats:
    """Return a complete curve; a diverged one is continued with infinity, or zero influence for ``n_min_pi``."""
    rest = 0.0 if metric == "n_min_pi" else np.inf
    return np.append(values[:count], np.full(max(0, count - len(values)), rest))
