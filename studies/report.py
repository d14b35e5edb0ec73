"""The study as a command: run what is missing, then write tables, figures and text."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from d3gd.algorithms.identity import describe
from d3gd.comparison.numbers import strict
from d3gd.comparison.result import Comparison
from d3gd.errors import SettingsError
from d3gd.runs import files
from d3gd.runs.outputs import claim
from studies import plan, tuned
from studies.figure import heat_map, under_loss
from studies.plan import Part, Trial
from studies.settings import METHODS
from studies.summary import METRICS, Row, rows_of, runs_of
from studies.targets import Target, targets
from studies.text import headline, markdown
from studies.tuned import SHOWN, Setting

TITLE = "PerronD3GD and other methods on many networks, data sets, batch sizes, hardships and step sizes"


def study(
    *,
    quick: bool = False,
    so_far: bool = False,
    out: Path,
    jobs: int | None = None,
    progress: bool | None = None,
) -> dict[str, Any]:
    """Compare the methods on many networks, and write a report.

    Writes to ``out``: ``study.md``, ``study.json``, ``study.png``, ``loss.png`` and ``cells.csv``. What was run is kept
    under ``trials`` and ``tuned``, and not run again; prints the headline and the targets.

    Args:
        quick: Only a few of the networks, and one seed.
        so_far: Report what has finished instead of running the rest; the report says what is missing.
        out: The folder to write to.
        jobs: Number of processes; by default one per core.
        progress: Show progress, as a bar on a terminal and in lines elsewhere; by default only on a terminal.

    Returns:
        The content of ``study.json``.
    """
    if jobs is not None and jobs < 1:
        raise SettingsError(f"jobs = {jobs}: it must be a whole number of at least 1")
    claim(out, "study", {"study": TITLE})
    whole = plan.parts(quick=quick)
    settings: Sequence[Setting] = tuned.QUICK if quick else tuned.SETTINGS
    parts = plan.finished(whole, out) if so_far else whole
    wanted = tuned.finished(settings, out) if so_far else settings
    if "equal steps" not in parts:
        raise SettingsError(f"--so-far: no seed of the comparison at equal steps has finished in {out}; leave it out")
    trials = plan.run_trials(parts, out=out, jobs=jobs, progress=progress)
    seeds = 2 if quick else tuned.SEEDS
    comparisons = tuned.comparisons(wanted, seeds=seeds, out=out, jobs=jobs, progress=progress)
    return report(parts, trials, comparisons, out, missing(whole, parts, settings, wanted))


def missing(
    whole: Mapping[str, Part], parts: Mapping[str, Part], settings: Sequence[Setting], wanted: Sequence[Setting]
) -> list[str]:
    """Return what a study lacks, in words: one entry for each part that has not finished."""
    found = []
    for name, part in whole.items():
        some = parts.get(name)
        if some is None:
            found.append(f"{name}: not begun")
        elif some.places != part.places:
            found.append(f"{name}: {len(some.places)} of {len(part.places)} pairs of data set and network, 1 seed")
        elif some.seeds != part.seeds:
            found.append(f"{name}: {some.seeds} of {part.seeds} seeds")
    if len(wanted) < len(settings):
        found.append(f"tuned steps: {len(wanted)} of {len(settings)} settings")
    return found


def report(
    parts: Mapping[str, Part],
    trials: Mapping[Trial, Mapping[str, Any]],
    comparisons: Mapping[Setting, Comparison],
    out: Path,
    lacks: Sequence[str] = (),
) -> dict[str, Any]:
    """Write and print the report; return the content of ``study.json``."""
    runs = {name: runs_of(trials, part) for name, part in parts.items()}
    rows = {name: rows_of(found) for name, found in runs.items()}
    judged = targets(rows, comparisons)
    names = dict.fromkeys(method for part in parts.values() for method in part.methods)
    content = {
        "parts": {name: asdict(part) for name, part in parts.items()},
        "algorithms": {name: describe(METHODS[name].make(0.1)) for name in names},
        "versions": files.versions(),
        "missing": list(lacks),
        "targets": [asdict(target) for target in judged],
        "tuned": [
            {"setting": str(setting), "method": row.method, "step_size": row.step, "status": row.status}
            | {"stationarity": strict(row.value.median), "disagreement": strict(row.disagreement)}
            for setting, found in comparisons.items()
            for row in found.rows
        ],
    }
    equal = [row for name in ("equal steps", "bottlenecks", "large") for row in rows.get(name, [])]
    files.write_atomically(out / "cells.csv", cells(rows).encode())
    files.write_atomically(out / "study.md", markdown(parts, runs, rows, comparisons, judged, lacks).encode())
    files.write_json(out / "study.json", content)
    files.write_atomically(out / "study.png", heat_map(equal))
    if SHOWN in comparisons:
        files.write_atomically(out / "loss.png", under_loss(comparisons[SHOWN]))
    show(judged)
    print(headline(parts["equal steps"], rows["equal steps"]))
    print(f"wrote study.md, study.json, study.png, loss.png and cells.csv to {out}")
    return content


def cells(rows: Mapping[str, Sequence[Row]]) -> str:
    """Return a line per part, cell and method: median values, ratios to the reference with quartiles, and status."""
    ratios = [f"{metric}_ratio{quartile}" for metric in METRICS for quartile in ("", "_lower", "_upper")]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    where = ["part", "data", "network", "batch", "hardship", "step_size", "method", "reference"]
    writer.writerow([*where, *METRICS, *ratios, "completed", "diverged"])
    for part, found in rows.items():
        for row in found:
            cell = row.cell
            values = [row.values[metric] for metric in METRICS]
            values += [value for m in METRICS for low, mid, high in [row.ratio[m]] for value in (mid, low, high)]
            shown = ["" if np.isnan(value) else f"{value:.4g}" for value in values]
            place = [part, cell.data, cell.network, cell.batch or "all", cell.hardship, cell.step]
            writer.writerow([*place, row.method, cell.reference, *shown, row.completed, row.diverged])
    return text.getvalue()


def show(judged: Sequence[Target]) -> None:
    """Print the targets with the results."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(width=120, highlight=False)
    table = Table(title="Targets")
    for name in ("asked", "found", ""):
        table.add_column(name)
    for target in judged:
        table.add_row(target.asked, target.found, Text(target.verdict, style="green" if target.met else "red"))
    console.print(table)
