# ruff: noqa: D301 - the \b that keeps typer from joining lines must be the character itself
"""The command line. Each command imports what it needs itself, so that help does not wait for NumPy."""

import os
import shlex
import sys
import traceback
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from d3gd import __version__
from d3gd.errors import D3GDError, RecordError, SettingsError

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
_EXAMPLE = Path(__file__).with_name("example.toml")
_DIVERGED, _USAGE, _FAILED, _INTERRUPTED, _PIPE = 3, 2, 1, 130, 141


class Axis(StrEnum):
    """What curves are drawn against."""

    iterations = "iterations"
    bytes = "bytes"


class Figure(StrEnum):
    """What of the paper to reproduce."""

    fig1 = "fig1"
    fig2 = "fig2"
    all = "all"


class Launcher(StrEnum):
    """What connects the processes of a run."""

    auto = "auto"
    alone = "alone"
    mpi = "mpi"
    torch = "torch"


class _StoppedError(Exception):
    """Ctrl-C, with what to say about it."""


def _version(wanted: bool) -> None:
    if wanted:
        print(f"d3gd {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error came from.")] = False,
) -> None:
    """Decentralized learning on directed graphs that learns whom each agent should listen to.

    \b
    Start here:
      d3gd reproduce             the paper's figures and claims, in about two minutes
      d3gd init                  write an experiment to play with,
      d3gd run experiment.toml   run it,
      d3gd plot runs/*           and draw it
      d3gd compare --quick       which method serves a network and a problem best
    """


@app.command()
def init(path: Annotated[Path, typer.Argument(help="The file to write.")] = Path("experiment.toml")) -> None:
    """Write an example experiment to start from.

    \b
    Example:
      d3gd init ring.toml
    """
    from d3gd import records

    if path.exists():
        raise RecordError(f"{path} exists already; choose another name, or move it away")
    records.make_folder(path.parent)
    records.write_atomically(path, _EXAMPLE.read_bytes())
    print(f"wrote {path}\nnext:  d3gd run {path}")


@app.command()
def run(
    experiment: Annotated[Path, typer.Argument(metavar="FILE.toml", help="What to run; see d3gd init.")],
    out: Annotated[Path | None, typer.Option(help="The run's folder; by default runs/NAME-SEED.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the folder's newest checkpoint.")] = False,
    iterations: Annotated[int | None, typer.Option(help="Instead of the file's.")] = None,
    seed: Annotated[int | None, typer.Option(help="Instead of the file's.")] = None,
    progress: Annotated[bool | None, typer.Option(help="By default only on a terminal.")] = None,
    transport: Annotated[Launcher, typer.Option(help="By default that of mpiexec or torchrun.")] = Launcher.auto,
    timeout: Annotated[float, typer.Option(help="Seconds that a process waits for another.")] = 60.0,
) -> None:
    """Run an experiment into a folder.

    The folder gets the metrics (metrics.csv), the final models and weights, checkpoints, and a copy of the
    experiment with all that is needed to repeat it. Exit code 3 means that the run diverged.

    \b
    Examples:
      d3gd run experiment.toml
      d3gd run experiment.toml --seed 1 --out runs/another
      d3gd run experiment.toml --resume                     after Ctrl-C or a crash
      d3gd run runs/experiment-0/experiment.toml --out runs/again
      mpiexec -n 4 d3gd run experiment.toml                 agents divided among processes
      torchrun --nproc-per-node 4 -m d3gd run experiment.toml
    """
    from d3gd import screens
    from d3gd.settings import load
    from d3gd.transports.launch import connect, is_first

    try:
        ranks = connect(transport.value, timeout=timeout)
    except D3GDError:
        if is_first():
            raise
        raise typer.Exit(_USAGE) from None  # one process has said it
    folder = Path()
    try:
        with ranks:
            with ranks.together():
                plan = load(experiment, iterations=iterations, seed=seed)
                folder = out or Path("runs") / f"{experiment.stem}-{plan.seed}"
                if ranks.rank == 0 and (folder / "settings.json").exists() and not resume:
                    raise RecordError(_already(folder))
                if ranks.rank == 0 and resume and not (folder / "settings.json").exists():
                    print(f"nothing to resume in {folder}: starting from the beginning", file=sys.stderr)
            result = plan.run(folder, resume=resume, progress=progress, transport=ranks)
    except KeyboardInterrupt:
        if ranks.rank > 0:
            raise SystemExit(_INTERRUPTED) from None  # one process says it
        copy = folder / "experiment.toml"
        source = copy if copy.exists() else experiment
        again = shlex.join(["d3gd", "run", str(source), "--out", str(folder), "--resume"])
        saved = any(folder.glob("checkpoints/*/manifest.json"))
        if not saved:
            raise _StoppedError(f"interrupted before the first checkpoint; start again with: {again}") from None
        raise _StoppedError(f"interrupted; the checkpoint in {folder} is good; go on with: {again}") from None
    if ranks.rank == 0:
        screens.show_result(result, folder, experiment)
    raise typer.Exit(_DIVERGED if result.status == "diverged" else 0)


def _already(folder: Path) -> str:
    """Say that a folder is taken, and from where its run can go on."""
    saved = sorted(path.parent.name for path in folder.glob("checkpoints/*/manifest.json"))
    where = f" from iteration {int(saved[-1])}" if saved and not (folder / "result.json").exists() else ""
    return f"{folder} already holds a run; go on with it{where} (--resume) or choose another folder (--out)"


@app.command()
def plot(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Folders of runs; unfinished ones are left out.")],
    metric: Annotated[
        list[str] | None, typer.Option(help="What to draw; may be repeated. [default: stationarity, disagreement]")
    ] = None,
    x: Annotated[Axis, typer.Option("--x", help="What to draw against.")] = Axis.iterations,
    out: Annotated[Path, typer.Option(help="The figure: .png, .pdf or .svg.")] = Path("plot.png"),
) -> None:
    """Draw the curves of runs into one figure.

    The legend names what differs between them.

    \b
    Examples:
      d3gd plot runs/experiment-0
      d3gd plot runs/* --metric loss --metric n_min_pi --out losses.pdf
      d3gd plot runs/didgd runs/d3gd --x bytes
    """
    from d3gd.plots import labels_of, plot_runs
    from d3gd.result import Result

    finished = [run for run in runs if (run / "result.json").exists()]
    if finished and len(finished) < len(runs):
        left_out = ", ".join(str(run) for run in runs if run not in finished)
        print(f"left out, not finished: {left_out}", file=sys.stderr)
    results = labels_of((run.resolve().name, Result.load(run)) for run in finished or runs)
    plot_runs(results, out, metrics=metric or (), x=x.value)
    print(f"wrote {out}")


@app.command(context_settings={"ignore_unknown_options": True})
def graph(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="KIND|FILE.toml", help="A kind with its --key value pairs, or an experiment."),
    ] = None,
    edges: Annotated[Path | None, typer.Option(help="A CSV file with the columns source,target.")] = None,
    weights: Annotated[
        str | None, typer.Option(help="metropolis, uniform, lazy or fastest_mixing. [default: metropolis]")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON for other programs.")] = False,
) -> None:
    """Describe a network and how well it mixes.

    Prints its links and degrees, whether and how fast messages reach everyone, and how evenly agents are heard.
    Without arguments, list the kinds of networks and their keys.

    \b
    Examples:
      d3gd graph
      d3gd graph erdos_renyi --n 20 --p 0.6 --seed 0
      d3gd graph grid --rows 4 --columns 5 --torus
      d3gd graph ring --n 50 --weights lazy --json
      d3gd graph --edges links.csv
      d3gd graph experiment.toml
    """
    from d3gd import screens
    from d3gd.settings import load, make

    names, keys = _named_and_keyed(words or [])
    if edges is not None:
        names, keys = [*names, "edges"], {**keys, "file": str(edges)}
    if not names and not keys:
        screens.show_kinds()
        return
    if len(names) != 1:
        found = ", ".join(names) or "none"
        raise SettingsError(f"found {found}: give one kind of network, or one file; d3gd graph lists the kinds")
    (name,) = names
    if name.endswith(".toml"):
        if keys:
            raise SettingsError(f"--{next(iter(keys))} does not go with {name}; change the file instead")
        plan = load(name, optional=("algorithm", "iterations"), weights=weights and {"kind": weights})
        (network, matrix), kind = plan.network(), plan.parts["weights"]["kind"]
    else:
        kind = weights or "metropolis"
        network = make("graph", {"kind": name, **keys}, "d3gd graph")
        matrix = make("weights", {"kind": kind}, "d3gd graph", graph=network)
    screens.show_network(network, matrix, kind, as_json=json)


def _named_and_keyed(words: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """Sort words into names and ``--key value`` pairs, whose values are read as in a settings file."""
    from d3gd.settings import value_of

    names: list[str] = []
    keys: dict[str, Any] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--"):
            names.append(word)
            continue
        key, equals, value = word[2:].partition("=")
        if not equals:
            value = rest.pop(0) if rest and not rest[0].startswith("--") else "true"
        keys[key.replace("-", "_")] = value_of(value)
    return names, keys


@app.command()
def reproduce(
    which: Annotated[Figure, typer.Argument(help="Which figure.")] = Figure.all,
    seeds: Annotated[int, typer.Option(help="How many random draws to take medians over.")] = 10,
    out: Annotated[Path, typer.Option(help="Where figures, curves and claims go.")] = Path("results"),
    jobs: Annotated[int | None, typer.Option(help="Processes; by default one per core.")] = None,
) -> None:
    """Reproduce the paper's figures and claims.

    Writes both figures, the raw curves, and a table of every claim beside what was found here.

    \b
    Examples:
      d3gd reproduce
      d3gd reproduce fig1 --seeds 3 --out quick
    """
    from d3gd.experiments.reproduce import reproduce as reproduce_paper

    reproduce_paper(which.value, seeds=seeds, out=out, jobs=jobs)


@app.command()
def study(
    quick: Annotated[bool, typer.Option("--quick", help="Four networks instead of all: minutes.")] = False,
    seeds: Annotated[
        int | None, typer.Option(help="How many random draws to take medians over. [default: 5, quick 2]")
    ] = None,
    out: Annotated[Path, typer.Option(help="Where trials, tables and the picture go.")] = Path("study"),
    jobs: Annotated[int | None, typer.Option(help="Processes; by default one per core.")] = None,
) -> None:
    """Compare PerronD3GD with Di-DGD on many networks.

    Runs every method on every network, data set, batch size, step size and seed; writes a table of all cells
    (cells.csv), a report (study.md, study.json) and a heat map (study.png). Finished trials are kept: the same
    command goes on where it was stopped.

    \b
    Examples:
      d3gd study --quick
      d3gd study --out docs/study
    """
    from d3gd.experiments.study_report import study as run_study

    try:
        run_study(quick=quick, seeds=seeds, out=out, jobs=jobs)
    except KeyboardInterrupt:
        raise _StoppedError(f"interrupted; {out} keeps the finished trials; the same command goes on") from None


@app.command()
def compare(
    experiment: Annotated[
        Path | None, typer.Argument(metavar="[FILE.toml]", help="Network and problem; see d3gd init.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="3 seeds, fewer steps, at most 300 iterations: a minute or two.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Where runs, tables and curves go.")] = Path("comparison"),
    iterations: Annotated[int | None, typer.Option(help="The budget of every run, instead of the file's.")] = None,
    budget_bytes: Annotated[int | None, typer.Option(help="The budget in bytes over all links.")] = None,
    seeds: Annotated[
        int | None, typer.Option(help="How many random draws to take medians over. [default: 5, quick 3]")
    ] = None,
    methods: Annotated[
        str | None, typer.Option("--methods", "--only", help="Only these: names, separated by commas.")
    ] = None,
    metric: Annotated[
        str | None, typer.Option(help="What decides: loss, disagreement, error, ... [default: stationarity]")
    ] = None,
    target: Annotated[float | None, typer.Option(help="The level of the metric whose cost is told.")] = None,
    steps: Annotated[str | None, typer.Option(help="Step sizes to choose from, separated by commas.")] = None,
    jobs: Annotated[int | None, typer.Option(help="Processes; by default one per core.")] = None,
) -> None:
    """Compare methods on your network and problem.

    Tunes each method's step size on one grid, runs all of them on the same random draws, and prints them best first:
    where they end, what that cost, and what their agents had to know. Methods that cannot run on the network, diverge
    or fail are listed too. Without a file: 20 agents on a directed graph, with label skew.

    Writes the table (compare.md, .csv, .json), the curves against iterations, bytes and time (curves.png, .pdf), and
    every run. Finished runs are kept: the same command goes on where it was stopped, and more seeds, methods or steps
    only add to it.

    \b
    Examples:
      d3gd compare --quick
      d3gd compare experiment.toml --out mine
      d3gd compare experiment.toml --methods "DiDGD,PushPull,PerronD3GD rule=local"
      d3gd compare --budget-bytes 20000000 --metric error

    \b
    A method of your own, in Python:
      d3gd.compare("experiment.toml", methods={"mine": lambda gamma: Mine(step_size=gamma)})
    """
    from d3gd.experiments.compare import compare as run_comparison

    try:
        comparison = run_comparison(
            experiment,
            only=None if methods is None else methods.split(","),
            iterations=iterations,
            budget_bytes=budget_bytes,
            metric=metric,
            target=target,
            seeds=seeds,
            steps=None if steps is None else _numbers("--steps", steps),
            quick=quick,
            out=out,
            jobs=jobs,
        )
    except KeyboardInterrupt:
        raise _StoppedError(f"interrupted; {out} keeps the finished runs; the same command goes on") from None
    comparison.show()
    print(f"wrote compare.md, compare.csv, compare.json, curves.png and curves.pdf into {out}")


def _numbers(option: str, text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",") if part.strip()]
    except ValueError as error:
        raise SettingsError(f"{option} {text}: {error}; give numbers separated by commas, as in 0.01,0.1,1") from None


def main() -> None:
    """Run the command that the process was started with."""
    sys.exit(call(sys.argv[1:]))


def call(args: Sequence[str]) -> int:
    """Run a command and return its exit code; what goes wrong takes one line on standard error.

    Args:
        args: What follows ``d3gd``. ``--debug`` may stand anywhere, and then errors keep their traceback.
    """
    debug = "--debug" in args
    try:
        code = app([arg for arg in args if arg != "--debug"], prog_name="d3gd", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        _hush()
        return _PIPE
    except _StoppedError as stop:
        return _say(str(stop), _INTERRUPTED)
    except (D3GDError, typer.TyperException) as error:
        if debug:
            traceback.print_exc()
        return _say(f"error: {error if isinstance(error, D3GDError) else _usage(error, args)}", _USAGE)
    except MemoryError as error:
        return _say(f"error: out of memory ({error}); make the network or the data smaller", _FAILED)
    except Exception as error:
        if debug:
            traceback.print_exc()
        kind = type(error).__name__
        return _say(f"error: {kind}: {error}; this should not happen, --debug shows where it came from", _FAILED)
    if code == _INTERRUPTED:
        return _say("interrupted", _INTERRUPTED)
    return int(code or 0)


def _usage(error: typer.TyperException, args: Sequence[str]) -> str:
    commands = {command.callback.__name__ for command in app.registered_commands if command.callback}
    helping = ["d3gd", *[arg for arg in args if arg in commands][:1], "--help"]
    return f"{error.format_message().rstrip('.?')}; see: {' '.join(helping)}"


def _say(text: str, code: int) -> int:
    print(" ".join(text.splitlines()), file=sys.stderr)
    return code


def _hush() -> None:
    """Leave nothing to write when Python closes a pipe that nobody reads."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
