"""The study on Fashion-MNIST in tables and a figure; every number is computed from the trials."""

import csv
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from d3gd.arrays import Floats
from studies.fashion.plan import (
    AGENTS,
    BATCH,
    CELLS,
    CENTRAL,
    CENTRAL_ADAM,
    EPOCH,
    EPOCHS,
    FEW,
    FEW_ADAM,
    FEW_TWICE,
    HALF_ADAM,
    HALF_TWICE,
    METHODS,
    MOMENTUM,
    QG_ADAM,
    STEPS,
    TUNING_EPOCHS,
    TUNING_SEEDS,
    TWICE,
    TWICE_ADAM,
    Trial,
)
from studies.markdown import table

Run = Mapping[str, Any]
CURVES = ("accuracy", "accuracy_worst", "accuracy_of_mean", "bytes")
_COLORS = ("#0072B2", "#E69F00", "#009E73", "#999999", "#CC79A7", "#56B4E9", "#000000")
_DRAWN = ("Di-DGD", "quasi-global momentum", MOMENTUM, TWICE, QG_ADAM, HALF_TWICE, CENTRAL)


def tuned(trials: Sequence[Run]) -> dict[str, float]:
    """Return each method's step size with the best mean accuracy of agents, in the worse of the tuning seeds."""
    found: dict[str, dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    for run in trials:
        trial = Trial(**run["trial"])
        found[trial.method][trial.step].append(run["accuracy"][-1] if run["status"] == "completed" else 0.0)
    return {method: max(steps, key=lambda step: (min(steps[step]), step)) for method, steps in found.items()}


def _curves(runs: Sequence[Run]) -> dict[tuple[str, float], dict[str, dict[str, Floats]]]:
    """Return metric -> (seeds, epochs + 1) of every method in every cell; a run that diverged counts as guessing."""
    grouped: dict[Any, dict[str, list[Run]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        trial = Trial(**run["trial"])
        grouped[trial.graph, trial.alpha][trial.method].append(run)
    for graph, alpha in grouped:
        there = grouped.get((CELLS[0][0], alpha), {})
        grouped[graph, alpha].update({m: some for m, some in there.items() if METHODS[m].on_any_graph})
    return {
        cell: {
            method: {name: np.array([_filled(run, name) for run in some]) for name in CURVES}
            for method, some in methods.items()
        }
        for cell, methods in grouped.items()
    }


def _filled(run: Run, name: str) -> list[float]:
    values = list(run[name])
    return values + [values[-1] if name == "bytes" else 0.1] * (EPOCHS + 1 - len(values))


def written(trials: Sequence[Run], runs: Sequence[Run]) -> str:
    """Return the page."""
    steps, cells = tuned(trials), _curves(runs)
    seeds = len({run["trial"]["seed"] for run in runs})
    edge = [method for method, step in steps.items() if step in (STEPS[0], STEPS[-1])]
    parts = [
        "# Fashion-MNIST",
        f"A convolutional network with group norm (11,322 parameters) on Fashion-MNIST: {AGENTS} agents, mini-batches "
        f"of {BATCH}, {EPOCHS} epochs of {EPOCH} local steps. Accuracy on the 10,000 test images in percent, mean over "
        f"{seeds} seeds, in brackets its range: of the agents' models on average, of the worst agent, and of the mean "
        "model. Label skew: class proportions of every agent drawn from Dirichlet(alpha). The directed graph is "
        "Erdős-Rényi with probability 0.3, drawn anew for each seed, the undirected one a torus of 4 x 4. Megabytes "
        "are sent per agent in all. Methods that no graph restricts are trained once per skew.",
        f"Step sizes are tuned on one grid ({', '.join(map(str, STEPS))}), by the accuracy on 5,000 held-out training "
        f"images after {TUNING_EPOCHS} epochs, on the directed graph with alpha = 0.1: the best in the worse of "
        f"{len(TUNING_SEEDS)} other seeds. "
        f"At an end of the grid: {', '.join(edge) or 'none'}.",
        "`python -m studies.fashion --out fashion` makes this page; all runs are in `runs.csv`.",
        "*Momentum* is 0.9. That of PerronD3GD is quasi-global; with H = 8 local steps per exchange it is 0.5, and "
        "corrections act with the exchange, or also in local steps (*steered*). In local steps of quasi-global Adam "
        "the momentum steers and corrections act with the exchange; where messages are compressed, scales travel with "
        "every fifth. With two *rounds*, an exchange mixes twice. *At every agent*, and where training is local or "
        "centralized, it is that of SGD. *All data in one place* averages all agents' gradients in every step: the "
        "same samples.",
        "![Accuracy against epochs and bytes](fashion.png)",
    ]
    missing = [f"{graph}, {alpha}" for graph, alpha in CELLS if (graph, alpha) not in cells]
    if missing:
        parts.append(f"Not run yet (graph, alpha): {'; '.join(missing)}.")
    if left := [method for method in METHODS if method not in steps]:
        parts.append(f"Methods not run yet: {'; '.join(left)}.")
    for (graph, alpha), methods in cells.items():
        parts += [f"## {graph.capitalize()} graph, alpha = {alpha}", _table(methods, steps), _targets(methods)]
    return "\n\n".join(parts) + "\n"


def _table(methods: Mapping[str, Mapping[str, Floats]], steps: Mapping[str, float]) -> str:
    lines = []
    for method in METHODS:
        if method in methods:
            found = methods[method]
            shown = [_range(found[name][:, -1]) for name in ("accuracy", "accuracy_worst", "accuracy_of_mean")]
            sent = f"{found['bytes'][:, -1].mean() / AGENTS / 1e6:.3g}"
            lines.append([method, f"{steps[method]}", *shown, "" if method in (CENTRAL, CENTRAL_ADAM) else sent])
    return table(["method", "step", "agents", "worst agent", "mean model", "MB per agent"], lines)


def _range(values: Floats) -> str:
    return f"{100 * values.mean():.1f} ({100 * values.min():.1f}-{100 * values.max():.1f})"


def _targets(methods: Mapping[str, Mapping[str, Floats]]) -> str:
    """Say how far methods are behind training on all data by the same optimizer, and what few bytes cost."""
    near = [
        f"{method}, at most {worst:.1f} points behind {central} at epochs 3 to {EPOCHS} ({_verdict('1', worst <= 1)})"
        for method, central in (
            (MOMENTUM, CENTRAL),
            (TWICE, CENTRAL),
            (QG_ADAM, CENTRAL_ADAM),
            (TWICE_ADAM, CENTRAL_ADAM),
        )
        if method in methods
        for worst in [max(0.0, _behind(methods, method, central).max())]
    ]
    few = [
        f"{method}, ends {last:.1f} points behind {central} ({_verdict('2', last <= 2)}), "
        f"with {_shares(methods, method, own)}"
        for method, central, own in (
            (FEW, CENTRAL, (MOMENTUM,)),
            *((name, CENTRAL_ADAM, (QG_ADAM, MOMENTUM)) for name in (FEW_ADAM, HALF_ADAM, FEW_TWICE, HALF_TWICE)),
        )
        if method in methods
        for last in [_behind(methods, method, central)[-1]]
    ]
    return "Behind all data in one place, mean over agents and seeds:\n\n" + "\n".join(f"- {x}." for x in near + few)


def _shares(methods: Mapping[str, Mapping[str, Floats]], method: str, others: Sequence[str]) -> str:
    """Say what share of the bytes of others a method sends."""
    sent = {name: methods[name]["bytes"][:, -1].mean() for name in (method, *others)}
    ratios = {name: sent[name] / sent[method] for name in others}
    return " and ".join(
        f"1/{ratio:.0f} of the bytes of {name} ({_verdict('1/25', ratio >= 25)})" for name, ratio in ratios.items()
    )


def _behind(methods: Mapping[str, Mapping[str, Floats]], method: str, other: str) -> Floats:
    """Return by how many points a method is behind another after the third epoch and later ones."""
    ours, theirs = (methods[name]["accuracy"].mean(axis=0)[3:] for name in (method, other))
    behind: Floats = 100 * (theirs - ours)
    return behind


def _verdict(target: str, met: bool) -> str:
    return f"target: {target}, {'met' if met else 'not met'}"


def lines(runs: Sequence[Run]) -> str:
    """Return all runs as CSV, a line for each record; bytes are those of all agents."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["method", "graph", "alpha", "step", "seed", "images", "status", "epoch", *CURVES])
    for run in runs:
        trial = Trial(**run["trial"])
        between = 1 if trial.on == "test" else trial.epochs  # records
        head = [trial.method, trial.graph, trial.alpha, trial.step, trial.seed, trial.on, run["status"]]
        for record, values in enumerate(zip(*(run[name] for name in CURVES), strict=True)):
            writer.writerow([*head, record * between, *values])
    return text.getvalue()


def read(text: str) -> list[dict[str, Any]]:
    """Return the runs that :func:`lines` has written."""
    found: dict[Trial, dict[str, Any]] = {}
    for row in csv.DictReader(StringIO(text)):
        on = row["images"]
        place = row["method"], row["graph"], float(row["alpha"]), float(row["step"]), int(row["seed"])
        trial = Trial(*place, EPOCHS if on == "test" else TUNING_EPOCHS, on)
        run = found.setdefault(
            trial, {"trial": asdict(trial), "status": row["status"], **{name: [] for name in CURVES}}
        )
        for name in CURVES:
            run[name].append(float(row[name]))
    return list(found.values())


def figure(runs: Sequence[Run], out: Path) -> None:
    """Draw accuracy against epochs and bytes in the first cell: the mean over seeds, and their range."""
    from matplotlib.figure import Figure

    (graph, alpha), methods = next(iter(_curves(runs).items()))
    drawing = Figure(figsize=(11, 3.6), layout="constrained")
    left, right = drawing.subplots(1, 2, sharey=True)
    for color, method in zip(_COLORS, [name for name in _DRAWN if name in methods], strict=False):
        curve = 100 * methods[method]["accuracy"]
        mean, sent = curve.mean(axis=0), methods[method]["bytes"].mean(axis=0) / AGENTS / 1e6
        epochs, lowest, highest = range(1, len(mean)), curve.min(axis=0), curve.max(axis=0)
        left.plot(epochs, mean[1:], color=color, label=method, marker="o", markersize=3)
        left.fill_between(epochs, lowest[1:], highest[1:], color=color, alpha=0.15, linewidth=0)
        if method != CENTRAL:
            right.plot(sent[1:], mean[1:], color=color, marker="o", markersize=3)
    left.set(xlabel="epochs", ylabel="test accuracy, %", ylim=(45, 90), title=f"{graph} graph, alpha = {alpha}")
    right.set(xlabel="MB sent per agent", xscale="log", title="the same against traffic")
    drawing.legend(loc="outside right center", fontsize=8, frameon=False)
    drawing.savefig(out, dpi=150)
