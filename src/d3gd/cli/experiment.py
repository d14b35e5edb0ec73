# ruff: noqa: D301 - the \b that keeps typer from joining lines must be the character itself
"""A user's experiment: write it, run it and plot it."""

import os
import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from d3gd.cli.base import DIVERGED, INTERRUPTED, TERMINATED, USAGE, StoppedError, app
from d3gd.errors import D3GDError, RecordError, printable

_EXAMPLE = Path(__file__).parents[1] / "config" / "example.toml"


class Axis(StrEnum):
    """The horizontal axis of curves."""

    iterations = "iterations"
    bytes = "bytes"
    time = "time"


class Launcher(StrEnum):
    """The transport between the processes of a run."""

    auto = "auto"
    alone = "alone"
    mpi = "mpi"
    torch = "torch"


@app.command()
def init(path: Annotated[Path, typer.Argument(help="The file to write.")] = Path("experiment.toml")) -> None:
    """Write an example experiment to start from.

    \b
    Example:
      d3gd init ring.toml
    """
    from d3gd.runs import files

    if os.path.lexists(path):  # unlike pathlib's, it takes a name of any length
        raise RecordError(f"{path} already exists; choose another name, or move it")
    files.make_folder(path.parent)
    files.write_atomically(path, _EXAMPLE.read_bytes())
    print(f"wrote {path}\nnext:  d3gd run {path}")


@app.command()
def run(
    experiment: Annotated[Path, typer.Argument(metavar="FILE.toml", help="The experiment; see d3gd init.")],
    out: Annotated[Path | None, typer.Option(help="The run's folder; by default runs/NAME-SEED.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the folder's newest checkpoint.")] = False,
    iterations: Annotated[int | None, typer.Option(help="Overrides the file.")] = None,
    seed: Annotated[int | None, typer.Option(help="Overrides the file.")] = None,
    progress: Annotated[bool | None, typer.Option(help="By default only on a terminal.")] = None,
    transport: Annotated[Launcher, typer.Option(help="By default that of mpiexec or torchrun.")] = Launcher.auto,
    timeout: Annotated[float, typer.Option(help="Seconds that a process waits for another.")] = 60.0,
    report: Annotated[
        bool, typer.Option("--report", help="Record the weights over time, and write report.html into the folder.")
    ] = False,
) -> None:
    """Run an experiment into a folder.

    The folder gets the metrics (metrics.csv), the final models and weights, checkpoints, and a copy of the
    experiment with everything needed to repeat it. Exit code 3 means that the run diverged.

    \b
    Examples:
      d3gd run experiment.toml
      d3gd run experiment.toml --seed 1 --out runs/another
      d3gd run experiment.toml --report                     with a page that plays the run back
      d3gd run experiment.toml --resume                     after Ctrl-C or a crash
      d3gd run runs/experiment-0/experiment.toml --out runs/again
      mpiexec -n 4 d3gd run experiment.toml                 agents divided among processes
      torchrun --nproc-per-node 4 -m d3gd run experiment.toml
    """
    from d3gd.cli import screens
    from d3gd.config.experiment import load
    from d3gd.distributed.interrupts import TerminatedError
    from d3gd.runs import folder as layout
    from d3gd.transports.launch import connect, is_first

    try:
        ranks = connect(transport.value, timeout=timeout, more_time="--timeout")
        ranks.resumes = "--resume continues from the last checkpoint"
    except D3GDError:
        if is_first():
            raise
        raise typer.Exit(USAGE) from None  # another process has reported it
    folder = Path()
    try:
        with ranks:
            with ranks.together():
                plan = load(experiment, iterations=iterations, seed=seed, record_weights=report or None)
                folder = out or Path("runs") / f"{experiment.stem}-{plan.seed}"
                if ranks.rank == 0 and not (resume and layout.is_started(folder)):
                    layout.require_free(folder)
                    if resume:
                        print(f"nothing to resume in {folder}: starting from the beginning", file=sys.stderr)
            result = plan.run(folder, resume=resume, progress=progress, transport=ranks)
    except (KeyboardInterrupt, TerminatedError) as stop:
        code = INTERRUPTED if isinstance(stop, KeyboardInterrupt) else TERMINATED
        if ranks.rank > 0:
            raise SystemExit(code) from None  # another process reports it
        raise StoppedError(_stopped(folder, experiment), code) from None
    if ranks.rank == 0:
        screens.show_result(result, folder, experiment)
        if report:
            result.report(layout.report_in(folder))
            print(printable(f"wrote {layout.report_in(folder)}"))
    raise typer.Exit(DIVERGED if result.status == "diverged" else 0)


def _stopped(folder: Path, experiment: Path) -> str:
    """Return the message of a stopped run, with the command that continues it."""
    from d3gd.runs import folder as layout

    source = layout.experiment_in(folder) or experiment
    again = shlex.join(["d3gd", "run", str(source), "--out", str(folder), "--resume"])
    if layout.resumable_from(folder) is None:
        return f"interrupted before the first checkpoint; start again with: {again}"
    return f"interrupted; {folder} holds a valid checkpoint; continue with: {again}"


@app.command()
def plot(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Folders of runs; unfinished ones are skipped.")],
    metric: Annotated[
        list[str] | None, typer.Option(help="Metric to plot; may be repeated. [default: stationarity, disagreement]")
    ] = None,
    x: Annotated[Axis, typer.Option("--x", help="The horizontal axis.")] = Axis.iterations,
    out: Annotated[Path, typer.Option(help="The figure: .png, .pdf or .svg.")] = Path("plot.png"),
    movie: Annotated[
        Path | None, typer.Option(help="Write an animation of the networks (.gif) instead, of runs with their weights.")
    ] = None,
) -> None:
    """Plot the curves of runs in one figure.

    The legend names the settings that differ between them. Runs that differ in their seed only are plotted as one: the
    median, with a band between the quartiles.

    \b
    Examples:
      d3gd plot runs/experiment-0
      d3gd plot runs/* --metric loss --metric n_min_pi --out losses.pdf
      d3gd plot runs/didgd runs/d3gd --x bytes              or --x time
      d3gd plot runs/experiment-0 --movie run.gif           for slides; the run needs record_weights = true
    """
    from d3gd.plots import grouped, labels_of, plot_runs
    from d3gd.plots import movie as write_movie
    from d3gd.result import Result
    from d3gd.runs.outcome import is_finished

    finished = [run for run in runs if is_finished(run)]
    results = [(run.resolve().name, Result.load(run)) for run in finished or runs]
    if movie is None:
        plot_runs(grouped(results), out, metrics=metric or (), x=x.value)
    else:
        write_movie(labels_of(results), movie, metric=metric[0] if metric else None)
    if finished and len(finished) < len(runs):
        left_out = ", ".join(str(run) for run in runs if run not in finished)
        print(printable(f"skipped, not finished: {left_out}"), file=sys.stderr)
    print(printable(f"wrote {movie or out}"))
