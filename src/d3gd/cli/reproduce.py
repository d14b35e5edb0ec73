# ruff: noqa: D301 - the \b that keeps typer from joining lines must be the character itself
"""The paper's figures and claims."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from d3gd.cli.base import app


class Figure(StrEnum):
    """The parts of the paper to reproduce."""

    fig1 = "fig1"
    fig2 = "fig2"
    all = "all"


@app.command()
def reproduce(
    which: Annotated[Figure, typer.Argument(help="Which figure.")] = Figure.all,
    seeds: Annotated[int, typer.Option(help="Number of random draws for the medians.")] = 10,
    out: Annotated[Path, typer.Option(help="Folder for figures, curves and claims.")] = Path("results"),
    jobs: Annotated[int | None, typer.Option(help="Processes; by default one per core.")] = None,
) -> None:
    """Reproduce the paper's figures and claims.

    Writes both figures, the raw curves, and a table of every claim with the result found here.

    \b
    Examples:
      d3gd reproduce
      d3gd reproduce fig1 --seeds 3 --out quick
    """
    from d3gd.reproduce.report import reproduce as reproduce_paper

    reproduce_paper(which.value, seeds=seeds, out=out, jobs=jobs, progress=True)
