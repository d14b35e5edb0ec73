"""Figure 2: the weights that D3GD learns on four agents, with A as the outlier."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from d3gd import problems
from d3gd.arrays import Floats
from d3gd.graphs import Digraph
from d3gd.plots import DPI
from d3gd.reproduce.claims import Claim, at_least, correlations, has_sign, judged, measured
from d3gd.reproduce.trial import GLOBAL, ITERATIONS, REFINED, STYLE, Trial, run_trial

LABELS = "ABCD"
EDGES = ("AC", "CD", "DB", "BA", "AB")
ALPHA = (0.1, 100.0, 100.0, 100.0)

_PLACES: Mapping[str, tuple[float, float]] = {"A": (0, 1), "B": (1, 1), "C": (0, 0), "D": (1, 0)}
_NODE, _LOOP = 0.11, 0.135  # radii of a node and of a self-loop
_HEAD = 6  # points of a path covered by the arrow's head
_BEND: Mapping[str, float] = {"AB": 0.3, "BA": 0.3}  # each bent to its left, so that the two do not overlap
_HIGHER, _LOWER, _SAME = "#0072B2", "#D55E00", "0.35"
_OUTLIER, _OTHERS = "#F0E442", "white"


def network() -> Digraph:
    """Return the graph A -> C -> D -> B with A and B linked in both directions."""
    return Digraph.from_edges(len(LABELS), [[LABELS.index(end) for end in edge] for edge in EDGES], LABELS)


def trial(seed: int, iterations: int = ITERATIONS) -> Trial:
    """Run both variants of D3GD on the data of a seed."""
    problem = problems.sigmoid_classification(agents=len(LABELS), alpha=ALPHA, seed=seed, test_samples=0)
    return run_trial(seed, network(), problem, REFINED, iterations=iterations, every=iterations)


def names(trial: Trial) -> list[str]:
    """Return the paper's names of the graph's entries: "AC" for A -> C, "AA" for A's own weight."""
    return [LABELS[source] + LABELS[target] for source, target in zip(trial.sources, trial.targets, strict=True)]


def claims(trials: Sequence[Trial]) -> list[Claim]:
    """Return the claims that Figure 2's trials can test."""
    entries = names(trials[0])

    def changes(edge: str, name: str) -> list[float]:
        at = entries.index(edge)
        return [float(trial.final[name][at] - trial.initial[at]) for trial in trials]

    rises, falls, correlated = has_sign(1), has_sign(-1), at_least(0.3, "")
    found = [
        judged(
            f"The weight of {edge[0]}→{edge[1]} rises",
            "section 4, Fig. 2",
            "rises",
            "final - initial weight",
            rises,
            {name: changes(edge, name) for name in REFINED},
            "",
        )
        for edge in ("AC", "CD", "BA")
    ]
    replaced = [
        *measured(falls, {f"{name}, A→B": changes("AB", name) for name in REFINED}, ""),
        *measured(rises, {f"{name}, D→B": changes("DB", name) for name in REFINED}, ""),
    ]
    found += [
        Claim(
            "A→B is partly replaced by D→B",
            "section 4, Fig. 2",
            "A→B falls, D→B rises",
            "final - initial weight",
            f"A→B {falls.text}; D→B likewise above 0",
            tuple(replaced),
        ),
        judged(
            "The more two agents' data differ, the higher the weight between them",
            "section 4, Fig. 2",
            "no figure",
            "Spearman correlation over links: distance of class frequencies with the final weight and with its change",
            correlated,
            correlations(trials),
            "",
        ),
    ]
    return found


def draw(trials: Sequence[Trial]) -> Any:
    """Return the matplotlib figure: the initial weights, and the median over seeds of the learned ones."""
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    entries = names(trials[0])
    before = dict(zip(entries, trials[0].initial.tolist(), strict=True))
    learnt = np.median([trial.final[GLOBAL] for trial in trials], axis=0)
    after = dict(zip(entries, learnt.tolist(), strict=True))
    last = trials[0].iterations[-1]
    with matplotlib.rc_context(dict(STYLE)):
        figure = Figure(figsize=(7.0, 4.2), dpi=DPI, layout="constrained")
        left, right = figure.subplots(1, 2)
        _draw_weights(left, before, before)
        left.set_title("(a) Metropolis weights")
        _draw_weights(right, after, before)
        right.set_title(f"(b) after {last} iterations of {GLOBAL}")
        handles = [
            Line2D([], [], color=_HIGHER, linewidth=3, label="weight rose"),
            Line2D([], [], color=_LOWER, linewidth=3, label="weight fell"),
            Line2D([], [], color=_SAME, linewidth=3, label="initial weight"),
            Line2D(
                [],
                [],
                marker="o",
                markersize=10,
                markerfacecolor=_OUTLIER,
                markeredgecolor="black",
                linestyle="",
                label="outlier",
            ),
        ]
        title = f"weights in (b): median over {len(trials)} seeds"
        figure.legend(handles=handles, loc="outside lower center", ncols=4, title=title)
    return figure


def _draw_weights(axes: Any, weights: Mapping[str, float], before: Mapping[str, float]) -> None:
    from matplotlib.patches import Circle, FancyArrowPatch

    axes.set(xlim=(-0.38, 1.38), ylim=(-0.34, 1.36), aspect="equal")
    axes.set_axis_off()
    for edge, weight in weights.items():
        change = weight - before[edge]
        colour = _HIGHER if change > 0 else _LOWER if change < 0 else _SAME
        route, middle = _route(*edge)
        loop = edge[0] == edge[1]
        shaft = route if loop else route[:-_HEAD]
        axes.plot(*shaft.T, color=colour, linewidth=6 * weight, solid_capstyle="butt")
        if not loop:
            head = FancyArrowPatch(route[-_HEAD - 1], route[-1], arrowstyle="-|>", shrinkA=0, shrinkB=0)
            head.set(color=colour, linewidth=0, mutation_scale=15 + 18 * weight)
            axes.add_patch(head)
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
        axes.text(*middle, f"{weight:.2f}", color=colour, ha="center", va="center", bbox=box)
    for label, place in _PLACES.items():
        face = _OUTLIER if label == "A" else _OTHERS
        axes.add_patch(Circle(place, _NODE, facecolor=face, edgecolor="black", zorder=5))
        axes.text(*place, label, ha="center", va="center_baseline", fontsize=12, fontweight="bold", zorder=6)


def _route(source: str, target: str) -> tuple[Floats, Floats]:
    """Return the points of an arrow between nodes, or of a self-loop, and the position of its label."""
    start, end = np.array(_PLACES[source], dtype=float), np.array(_PLACES[target], dtype=float)
    t = np.linspace(0, 1, 201)[:, None]
    if source == target:
        outward = (start - 0.5) * np.sqrt(2)
        middle = start + outward * (_NODE + 0.85 * _LOOP)
        return middle + _LOOP * np.hstack([np.cos(2 * np.pi * t), np.sin(2 * np.pi * t)]), middle
    to_the_left = np.array([start[1] - end[1], end[0] - start[0]])
    middle = (start + end) / 2 + _BEND.get(source + target, 0.0) * to_the_left
    points = (1 - t) ** 2 * start + 2 * t * (1 - t) * (2 * middle - (start + end) / 2) + t**2 * end
    outside = [np.linalg.norm(points - centre, axis=1) >= _NODE for centre in (start, end)]
    return points[outside[0] & outside[1]], middle
