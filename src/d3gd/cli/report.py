# ruff: noqa: D301 - the \b that keeps typer from joining lines must be the character itself
"""Pages that show runs and comparisons."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from d3gd.cli.base import app
from d3gd.errors import RecordError, printable


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Folders of runs, or of one comparison.")],
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("report.html"),
) -> None:
    """Write one HTML page that shows runs side by side, or a comparison.

    The page needs no server and no internet connection: open it in a browser, on a phone too, or send it to someone.
    It shows the network as its weights changed (for runs with record_weights = true), the metrics, every agent's data
    and weights, and the settings. Unfinished runs are skipped.

    \b
    Examples:
      d3gd run experiment.toml --report
      d3gd report runs/didgd runs/d3gd --out both.html
      d3gd report quick-compare
    """
    from d3gd.comparison.page import is_comparison, write_stored
    from d3gd.plots import labels_of
    from d3gd.report import write_report
    from d3gd.result import Result
    from d3gd.runs.outcome import is_finished

    compared = [folder for folder in runs if is_comparison(folder)]
    if compared:
        if len(runs) > 1:
            raise RecordError(f"{compared[0]} is a comparison, which has a page of its own; report it alone")
        write_stored(compared[0], out)
    else:
        finished = [run for run in runs if is_finished(run)]
        write_report(labels_of((run.resolve().name, Result.load(run)) for run in finished or runs), out)
        if finished and len(finished) < len(runs):
            left_out = ", ".join(str(run) for run in runs if run not in finished)
            print(printable(f"skipped, not finished: {left_out}"), file=sys.stderr)
    print(printable(f"wrote {out}"))
