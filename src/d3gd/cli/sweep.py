# ruff: noqa: D301 - the \b that keeps typer from joining lines must be the character itself
"""Many runs of one experiment."""

from pathlib import Path
from typing import Annotated

import typer

from d3gd.cli.base import FAILED, StoppedError, app
from d3gd.errors import SettingsError, printable


@app.command()
def sweep(
    experiment: Annotated[Path, typer.Argument(metavar="FILE.toml", help="The experiment; see d3gd init.")],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE,...", help="Values of a setting, as in the file; may be repeated."),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Number of seeds, from that of the file on.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder for all runs, the table and the figure.")] = Path("sweep"),
    iterations: Annotated[int | None, typer.Option(help="Overrides the file.")] = None,
    metric: Annotated[
        str | None, typer.Option(help="The metric that ranks: loss, disagreement, ... [default: stationarity]")
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Parallel runs; by default one per core.")] = None,
    backend: Annotated[
        str | None, typer.Option(help="Where runs take place, a back end of joblib: loky (processes), dask, ...")
    ] = None,
) -> None:
    """Run an experiment with every combination of some settings, and with several seeds.

    Every --set names a setting of the file, such as iterations, graph.n or algorithm.step_size, and its values in the
    notation of the file; texts need no quotes. Each combination runs with each seed, in a folder of its own that
    d3gd plot and d3gd report read. A run that fails is listed and the others go on; then the exit code is 1.

    The same command continues after an interruption. More values, seeds or iterations only add to what is there.

    Writes sweep.csv, one row per run with its settings, status and last metrics (also sweep.parquet, where pandas and
    pyarrow are installed), and sweep.png and .pdf: a heat map over two settings, curves over one.

    \b
    Examples:
      d3gd sweep experiment.toml --set algorithm.step_size=0.01,0.03,0.1 --seeds 5
      d3gd sweep experiment.toml --set algorithm.step_size=0.01,0.1 --set graph.n=20,50 --jobs 2 --out steps
      d3gd sweep experiment.toml --set algorithm.rule=global,decentralized --metric loss
      d3gd sweep experiment.toml --set 'algorithm.step_size=0.1,{start = 0.5, power = 0.5, over = 100}'
      d3gd report steps                                     its page, with a table that sorts

    \b
    On a cluster, whose machines share the folder:
      pip install 'd3gd[cluster]'                           on all of them
      dask scheduler                                        on one; on the others:
      dask worker tcp://HOST:8786 --nworkers 4 --nthreads 1
      DASK_SCHEDULER_ADDRESS=tcp://HOST:8786 d3gd sweep experiment.toml --set ... --backend dask
    """
    from d3gd.sweeps.points import parsed
    from d3gd.sweeps.result import FIGURE, TABLE
    from d3gd.sweeps.sweep import sweep as run_sweep

    values: dict[str, list[object]] = {}
    for text in settings or []:
        name, several = parsed(text)
        if name in values:
            raise SettingsError(f"--set {name} is given twice; give all its values at once, separated by commas")
        values[name] = several
    how = {"iterations": iterations, "metric": metric, "jobs": jobs, "backend": backend}
    try:
        found = run_sweep(experiment, values, out=out, seeds=seeds, progress=True, **how)  # type: ignore[arg-type]
    except KeyboardInterrupt:
        raise StoppedError(f"interrupted; {out} keeps the runs; the same command continues") from None
    found.show()
    for name in (TABLE, f"{FIGURE}.parquet", f"{FIGURE}.png", f"{FIGURE}.pdf"):
        if (out / name).exists():
            print(printable(f"wrote {out / name}"))
    if found.failures:
        print(f"{len(found.failures)} of {len(found.rows)} runs failed")
        raise typer.Exit(FAILED)
