"""The study in words and tables (Markdown); every number in them is computed from the comparison."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from d3gd.comparison.numbers import quantile, shown
from studies.costs import cost_summaries
from studies.plan import ADAPT, BALANCED, BASELINE, CENTRAL, CONTROL, CORRECTION, DEFAULT, MIXING, PLANNED
from studies.summary import (
    FLOOR,
    GROUPS,
    METRICS,
    Ratio,
    Row,
    Run,
    Summary,
    rows_of,
    shares,
    summary,
)
from studies.targets import targets

_DEFINITIONS = f"""\
- *Value* of a run: the geometric mean of its records at 80, 90 and 100 % of the iterations; infinite if it diverged.
- *Cell*: data set, network, batch size and step size. Its *ratio*: the median over seeds of the method's value over the
  reference's at the same seed, in logarithms. Seeds on which the reference diverged have no ratio and are listed
  separately.
- *Mean* over cells: geometric; ratios below {shown(FLOOR)} count as {shown(FLOOR)}. "∞ (x without 2)" means that it
  diverged in half or more of the seeds of 2 cells, and x is the mean over the others.
- *Above 1*: the number of ratios (two metrics per cell) above 1 beyond seed noise, that is, with median and lower
  quartile above 1.
- *Developed*: digits on the five networks on which the rules were developed; all other cells are *held out*, though not
  strictly: a prototype chose the planner's noise share and FROST's balance on one seed of similar networks and data.
- *{CONTROL}* is the control: {BASELINE} with 1 / (n pi) known from the start. *{ADAPT}* is the control with
  the gradient step before the mixing. *{CORRECTION}* (on Metropolis weights) and *{MIXING}* each add one change to
  that; *{DEFAULT}* has both. *{BALANCED}* has doubly stochastic weights instead; *{PLANNED}* plans its weights
  from data as well. *FROST, mixing* and *Push-Pull* track
  gradients, at twice the traffic; Push-Pull's agents must know their out-degrees. *{CENTRAL}* is plain gradient
  descent on all data at once, the floor for any network at equal steps."""


def markdown(rows: Sequence[Row], best: Sequence[Run]) -> str:
    """Return the whole report.

    Args:
        rows: The comparison at equal steps.
        best: The runs at their tuned steps.
    """
    tuned_rows = rows_of(best)
    seeds = len({run.seed for run in best})
    sections = {
        "How to read it": _DEFINITIONS,
        "Targets": _targets(rows),
        f"Equal step size, against {BASELINE}": _means(rows, BASELINE),
        f"Equal step size, against the control ({CONTROL})": _means(rows, CONTROL),
        f"Tuned step size, against tuned {BASELINE}": (
            "Each method uses the step of the grid with the smallest median stationarity, for each data set, network "
            "and batch size. The last column counts the choices.\n\n" + _means(tuned_rows, BASELINE, _steps(best))
        ),
        f"Cost of reaching {BASELINE}'s result": (
            f"The target is tuned {BASELINE}'s final stationarity in the same trial. Iterations and bytes until a "
            f"method at its tuned step reaches it and stays there, as shares of {BASELINE}'s whole run: median over "
            f"trials [quartiles]; ∞: never within it.\n\n{_costs(best)}"
        ),
        "Where the gain comes from": attribution(rows),
        "Divergence": _divergence(rows),
        "Network by network": "\n".join(f"- {sentence}" for sentence in sentences(rows)),
    }
    start = f"# Study\n\n{headline(rows)} {beside(rows)}\n\nMedians over {seeds} seed{'s' * (seeds > 1)}. "
    start += "Cell by cell: `cells.csv`, and the picture `study.png`.\n"
    return "\n".join([start, *(f"## {name}\n\n{body}\n" for name, body in sections.items())])


def headline(rows: Sequence[Row]) -> str:
    """Return a sentence on the default's stationarity and disagreement relative to Di-DGD."""
    parts = []
    for group in GROUPS:
        one = summary(rows, DEFAULT, group)
        if one is not None:
            s, d = (shown(one.mean[metric]) for metric in METRICS)
            parts.append(f"{s}x the stationarity and {d}x the disagreement on the {one.cells} {group} cells")
    return f"At equal step size {DEFAULT} ends at {' and at '.join(parts)} (geometric means, relative to {BASELINE})."


def beside(rows: Sequence[Row]) -> str:
    """Return a sentence on each part of the default without the others."""
    parts = []
    for method in (ADAPT, MIXING, CORRECTION):
        found = {group: summary(rows, method, group) for group in GROUPS}
        parts.append(
            f"{method} "
            + ", ".join(
                f"{' and '.join(means_of(one, metric) for metric in METRICS)} ({group})"
                for group, one in found.items()
                if one is not None
            )
        )
    return f"Its parts alone: {'; '.join(parts)}."


def sentences(rows: Sequence[Row]) -> list[str]:
    """Return one sentence for each data set and network: medians over its cells, and the default's worst."""
    found = []
    for data, network in dict.fromkeys((row.cell.data, row.cell.network) for row in rows):
        clauses = []
        for method in (DEFAULT, PLANNED, BALANCED, MIXING, CORRECTION, ADAPT):
            here = [
                row.ratios[BASELINE]
                for row in rows
                if (row.method, row.cell.data, row.cell.network) == (method, data, network)
            ]
            ratios = [[r[metric].median for r in here if not np.isnan(r[metric].median)] for metric in METRICS]
            if not ratios[0]:
                continue
            s, d = (shown(quantile(values, 0.5)) for values in ratios)
            if method == DEFAULT:
                clauses.append(
                    f"{method} ends at {s}x the stationarity and {d}x the disagreement of {BASELINE} (medians over "
                    f"{len(ratios[0])} cells; worst {shown(max(ratios[0]))} and {shown(max(ratios[1]))})"
                )
            else:
                clauses.append(f"{method}{' alone' if method in (MIXING, CORRECTION, ADAPT) else ''} {s} and {d}")
        found.append(f"{network}, {data}: {'; '.join(clauses) or f'{BASELINE} diverged everywhere'}.")
    return found


def attribution(rows: Sequence[Row]) -> str:
    """Return the share of the default's gain, in logarithms, that is due to each of its parts."""
    found = []
    for group in GROUPS:
        for metric in METRICS:
            split = shares(rows, group, metric)
            if split is not None:
                parts = ", ".join(f"{name} {100 * share:z.0f} %" for name, share in split[0].items())
                found.append(f"- {metric} on {split[1]} {group} cells: {parts}.")
    return (
        f"Shares of {DEFAULT}'s mean log gain over {BASELINE}. The exact pi and the order of steps come first, as the "
        f"rest is built on them; {CORRECTION} and {MIXING} share the remainder, each with the average of its gain as "
        "the first and as the last of the two.\n\n" + "\n".join(found)
    )


def means_of(one: Summary, metric: str) -> str:
    """Format a mean over cells, with the mean without cells in which the method diverged."""
    if not one.infinite:
        return shown(one.mean[metric])
    return f"∞ ({shown(one.finite_mean[metric])} without {one.infinite})"


def _table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rule = ["---"] + ["---:" if name in (*METRICS, "above 1", "reached") else "---" for name in header[1:]]
    return "\n".join("| " + " | ".join(line) + " |" for line in (header, rule, *lines))


def _methods(rows: Sequence[Row], without: str) -> list[str]:
    return [method for method in dict.fromkeys(row.method for row in rows) if method != without]


def _targets(rows: Sequence[Row]) -> str:
    judged = targets(rows)
    lines = [(target.asked, target.found, "met" if target.met else "**not met**") for target in judged]
    against = [f"- {target.asked}, but {'; '.join(target.against)}." for target in judged if target.against]
    return _table(["asked", "found", ""], lines) + "\n\n" + "\n".join([*against, *_floor(rows)])


def _floor(rows: Sequence[Row]) -> list[str]:
    """Return the lower bound of stationarity at equal steps: that of gradient descent on all data at once."""
    lines = []
    for group in GROUPS:
        one = summary(rows, CENTRAL, group, BASELINE)
        if one is not None:
            worst = one.worst["stationarity"]
            lines.append(
                f"- For comparison, on {group} cells gradient descent on all data at once ({CENTRAL}) ends at "
                f"{shown(one.mean['stationarity'])} of {BASELINE}'s stationarity at the same step, and at "
                f"{shown(worst.ratio)} in its worst cell ({worst.cell}): the floor for any network."
            )
    return lines


def _means(rows: Sequence[Row], reference: str, more: Mapping[tuple[str, str], str] | None = None) -> str:
    """Return a table for each group; ``more`` fills a last column, by group and method."""
    parts = []
    for group in GROUPS:
        lines = []
        for method in _methods(rows, reference):
            one = summary(rows, method, group, reference)
            if one is None:
                continue
            name = f"**{method}**" if method == DEFAULT else method
            worst = [f"{shown(one.worst[metric].ratio)} ({one.worst[metric].cell})" for metric in METRICS]
            above = f"{sum(one.above.values())} of {len(METRICS) * one.cells}"
            last = [] if more is None else [more[group, method]]
            lines.append([name, *(means_of(one, metric) for metric in METRICS), above, *worst, *last])
        if lines:
            header = ["method", *METRICS, "above 1", *(f"worst {metric}" for metric in METRICS)]
            parts.append(
                f"{group.capitalize()} cells:\n\n" + _table([*header, *(["steps"] * (more is not None))], lines)
            )
    return "\n\n".join(parts)


def _steps(best: Sequence[Run]) -> dict[tuple[str, str], str]:
    """Count how often each step was the best, by group and method."""
    chosen = {(run.cell, run.method): run.step for run in best}
    steps = sorted(set(chosen.values()))
    found: dict[tuple[str, str], Counter[float]] = {}
    for (cell, method), step in chosen.items():
        found.setdefault((cell.group, method), Counter())[step] += 1
    return {key: ", ".join(f"{s:g}: {count[s]}" for s in steps if count[s]) for key, count in found.items()}


def _costs(best: Sequence[Run]) -> str:
    parts = []
    spent = cost_summaries(best)
    for group in GROUPS:
        lines = [
            [one.method, _quartiles(one.iterations), _quartiles(one.bytes), f"{one.reached} of {one.trials}"]
            for one in spent
            if one.group == group
        ]
        if lines:
            parts.append(f"{group.capitalize()}:\n\n" + _table(["method", "iterations", "bytes", "reached"], lines))
    return "\n\n".join(parts)


def _quartiles(ratio: Ratio) -> str:
    return f"{shown(ratio.median)} [{shown(ratio.low)}, {shown(ratio.high)}]"


def _divergence(rows: Sequence[Row]) -> str:
    methods = _methods(rows, BASELINE)
    base = [row for row in rows if row.method == BASELINE and row.diverged]
    lost = {method: sum(row.lost for row in rows if row.method == method) for method in methods}
    won = {method: sum(row.won for row in rows if row.method == method) for method in methods}
    found = [
        f"Runs of any method that diverge where {BASELINE} does not: "
        + (", ".join(f"{method} {count}" for method, count in lost.items() if count) or "none")
        + "."
    ]
    if not base:
        return f"{BASELINE} diverged nowhere. {found[0]}"
    total = sum(row.diverged for row in base)
    found.append(
        f"Of the {total} runs where {BASELINE} diverges, these converge: "
        + ", ".join(f"{method} {count}" for method, count in won.items())
        + f". They are in these cells (seeds of {BASELINE} that diverge):\n"
    )
    found += [f"- {row.cell}: {row.diverged} of {row.diverged + row.completed}" for row in base]
    return "\n".join(found)
