"""Figure 1: stationarity and disagreement of Di-DGD and both variants of D3GD on 20 agents."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from d3gd import graphs, problems
from d3gd.experiments import ALGORITHMS, COLOURS, DECENTRALIZED, DIDGD, GLOBAL, ITERATIONS, STYLE, Trial, run_trial

AGENTS = 20
LINK_PROBABILITY = 0.6
ALPHA = 0.1
_EVERY = 2
_LINES = {DIDGD: "-", GLOBAL: "-", DECENTRALIZED: (0, (4, 1.5))}  # the two variants all but coincide
_PANELS = {
    "stationarity": r"stationarity  $\frac{1}{n}\sum_i \|\nabla F(x_i)\|^2$",
    "disagreement": r"disagreement  $\frac{1}{n^2}\sum_{i,j} \|x_i - x_j\|^2$",
}


def trial(seed: int, iterations: int = ITERATIONS) -> Trial:
    """Run all three algorithms on the Erdos-Renyi graph and the data of a seed."""
    graph = graphs.erdos_renyi(AGENTS, LINK_PROBABILITY, seed=seed)
    problem = problems.sigmoid_classification(agents=AGENTS, alpha=ALPHA, seed=seed, test_samples=0)
    return run_trial(seed, graph, problem, tuple(ALGORITHMS), iterations=iterations, every=_EVERY)


def draw(trials: Sequence[Trial]) -> Any:
    """Return the matplotlib figure: the median over seeds and the band between the quartiles."""
    import matplotlib
    from matplotlib.figure import Figure

    k = trials[0].iterations
    with matplotlib.rc_context(dict(STYLE)):
        figure = Figure(figsize=(7.0, 3.0), layout="constrained")
        for axes, (metric, title) in zip(figure.subplots(1, 2), _PANELS.items(), strict=True):
            for name, colour in COLOURS.items():
                curves = np.stack([trial.curves[name][metric] for trial in trials])
                low, median, high = np.quantile(curves, [0.25, 0.5, 0.75], axis=0)
                seen = slice(1, None)  # all agents start alike: no disagreement yet, which a log axis cannot show
                axes.fill_between(k[seen], low[seen], high[seen], color=colour, alpha=0.13, linewidth=0)
                axes.plot(k[seen], median[seen], color=colour, linestyle=_LINES[name], linewidth=1.5, label=name)
            axes.set(yscale="log", xlim=(0, k[-1]), xlabel="iteration $k$", title=title)
            axes.grid(which="major", color="0.9", linewidth=0.6)
        figure.axes[0].legend(title=f"median and quartiles, {len(trials)} seeds", alignment="left")
    return figure
