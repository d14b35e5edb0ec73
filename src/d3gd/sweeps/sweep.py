"""One call for a whole sweep."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from d3gd.config.experiment import load
from d3gd.errors import SettingsError
from d3gd.runs import outcome
from d3gd.runs.outputs import claim
from d3gd.runs.trials import in_one_line, run_all
from d3gd.sweeps.points import Point, Task, points, swept, task_of
from d3gd.sweeps.result import Row, Sweep
from d3gd.validation import as_path, count, flag, listed, shown

_KIND = "sweep"


def sweep(
    experiment: str | Path | Callable[..., Mapping[str, Any]],
    settings: Mapping[str, Sequence[Any]] | None = None,
    *,
    out: str | Path,
    seeds: int | Sequence[int] = 1,
    iterations: int | None = None,
    metric: str | None = None,
    jobs: int | None = None,
    backend: str | None = None,
    progress: bool | None = None,
) -> Sweep:
    """Run an experiment with every combination of some settings' values, and with several seeds.

    Every run has a folder of its own in ``out``. Finished runs are not repeated and interrupted ones are continued: the
    same call goes on after an interruption, and more values, seeds or iterations only add to it. A run that fails is
    listed, and the others go on.

    Args:
        experiment: A settings file; or a function of the settings and ``seed`` that returns the arguments of
            :func:`d3gd.run`, such as ``{"algorithm": ..., "graph": ..., "problem": ..., "iterations": 100}``.
        settings: The values of each setting, by its name in the file: ``{"algorithm.step_size": [0.01, 0.1]}``; for a
            function, by the name of its argument.
        out: The folder of the sweep: its runs, the table ``sweep.csv`` (and ``sweep.parquet``, where pandas and pyarrow
            are installed), and the figure ``sweep.png`` and ``sweep.pdf``.
        seeds: Number of seeds from the experiment's own on, or the seeds.
        iterations: The number of iterations, instead of the file's.
        metric: The metric by which combinations are ranked and drawn; stationarity by default.
        jobs: Number of parallel runs; by default one per core.
        backend: A back end of joblib, such as ``"dask"`` for a cluster whose machines share ``out``; by default
            processes of this machine.
        progress: Show progress, as a bar on a terminal and in lines elsewhere; by default only on a terminal.

    Example:
        >>> import d3gd, tempfile
        >>> def experiment(step_size, n, seed):
        ...     problem = d3gd.problems.quadratic(agents=n, dim=3, seed=seed)
        ...     method = d3gd.DiDGD(step_size=step_size)
        ...     return {"algorithm": method, "graph": d3gd.graphs.ring(n), "problem": problem, "iterations": 50}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     found = d3gd.sweep(experiment, {"step_size": [0.01, 0.1], "n": [3, 5]}, out=folder, seeds=2, jobs=1)
        >>> len(found.rows), found.best.values
        (8, {'step_size': 0.1, 'n': 3})
    """
    flag("progress", False if progress is None else progress)
    folder, values = as_path("out", out), swept(settings or {})
    if isinstance(experiment, str | Path):
        source: Path | Callable[..., Any] = Path(experiment)
        first = load(experiment, changes={name: several[0] for name, several in values.items()}).seed
        title = Path(experiment).stem
    elif callable(experiment):
        source, first, title = experiment, 0, getattr(experiment, "__name__", "experiment")
        if iterations is not None:
            raise SettingsError("a function returns its own iterations; leave iterations= out")
    else:
        raise SettingsError(f"experiment = {shown(experiment)}: give a settings file, or a function")
    if not isinstance(metric, str | None):
        raise SettingsError(f"metric = {shown(metric)}: give a name, such as 'loss'")
    drawn = _seeds(seeds, first)
    wanted = {point.place: point for point in points(values, drawn)}
    tasks = {place: task_of(source, point, iterations) for place, point in wanted.items()}  # checks all settings
    claim(folder, _KIND, {"sweep": title})
    whole = folder.resolve()  # other processes may have another working directory
    missing = {place: (task, whole / place) for place, task in tasks.items() if not _is_done(task, folder / place)}
    finished = run_all(
        missing,
        _attempt,
        jobs=jobs,
        backend=backend,
        progress=progress,
        what="Sweep",
        done=len(tasks) - len(missing),
        name=lambda place: wanted[place].name,
    )
    failures = {place: failure for place, failure in finished if failure}
    rows = tuple(_row(point, folder, failures.get(place, "")) for place, point in wanted.items())
    found = Sweep(title, values, drawn, metric, rows, folder)
    found.save()
    return found


def _seeds(seeds: Any, first: int) -> tuple[int, ...]:
    if isinstance(seeds, int) and not isinstance(seeds, bool):
        return tuple(range(first, first + count("seeds", seeds, least=1)))
    found = tuple(dict.fromkeys(count("a seed", seed, least=0) for seed in listed("seeds", seeds, "whole numbers")))
    if not found:
        raise SettingsError("seeds holds no seed; give at least one, or their number")
    return found


def _is_done(task: Task, folder: Path) -> bool:
    return task.is_in(folder) and outcome.facts_of(folder) is not None


def _attempt(task: tuple[Task, Path]) -> str:
    """Run one, and return its error, which must not end the sweep, or an empty text."""
    run, folder = task
    try:
        status = run.run(folder).status
    except Exception as error:  # of a user's settings or code
        return in_one_line(error) or type(error).__name__
    if status == "interrupted":  # by Ctrl-C, which ends the whole sweep
        raise KeyboardInterrupt
    return ""


def _row(point: Point, folder: Path, failure: str) -> Row:
    facts = outcome.facts_of(folder / point.place)
    if facts is None and not failure:
        failure = "its folder is not here; all machines must share the folder of the sweep (--out)"
    if failure or facts is None:
        return Row(point.values, point.seed, "failed", failure, point.place)
    final = {name: float(value) for name, value in facts["final"].items() if not isinstance(value, list)}
    words = {name: facts[name] for name in ("status", "message", "iterations", "seconds")}
    return Row(point.values, point.seed, place=point.place, final=final, **words)
