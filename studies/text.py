"""The study in words and tables (Markdown); every number in them is computed from the trials."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from d3gd.comparison.numbers import quantile, shown
from d3gd.comparison.result import Comparison
from studies.markdown import table
from studies.plan import GROUPS, Part
from studies.settings import (
    ALL,
    AVERAGED,
    BASELINE,
    CENTRAL,
    CONTROL,
    DEFAULT,
    FROST_,
    IDEAL,
    METHODS,
    PLANNED,
    PUSH_PULL,
    SINGLE,
)
from studies.summary import FLOOR, METRICS, Row, Run, Summary, against, among, batch_words, mean_of, summary
from studies.targets import Target
from studies.tuned import ITERATIONS, Setting

_DEFINITIONS = f"""\
- *Value* of a run: the geometric mean of its records at 80, 90 and 100 % of the iterations; infinite if it diverged.
- *Cell*: data set, network, batch size, hardship and step size. Its *ratio*: the median over seeds of the method's
  value over the reference's at the same seed, in logarithms. The reference is {BASELINE}, and {AVERAGED} under
  hardships. Seeds on which the reference diverged have no ratio.
- *Mean* over cells: geometric; ratios below {shown(FLOOR)} count as {shown(FLOOR)}. In brackets: the worst cell.
  "∞ (x without 2)" means that a method diverged in half or more of the seeds of 2 cells; x is the mean over the others.
- Full batches and mini-batches are two populations, and no number is taken over both.
- *Developed*: digits on the five networks on which the rules were developed; all other cells are *held out*, though not
  strictly: a prototype chose the planner's noise share and FROST's balance on one seed of similar networks and data.
- *{CONTROL}* is the control: {BASELINE} with 1 / (n pi) known from the start. *{DEFAULT}* has its default weights,
  planned for mixing from the graph alone; *{PLANNED}* plans them from data as well. *{FROST_}* and *{PUSH_PULL}* track
  gradients, at twice the traffic; Push-Pull's agents must know their out-degrees. *{CENTRAL}* is plain gradient descent
  on all data at once, the floor for any network at equal steps."""


def markdown(
    parts: Mapping[str, Part],
    runs: Mapping[str, Sequence[Run]],
    rows: Mapping[str, Sequence[Row]],
    tuned: Mapping[Setting, Comparison],
    judged: Sequence[Target],
    lacks: Sequence[str] = (),
) -> str:
    """Return the whole report.

    Args:
        parts: The parts of the study, by name.
        runs: Their runs.
        rows: The comparison of these runs.
        tuned: The comparisons at tuned steps.
        judged: The targets.
        lacks: What has not finished, in words.
    """
    equal = [row for name in _SEEDED for row in rows.get(name, [])]
    sections = {
        "How to read it": _DEFINITIONS,
        "Targets": _targets(judged),
        "Equal step sizes": _equal(parts, equal),
        "Against gradient tracking": tracking(rows["equal steps"]),
        "What the weights bring": _weights(parts["weights"], rows["weights"]) if "weights" in parts else "",
        "Traffic": _traffic(runs["equal steps"]),
        "Networks that fail": _hardships(parts, rows),
        "Tuned step sizes": _tuned(tuned) if tuned else "",
        "Single precision": _precision(parts["precision"], rows["precision"]) if "precision" in parts else "",
        "Divergence": _divergence(equal),
    }
    start = f"# Study\n\n{headline(parts['equal steps'], rows['equal steps'])}\n\n`make study` writes this page. "
    start += "Cell by cell: `cells.csv`.\n"
    if lacks:
        start += f"\nThis is a part of the study. Not all of it has run: {'; '.join(lacks)}.\n"
    return "\n".join([start, *(f"## {name}\n\n{body}\n" for name, body in sections.items() if body)])


def headline(part: Part, rows: Sequence[Row]) -> str:
    """Return sentences on the default relative to Di-DGD, one for each group and batch size."""
    found = []
    for batch in part.batches:
        for group in GROUPS:
            one, floor = (summary(among(rows, group, batch), name) for name in (DEFAULT, CENTRAL))
            if one is not None and floor is not None:
                s, d = (means_of(one, metric) for metric in METRICS)
                least = means_of(floor, "stationarity")
                found.append(
                    f"{batch_words(batch).capitalize()}, {one.cells} {group} cells: {s} of {BASELINE}'s stationarity "
                    f"and {d} of its disagreement; {CENTRAL} gradient descent ends at {least}."
                )
    start = (
        f"At equal step sizes {DEFAULT} ends, after {part.iterations:,} iterations, at the following shares: geometric "
        f"means over cells, each the median of {part.seeds} {_plural('seed', part.seeds)}."
    )
    return "\n".join([start, "", *(f"- {sentence}" for sentence in found)])


def means_of(one: Summary | None, metric: str, *, worst: bool = False) -> str:
    """Format a mean over cells, with the mean without cells in which the method diverged, and the worst cell."""
    if one is None:
        return "-"
    end = f" ({shown(one.worst[metric].ratio)})" if worst else ""
    if not one.infinite:
        return shown(one.mean[metric]) + end
    return f"∞ ({shown(one.finite_mean[metric])} without {one.infinite})"


def tracking(rows: Sequence[Row]) -> str:
    """Compare the default with gradient tracking: over all cells, on one-way rings, and on all other networks."""
    kinds: dict[str, Callable[[str], bool]] = {
        "all networks": lambda network: True,
        "one-way rings": lambda network: "one-way ring" in network,
        "all others": lambda network: "one-way ring" not in network,
    }
    batches = list(dict.fromkeys(row.cell.batch for row in rows))
    lines = []
    for other in (FROST_, PUSH_PULL):
        for name, chosen in kinds.items():
            line = [other, name]
            for batch in batches:
                here = [row for row in rows if row.cell.batch == batch and chosen(row.cell.network)]
                texts = []
                for metric in METRICS:
                    ratios = list(against(here, DEFAULT, other, metric).values())
                    ratios = [min(ratio, 1 / FLOOR) for ratio in ratios]
                    wins = sum(ratio < 1 for ratio in ratios)
                    texts.append(f"{shown(mean_of(ratios))} ({wins} of {len(ratios)} below 1)" if ratios else "-")
                line += texts
            lines.append(line)
    header = ["against", "networks", *(f"{batch_words(batch)}: {metric}" for batch in batches for metric in METRICS)]
    return (
        f"Values of {DEFAULT} over those of {FROST_} and {PUSH_PULL} at equal step sizes: geometric means over the "
        "developed and held-out cells, and in how many of them it ends lower. Ratios are cut at 1e-7 and 1e7.\n\n"
        + table(header, lines)
    )


def _equal(parts: Mapping[str, Part], rows: Sequence[Row]) -> str:
    texts = [
        f"Ratios to {BASELINE} at the same step size: mean over cells (worst cell). Number of seeds behind each cell's "
        "median: "
        + ", ".join(f"{parts[name].seeds} ({what})" for name, what in _SEEDED.items() if name in parts)
        + ".\n\n![Stationarity of every method on every network, relative to Di-DGD](study.png)"
    ]
    for group in GROUPS:
        here = [row for row in rows if row.cell.group == group]
        batches = list(dict.fromkeys(row.cell.batch for row in here))
        steps = ", ".join(f"{step:g}" for step in dict.fromkeys(row.cell.step for row in here))
        lines = []
        for method in dict.fromkeys(row.method for row in here if row.method != BASELINE):
            found = [summary(among(here, group, batch), method) for batch in batches]
            name = f"**{method}**" if method == DEFAULT else method
            lines.append([name, *(means_of(one, metric, worst=True) for one in found for metric in METRICS)])
        if lines:
            cells = len({row.cell for row in here if row.cell.batch == batches[0]})
            header = ["method", *(f"{batch_words(batch)}: {metric}" for batch in batches for metric in METRICS)]
            places = len({row.cell[:2] for row in here})
            texts.append(
                f"### {group.capitalize()}\n\n{places} pairs of data set and network, step sizes {steps}: "
                f"{cells} cells per batch size.\n\n" + table(header, lines)
            )
    return "\n\n".join(texts)


_SEEDED = {"equal steps": "developed, held out", "bottlenecks": "bottlenecks", "large": "large networks"}


def _weights(part: Part, rows: Sequence[Row]) -> str:
    labels = {DEFAULT: f"correction, planned for mixing ({DEFAULT})", PLANNED: "correction, planned from data"}
    names = [name for name in part.methods if name != BASELINE]
    order = sorted(names, key=lambda name: ("Push-Pull" in name, SINGLE in name, "no correction" in name))
    lines = []
    for method in order:
        found = [summary([row for row in rows if row.cell.batch == batch], method) for batch in part.batches]
        label = labels.get(method, method.replace(DEFAULT, "correction, planned for mixing"))
        lines.append([label, *(means_of(one, metric, worst=True) for one in found for metric in METRICS)])
    header = ["method, weights", *(f"{batch_words(batch)}: {metric}" for batch in part.batches for metric in METRICS)]
    return (
        f"Digits on {len(part.places)} networks, step sizes {' and '.join(f'{step:g}' for step in part.steps)}, "
        f"{part.seeds} {_plural('seed', part.seeds)}: means over these {len(part.places) * len(part.steps)} cells "
        f"per batch size of ratios to {BASELINE} on Metropolis weights (worst cell). Without correction, the gradient "
        f"step comes before the mixing and pi is exact. The last row is {PUSH_PULL} on {DEFAULT}'s weights.\n\n"
        + table(header, lines)
    )


def _traffic(runs: Sequence[Run]) -> str:
    """Bytes relative to Di-DGD's in the same cell, early and at the end; medians over runs that were completed."""
    whole = {(run.cell, run.seed): run.curves["bytes"] for run in runs if run.method == BASELINE and not run.diverged}
    iterations = next(run.curves["iterations"] for run in runs if not run.diverged)
    moments = [int(iterations[len(iterations) // 10]), int(iterations[-1])]
    dims = sorted({run.dim for run in runs})
    methods = [m for m in dict.fromkeys(run.method for run in runs) if m not in (BASELINE, CENTRAL, CONTROL)]
    lines = []
    for method in methods:
        line = [method]
        for moment in moments:
            for dim in dims:
                ratios = [
                    float(np.interp(moment, run.curves["iterations"], run.curves["bytes"]))
                    / float(np.interp(moment, iterations, whole[run.cell, run.seed]))
                    for run in runs
                    if (run.method, run.dim) == (method, dim) and not run.diverged and (run.cell, run.seed) in whole
                ]
                line.append(shown(quantile(ratios, 0.5)) if ratios else "-")
        lines.append(line)
    header = ["method", *(f"{moment:,} iterations, d = {dim}" for moment in moments for dim in dims)]
    return (
        f"Bytes sent until an iteration, discovery and plans included, relative to {BASELINE}, which sends d + n "
        "numbers per link: medians over the cells of all networks of 10 to 50 agents with models of d numbers.\n\n"
        + table(header, lines)
    )


def _hardships(parts: Mapping[str, Part], rows: Mapping[str, Sequence[Row]]) -> str:
    texts = []
    for name, what in (("hardships", "Quadratics with exact gradients"), ("hardships, batches", "Digits")):
        if name not in parts:
            continue
        part, here = parts[name], rows[name]
        batch = "" if part.batches[0] is None else f" with batches of {part.batches[0]}"
        lines = []
        for method in part.methods:
            if method != AVERAGED:
                found = [
                    summary([row for row in here if row.cell.hardship == hardship], method)
                    for hardship in part.hardships
                ]
                texts_of = [", ".join(means_of(one, metric) for metric in METRICS) for one in found]
                lines.append([f"**{method}**" if method == DEFAULT else method, *texts_of])
        texts.append(
            f"{what}{batch} on {', '.join(network for _, network in part.places)}; step sizes "
            f"{', '.join(f'{step:g}' for step in part.steps)}, {part.iterations:,} iterations, medians of {part.seeds} "
            f"{_plural('seed', part.seeds)}:\n\n" + table(["method", *part.hardships], lines)
        )
    return (
        f"Stationarity and disagreement relative to {AVERAGED} at the same step size, means over networks and step "
        f"sizes. *{ALL.capitalize()}* is all four hardships together. {BASELINE}, {FROST_} and {PUSH_PULL} do not "
        "survive them; 1e-7 stands for anything below it. "
        "PULM-DGD takes one gradient in n or more iterations, so that equal steps do not suit it: see the tuned steps. "
        "R-FAST's agents know their out-degrees, the others' only whom they hear.\n\n" + "\n\n".join(texts)
    )


def _tuned(tuned: Mapping[Setting, Comparison]) -> str:
    texts = []
    for hard in (False, True):
        for batch in dict.fromkeys(setting.batch for setting in tuned):
            here = {s: found for s, found in tuned.items() if s.batch == batch and (s.hardship != IDEAL) == hard}
            run = {row.method for found in here.values() for row in found.rows}
            names = [name for name in METHODS if name in run]
            lines = []
            for setting, found in here.items():
                at = {row.method: row for row in found.rows}
                where = f"{setting.data}, {setting.network}" + (f", {setting.hardship}" if hard else "")
                lines.append([where, *(f"{shown(at[m].value.median)} ({at[m].step:g})" for m in names)])
            if lines:
                what = f"{batch_words(batch).capitalize()}, {'networks that fail' if hard else 'every message arrives'}"
                texts.append(f"{what}:\n\n" + table(["", *names], lines))
    any_of = next(iter(tuned.values()))
    rows = [row for found in tuned.values() for row in found.rows]
    edges = sorted({row.method for row in rows if "edge" in row.note})
    inside = "at the edge: " + ", ".join(edges) if edges else "of no method is the chosen step at the edge of its grid"
    return (
        f"Stationarity after {ITERATIONS:,} iterations, median over seeds {any_of.seeds[0]} to {any_of.seeds[-1]}, and "
        f"the step. Steps are those with the lowest stationarity on the worse of seeds {any_of.tuning_seeds[0]} and "
        f"{any_of.tuning_seeds[-1]}. {any_of.grid_text} Checked: {inside}.\n\n" + "\n\n".join(texts)
    )


def _precision(part: Part, rows: Sequence[Row]) -> str:
    lines = []
    for method in part.methods:
        here = [row for row in rows if row.method == method]
        values = [[row.values[metric] for row in here] for metric in METRICS]
        lines.append([method, *(f"{shown(quantile(v, 0.5))} ({shown(max(v))})" for v in values)])
    return (
        f"Quadratics in float32 after {part.iterations:,} iterations at step {part.steps[0]:g}, on "
        f"{', '.join(network for _, network in part.places)}: median over these networks (largest), one seed each. "
        "What must be conserved is kept in double precision; messages are in single precision. The table on weights "
        "has a row in float32 on the digits.\n\n" + table(["method", *METRICS], lines)
    )


def _targets(judged: Sequence[Target]) -> str:
    lines = [(target.asked, target.found, target.verdict.replace("not met", "**not met**")) for target in judged]
    details = [f"- {target.asked}, but {'; '.join(target.against)}." for target in judged if target.against]
    return f"For {DEFAULT}.\n\n" + table(["asked", "found", ""], lines) + "\n\n" + "\n".join(details)


def _divergence(rows: Sequence[Row]) -> str:
    methods = [method for method in dict.fromkeys(row.method for row in rows) if method != BASELINE]
    lost = {method: sum(row.lost for row in rows if row.method == method) for method in methods}
    won = {method: sum(row.won for row in rows if row.method == method) for method in methods}
    total = sum(row.diverged for row in rows if row.method == BASELINE)
    found = f"At equal steps, runs of any method that diverge where {BASELINE} does not: "
    found += (", ".join(f"{method} {count}" for method, count in lost.items() if count) or "none") + ". "
    if not total:
        return found + f"{BASELINE} diverged nowhere."
    return (
        found
        + f"Of the {total} runs where {BASELINE} diverges, these converge: "
        + (", ".join(f"{method} {count}" for method, count in won.items()) + ".")
    )


def _plural(word: str, count: int) -> str:
    return word + "s" * (count != 1)
