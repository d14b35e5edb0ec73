# ruff: noqa: D301 - the \b that keeps typer from joining lines must be the character itself
"""Pages that show runs, comparisons, sweeps and studies."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from d3gd.cli.base import app
from d3gd.errors import RecordError, printable


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Folders of runs, or one of another kind.")],
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("report.html"),
) -> None:
    """Write one HTML page that shows runs side by side, or a comparison, a sweep or a study.

    The page needs no server and no internet connection: open it in a browser, on a phone too, or send it to someone.
    It shows the network as its weights changed (for runs with record_weights = true), the metrics, every agent's data
    and weights, and the settings. Unfinished runs are skipped.

    \b
    Examples:
      d3gd run experiment.toml --report
      d3gd report runs/didgd runs/d3gd --out both.html
      d3gd report quick-compare                    a comparison: its table, which sorts, and curves
      d3gd report steps --out steps.html           a sweep
    """
    from d3gd.comparison.page import is_comparison, write_stored
    from d3gd.plots import labels_of
    from d3gd.report import write_report
    from d3gd.report.study import is_study, write_study
    from d3gd.result import Result
    from d3gd.runs.outcome import is_finished
    from d3gd.sweeps.result import Sweep, is_sweep

    def write_sweep(folder: Path, path: Path) -> None:
        Sweep.load(folder).report(path)

    kinds = {
        "a comparison": (is_comparison, write_stored),
        "a sweep": (is_sweep, write_sweep),
        "a study": (is_study, write_study),
    }
    for what, (holds, write) in kinds.items():
        several = [folder for folder in runs if holds(folder)]
        if several and len(runs) > 1:
            raise RecordError(f"{several[0]} is {what}, which has a page of its own; report it alone")
        if several:
            write(several[0], out)
            print(printable(f"wrote {out}"))
            return
    finished = [run for run in runs if is_finished(run)]
    write_report(labels_of((run.resolve().name, Result.load(run)) for run in finished or runs), out)
    if finished and len(finished) < len(runs):
        left_out = ", ".join(str(run) for run in runs if run not in finished)
        print(printable(f"skipped, not finished: {left_out}"), file=sys.stderr)
    print(printable(f"wrote {out}"))
