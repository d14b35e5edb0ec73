"""The study as a command: run missing trials, then write tables, figure and text."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from d3gd.algorithms.identity import describe
from d3gd.comparison.numbers import shown, strict
from d3gd.errors import SettingsError
from d3gd.runs import files
from studies import plan
from studies.costs import cost_summaries
from studies.figure import draw
from studies.plan import BASELINE, CONTROL, DEFAULT
from studies.summary import (
    GROUPS,
    METRICS,
    Cell,
    Ratio,
    Row,
    Run,
    Worst,
    rows_of,
    runs_of,
    shares,
    summary,
    tuned,
)
from studies.targets import targets
from studies.text import headline, markdown, means_of, sentences

_SEEDS = {True: 2, False: 5}  # True: quick


def study(
    *, quick: bool = False, seeds: int | None = None, out: Path, jobs: int | None = None, progress: bool | None = None
) -> dict[str, Any]:
    """Compare the methods on many networks, and write a report.

    Writes to ``out``: ``cells.csv``, ``study.md``, ``study.json``, ``study.png``, and each trial's curves under
    ``trials``, which a later call does not run again; prints the headline.

    Args:
        quick: Only a few of the networks.
        seeds: Number of seeds; they are 0, 1, ..., not selected. By default 2 if quick, otherwise 5.
        out: The folder to write to.
        jobs: Number of processes; by default one per core.
        progress: Show progress, as a bar on a terminal and in lines elsewhere; by default only on a terminal.

    Returns:
        The content of ``study.json``.
    """
    seeds = _SEEDS[quick] if seeds is None else seeds
    for name, value in (("seeds", seeds), ("jobs", 1 if jobs is None else jobs)):
        if value < 1:
            raise SettingsError(f"{name} = {value}: it must be a whole number of at least 1")
    wanted = plan.trials(quick=quick, seeds=seeds)
    there = sum((out / "trials" / trial.file).exists() for trial in wanted)
    print(f"{len(wanted)} trials" + (f", {there} of them already in {out}" if there else ""))
    trials = plan.run_trials(wanted, out=out, jobs=jobs, progress=progress)
    settings = {
        "quick": quick,
        "seeds": list(range(seeds)),
        "iterations": plan.ITERATIONS,
        "every": plan.EVERY,
        "step_sizes": list(plan.STEPS),
        "algorithms": {name: describe(a) for name, a in plan.methods(plan.STEPS[0]).items()},
        "versions": files.versions(),
    }
    return report(trials, settings, out)


def report(trials: Sequence[Mapping[str, Any]], settings: Mapping[str, Any], out: Path) -> dict[str, Any]:
    """Write and print the report of trials; return the content of ``study.json``, which begins with the settings."""
    runs = runs_of(trials)
    best = tuned(runs)
    rows = rows_of(runs)
    content: dict[str, Any] = {**settings, **_plain(numbers(rows, best))}
    folder = files.make_folder(out)
    _write_cells(folder / "cells.csv", rows, {(run.cell, run.method): run.step for run in best})
    files.write_atomically(folder / "study.md", markdown(rows, best).encode())
    files.write_json(folder / "study.json", content)
    files.write_atomically(folder / "study.png", draw(rows))
    show(rows)
    print(f"wrote study.md, study.json, study.png and cells.csv to {out}")
    return content


def numbers(rows: Sequence[Row], best: Sequence[Run]) -> dict[str, Any]:
    """Return the numbers of the report, by name; single cells at equal steps are in ``cells.csv``.

    Args:
        rows: The comparison at equal steps.
        best: The runs at their tuned steps.
    """
    tuned_rows = rows_of(best)
    steps = {(run.cell, run.method): run.step for run in best}
    views = {"equal step": rows, "tuned step": tuned_rows}
    return {
        "headline": headline(rows),
        "sentences": sentences(rows),
        "targets": [asdict(target) for target in targets(rows)],
        "summaries": [
            {"view": view, "group": group, "reference": reference, **asdict(one)}
            for view, compared in views.items()
            for group in GROUPS
            for reference in (BASELINE, CONTROL)
            for method in dict.fromkeys(row.method for row in rows)
            if (one := summary(compared, method, group, reference)) is not None
        ],
        "shares": [
            {"group": group, "metric": metric, "cells": split[1], **split[0]}
            for group in GROUPS
            for metric in METRICS
            if (split := shares(rows, group, metric)) is not None
        ],
        "costs": [asdict(cost) for cost in cost_summaries(best)],
        "tuned": [
            {"cell": row.cell, "method": row.method, "step_size": steps[row.cell, row.method]}
            | {metric: row.ratios[BASELINE][metric].median for metric in METRICS}
            for row in tuned_rows
        ],
    }


def _plain(value: Any) -> Any:
    """Convert numbers to strict JSON with five digits: infinity becomes a word, NaN becomes null."""
    if isinstance(value, Cell):
        return str(value)
    if isinstance(value, Ratio | Worst):
        return _plain(value._asdict())
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return strict(value)
    return value


def show(rows: Sequence[Row]) -> None:
    """Print the means at equal steps, and the targets with the results."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(width=120, highlight=False)
    table = Table(title=f"Ratios to {BASELINE} at equal step size (stationarity, disagreement): means and worst cells")
    table.add_column("method", no_wrap=True)
    for group in GROUPS:
        table.add_column(f"{group} cells")
        table.add_column("worst")
    for method in dict.fromkeys(row.method for row in rows if row.method != BASELINE):
        found = [summary(rows, method, group) for group in GROUPS]
        texts = [
            text
            for one in found
            for text in (
                ("-", "-")
                if one is None
                else (
                    ", ".join(means_of(one, metric) for metric in METRICS),
                    ", ".join(shown(one.worst[metric].ratio) for metric in METRICS),
                )
            )
        ]
        table.add_row(method, *texts, style="bold" if method == DEFAULT else "")
    console.print(table)
    judged = Table(title="Targets")
    for name in ("asked", "found", ""):
        judged.add_column(name)
    for target in targets(rows):
        judged.add_row(
            target.asked, target.found, Text("met", style="green") if target.met else Text("not met", style="red")
        )
    console.print(judged)
    console.print(headline(rows))


def _write_cells(path: Path, rows: Sequence[Row], best: Mapping[tuple[Cell, str], float]) -> None:
    """Write a line per cell and method: ratios to both references with quartiles, and the status of the runs."""
    ratios = [
        f"{metric}{suffix}{quartile}"
        for suffix in ("", "_to_exact_pi")
        for metric in METRICS
        for quartile in ("", "_lower", "_upper")
    ]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        ["data", "network", "batch", "step_size", "method", "group", *ratios, "completed", "diverged", "tuned"]
    )
    for row in rows:
        cell = row.cell
        values = [
            "" if np.isnan(value) else f"{value:.4g}"
            for reference in (BASELINE, CONTROL)
            for metric in METRICS
            for low, median, high in [row.ratios[reference][metric]]
            for value in (median, low, high)
        ]
        chosen = best[cell._replace(step=None), row.method] == cell.step
        writer.writerow(
            [
                *(cell.data, cell.network, cell.batch or "all", cell.step, row.method, cell.group),
                *(*values, row.completed, row.diverged, "yes" if chosen else "no"),
            ]
        )
    files.write_atomically(path, text.getvalue().encode())
