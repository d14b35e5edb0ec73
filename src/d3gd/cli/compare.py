# ruff: noqa: D301 - the \b that keeps typer from joining lines must be the character itself
"""Fair comparisons of methods."""

from pathlib import Path
from typing import Annotated

import typer

from d3gd.cli.base import StoppedError, app
from d3gd.errors import SettingsError


@app.command()
def compare(
    experiment: Annotated[
        Path | None, typer.Argument(metavar="[FILE.toml]", help="Network and problem; see d3gd init.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="3 seeds, fewer steps, at most 300 iterations: a minute or two.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for runs, tables and curves.")] = Path("comparison"),
    iterations: Annotated[int | None, typer.Option(help="The budget of every run; overrides the file.")] = None,
    budget_bytes: Annotated[int | None, typer.Option(help="The budget in bytes over all links.")] = None,
    budget_gradients: Annotated[int | None, typer.Option(help="The budget in gradients per agent.")] = None,
    seeds: Annotated[
        int | None, typer.Option(help="Number of random draws for the medians. [default: 5, quick 3]")
    ] = None,
    methods: Annotated[
        str | None, typer.Option("--methods", "--only", help="Only these: names, separated by commas.")
    ] = None,
    metric: Annotated[
        str | None, typer.Option(help="Ranking metric: loss, disagreement, error, ... [default: stationarity]")
    ] = None,
    target: Annotated[float | None, typer.Option(help="The level of the metric whose cost is reported.")] = None,
    steps: Annotated[str | None, typer.Option(help="Step sizes to choose from, separated by commas.")] = None,
    jobs: Annotated[int | None, typer.Option(help="Processes; by default one per core.")] = None,
    backend: Annotated[str | None, typer.Option(help="Where runs take place: dask, see d3gd sweep --help.")] = None,
) -> None:
    """Compare methods on your network and problem.

    Tunes each method's step size on one grid, runs all of them on the same random draws, and prints them best first:
    their final metric, its cost, and what their agents had to know. Methods that cannot run on the network, diverge
    or fail are listed too. Without a file: 20 agents on a directed graph, with label skew.

    Writes the table (compare.md, .csv, .json), the curves against iterations, bytes and processor time (curves.png,
    .pdf), and every run. Finished runs are kept: the same command continues after an interruption, and more seeds,
    methods or steps only add to it.

    \b
    Examples:
      d3gd compare --quick
      d3gd compare experiment.toml --out mine
      d3gd compare experiment.toml --methods "DiDGD,PushPull,PerronD3GD rule=planned"
      d3gd compare --budget-bytes 20000000 --metric error

    \b
    A method of your own, in Python:
      d3gd.compare("experiment.toml", methods={"mine": lambda gamma: Mine(step_size=gamma)})
    """
    from d3gd.comparison.compare import compare as run_comparison

    try:
        comparison = run_comparison(
            experiment,
            only=None if methods is None else methods.split(","),
            iterations=iterations,
            budget_bytes=budget_bytes,
            budget_gradients=budget_gradients,
            metric=metric,
            target=target,
            seeds=seeds,
            steps=None if steps is None else _numbers("--steps", steps),
            quick=quick,
            out=out,
            jobs=jobs,
            backend=backend,
            progress=True,
        )
    except KeyboardInterrupt:
        raise StoppedError(f"interrupted; {out} keeps the finished runs; the same command continues") from None
    comparison.show()
    for name in ("compare.md", "compare.csv", "compare.json", "curves.png", "curves.pdf"):
        print(f"wrote {out / name}")


def _numbers(option: str, text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",") if part.strip()]
    except ValueError as error:
        raise SettingsError(f"{option} {text}: {error}; give numbers separated by commas, as in 0.01,0.1,1") from None
