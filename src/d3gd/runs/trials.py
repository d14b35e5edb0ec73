"""Many runs, in parallel: the one place for comparisons, reproductions, studies and sweeps.

They run on any joblib back end. On one machine that is a process per core; with ``"dask"``, the workers of a cluster.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

from d3gd.errors import D3GDError, RecordError, SettingsError
from d3gd.runs import sealed
from d3gd.runs.progress import progress_bar
from d3gd.validation import count, one_line, shown

K = TypeVar("K")
T = TypeVar("T")
R = TypeVar("R")


def run_all(
    wanted: Mapping[K, T],
    run: Callable[[T], R],
    *,
    jobs: int | None = None,
    backend: str | None = None,
    progress: bool | None = None,
    what: str = "Runs",
    done: int = 0,
    name: Callable[[K], str] = str,
) -> Iterator[tuple[K, R]]:
    """Run all, in parallel, and yield each with its key as soon as it is finished.

    Args:
        wanted: What to run, by any key.
        run: Runs one, in another process.
        jobs: Number of processes; by default one per core, or all workers of a cluster.
        backend: A back end of joblib, see :func:`on`.
        progress: Show progress, as a bar on a terminal and in lines elsewhere; by default only on a terminal.
        what: The name of the computation.
        done: Number of runs that need not be repeated; progress counts them too.
        name: The name of a key that progress shows.
    """
    from joblib import Parallel, delayed

    total = done + len(wanted)
    with on(backend, jobs) as processes, progress_bar(progress, total, what) as show:
        show(done, "")
        tasks = [delayed(_with_key)(run, key, task) for key, task in wanted.items()]
        results = Parallel(n_jobs=processes, return_as="generator_unordered")(tasks) if tasks else ()
        for finished, (key, result) in enumerate(results, start=done + 1):
            yield key, result
            show(finished, name(key))


def run_missing(
    wanted: Mapping[Path, T],
    run: Callable[[T], dict[str, Any]],
    *,
    there: Mapping[Path, dict[str, Any]],
    jobs: int | None = None,
    backend: str | None = None,
    progress: bool | None = None,
    what: str = "Trials",
) -> dict[Path, dict[str, Any]]:
    """Run every missing trial, write its result to its file, and return the results of all trials.

    So an interrupted computation continues where it stopped.

    Args:
        wanted: The trials, by their files.
        run: Returns the result of a trial, ready for JSON; it runs in another process.
        there: The stored results that need not be computed again.
        jobs: Number of processes; by default one per core.
        backend: A back end of joblib, see :func:`on`.
        progress: Show progress, as a bar on a terminal and in lines elsewhere; by default only on a terminal.
        what: The name of the computation.
    """
    found = dict(there)
    missing = {path: piece for path, piece in wanted.items() if path not in found}
    for path, content in run_all(
        missing,
        run,
        jobs=jobs,
        backend=backend,
        progress=progress,
        what=what,
        done=len(wanted) - len(missing),
        name=lambda path: f"{path.parent.name}/{path.stem}",
    ):
        sealed.write(path, content, {})
        found[path] = content
    return {path: found[path] for path in wanted}


def stored(path: Path) -> dict[str, Any] | None:
    """Return the stored result of a trial, or None if it must be run: there is none, or it is damaged."""
    try:
        return sealed.read(path)[0]
    except sealed.OtherFormatError:
        raise
    except RecordError:
        return None


def in_one_line(error: Exception) -> str:
    """Return an error of one of many runs, whose code may be a user's, in one line."""
    return one_line(str(error) if isinstance(error, D3GDError) else f"{type(error).__name__}: {error}")


@contextmanager
def on(backend: str | None, jobs: int | None) -> Iterator[int]:
    """Choose where runs take place, and yield the number of processes in joblib's terms: -1 is all there are.

    Args:
        backend: A back end of joblib: None for processes of this machine, or what the caller has set with
            ``joblib.parallel_config``. ``"dask"`` is the cluster of the current ``distributed.Client``; without one,
            that at the address in ``DASK_SCHEDULER_ADDRESS``, or else ``jobs`` processes of this machine.
        jobs: Number of processes; by default all.
    """
    jobs = None if jobs is None else count("jobs", jobs, least=1)
    if backend is None:
        yield jobs or -1
        return
    from joblib import parallel_config

    with _client(jobs) if backend == "dask" else nullcontext():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", UserWarning)  # joblib would take another back end
                chosen = parallel_config(backend)
        except (ValueError, TypeError, ImportError, UserWarning) as error:
            raise SettingsError(
                f"backend = {shown(backend)} is not available ({one_line(str(error))}); choose loky, threading, "
                "sequential or dask"
            ) from None
        with chosen:
            yield jobs or -1


@contextmanager
def _client(jobs: int | None) -> Iterator[None]:
    """Connect to the cluster of the surroundings, if there is no connection yet."""
    try:
        import distributed
    except ImportError as error:
        raise D3GDError("backend dask needs distributed; install it with: pip install 'd3gd[cluster]'") from error
    from dask import config
    from joblib import cpu_count

    try:
        distributed.get_client()
    except ValueError:
        address = config.get("scheduler-address", None)
        here = {"n_workers": jobs or cpu_count(), "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
        try:
            client = distributed.Client(**({"address": address} if address else here))
        except OSError as error:
            raise D3GDError(
                f"no dask scheduler answers at {shown(address)} ({one_line(str(error))}); start it with: dask scheduler"
            ) from error
        with client:
            yield
    else:
        yield


def _with_key(run: Callable[[T], R], key: K, task: T) -> tuple[K, R]:
    return key, run(task)
