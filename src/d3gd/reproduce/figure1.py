"""Figure 1: stationarity and disagreement of Di-DGD and both variants of D3GD on 20 agents."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from d3gd import graphs, problems
from d3gd.graphs import Digraph
from d3gd.plots import DPI
from d3gd.problems import SigmoidClassification
from d3gd.reproduce.claims import Claim, at_least, correlations, has_sign, judged, near_zero, reduction, speed_up
from d3gd.reproduce.trial import (
    ALGORITHMS,
    COLOURS,
    DECENTRALIZED,
    DIDGD,
    GLOBAL,
    ITERATIONS,
    REFINED,
    STYLE,
    Trial,
    run_trial,
)

AGENTS = 20
LINK_PROBABILITY = 0.6
ALPHA = 0.1
_EVERY = 2
# Nearly coinciding curves stay visible: the widest is drawn first, the dashed one last.
_LINES: Mapping[str, dict[str, Any]] = {
    DIDGD: {"linewidth": 3.0},
    GLOBAL: {"linewidth": 1.6},
    DECENTRALIZED: {"linewidth": 1.6, "linestyle": (0, (3, 2))},
}
# Bands that overlap stay apart too: two are filled, the third is hatched.
_BANDS: Mapping[str, dict[str, Any]] = {
    DIDGD: {"alpha": 0.25, "linewidth": 0},
    GLOBAL: {"alpha": 0.25, "linewidth": 0},
    DECENTRALIZED: {"facecolor": "none", "hatch": "/////", "alpha": 0.8, "linewidth": 0.8, "linestyle": (0, (3, 2))},
}
_PANELS = {
    "stationarity": r"stationarity  $\frac{1}{n}\sum_i \|\nabla F(x_i)\|^2$",
    "disagreement": r"disagreement  $\frac{1}{n^2}\sum_{i,j} \|x_i - x_j\|^2$",
}


def trial(seed: int, iterations: int = ITERATIONS) -> Trial:
    """Run all three algorithms on the Erdős-Rényi graph and the data of a seed."""
    return run_trial(seed, *drawn(seed), tuple(ALGORITHMS), iterations=iterations, every=_EVERY)


def drawn(seed: int) -> tuple[Digraph, SigmoidClassification]:
    """Return the graph and the data of a seed."""
    graph = graphs.erdos_renyi(AGENTS, LINK_PROBABILITY, seed=seed)
    return graph, problems.sigmoid_classification(agents=AGENTS, alpha=ALPHA, seed=seed, test_samples=0)


def claims(trials: Sequence[Trial]) -> list[Claim]:
    """Return the claims that Figure 1's trials can test."""
    metrics = ("stationarity", "disagreement")
    faster: dict[str, dict[str, list[float]]] = {
        metric: {
            name: [speed_up(t.iterations, t.curves[name][metric], t.curves[DIDGD][metric]) for t in trials]
            for name in REFINED
        }
        for metric in metrics
    }
    lower: dict[str, dict[str, list[float]]] = {
        metric: {name: [reduction(t.curves[name][metric], t.curves[DIDGD][metric]) for t in trials] for name in REFINED}
        for metric in metrics
    }
    gain, correlated, alike, rises = at_least(0.3), at_least(0.3, ""), near_zero(0.1), has_sign(1)
    better = np.max(list(faster["stationarity"].values()), axis=0).tolist()
    found = [
        judged(
            "D3GD converges to a stationary solution faster than Di-DGD",
            "abstract",
            "30-40 %",
            "speed-up of stationarity, the better variant of each seed",
            gain,
            {"better variant": better},
        )
    ]
    for metric, panel in zip(metrics, ("left", "right"), strict=True):
        for measure, values in (("speed-up", faster), ("reduction", lower)):
            found.append(
                judged(
                    f"Both variants are faster than Di-DGD: {metric}, {measure}",
                    f"section 4, Fig. 1 {panel}",
                    "30-40 %",
                    f"{measure} of {metric}",
                    gain,
                    values[metric],
                )
            )
    ratios = {m: [-reduction(t.curves[DECENTRALIZED][m], t.curves[GLOBAL][m]) for t in trials] for m in metrics}
    gaps = {m: np.subtract(faster[m][DECENTRALIZED], faster[m][GLOBAL]).tolist() for m in metrics}
    means = {metric: np.mean(list(rows.values()), axis=0).tolist() for metric, rows in faster.items()}
    found += [
        judged(
            "The decentralized variant performs like the global one",
            "section 4, Fig. 1",
            "similar",
            "decentralized / global - 1, values at T",
            alike,
            ratios,
        ),
        judged(
            "... and keeps a similar speed-up over Di-DGD",
            "section 4, Fig. 1",
            "similar",
            "speed-up of decentralized - that of global",
            alike,
            gaps,
        ),
        judged(
            "Refining the weights on the fly accelerates convergence (conjecture)",
            "section 4, Fig. 1",
            "supported",
            "speed-up, mean of both variants",
            rises,
            means,
        ),
        judged(
            "The learnt weights adapt to how the agents' data differ",
            "abstract (on Fig. 1's runs)",
            "no figure",
            "Spearman correlation over links: distance of class frequencies with the final weight and with its change",
            correlated,
            correlations(trials),
            "",
        ),
        judged(
            "Agents weigh their gradients by the Perron vector while the weights move",
            "section 3, Algorithm 1 (on Fig. 1's runs)",
            "assumed",
            "largest relative error of an agent's y as its Perron weight, at T",
            alike,
            {name: [float(t.curves[name]["perron_error"][-1]) for t in trials] for name in REFINED},
        ),
    ]
    return found


def draw(trials: Sequence[Trial]) -> Any:
    """Return the matplotlib figure: the median over seeds and the band between the quartiles."""
    import matplotlib
    from matplotlib.figure import Figure

    k = trials[0].iterations
    with matplotlib.rc_context({**STYLE, "hatch.linewidth": 0.5}):
        figure = Figure(figsize=(7.0, 3.0), dpi=DPI, layout="constrained")
        for axes, (metric, title) in zip(figure.subplots(1, 2), _PANELS.items(), strict=True):
            for name, colour in COLOURS.items():
                curves = np.stack([trial.curves[name][metric] for trial in trials])
                low, median, high = np.quantile(curves, [0.25, 0.5, 0.75], axis=0)
                seen = slice(1, None)  # all agents start equal: zero disagreement, which a log axis cannot show
                axes.fill_between(
                    k[seen], low[seen], high[seen], **{"facecolor": colour, "edgecolor": colour} | _BANDS[name]
                )
                axes.plot(k[seen], median[seen], color=colour, label=name, **_LINES[name])
            axes.set(yscale="log", xlim=(0, k[-1]), xlabel="iteration $k$")
            axes.set_title(title, pad=9)
            axes.grid(which="major", color="0.9", linewidth=0.6)
        figure.axes[0].legend(title=f"median and quartiles, {len(trials)} seeds", alignment="left")
    return figure
