"""Parallel trials of an experiment, each stored in a sealed record when it is finished.

So an interrupted experiment continues where it stopped, and its trials run on any joblib back end:
``with joblib.parallel_config("dask"): ...`` runs them on a cluster.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from d3gd.errors import RecordError
from d3gd.runs import sealed
from d3gd.runs.progress import progress_bar

T = TypeVar("T")


def run_missing(
    wanted: Mapping[Path, T],
    run: Callable[[T], dict[str, Any]],
    *,
    there: Mapping[Path, dict[str, Any]],
    jobs: int | None = None,
    progress: bool | None = None,
    what: str = "Trials",
) -> dict[Path, dict[str, Any]]:
    """Run every missing trial, write its result to its file, and return the results of all trials.

    Args:
        wanted: The trials, by their files.
        run: Returns the result of a trial, ready for JSON; it runs in another process.
        there: The stored results that need not be computed again.
        jobs: Number of processes; by default one per core.
        progress: Show progress, as a bar on a terminal and in lines elsewhere; by default only on a terminal.
        what: The name of the computation.
    """
    from joblib import Parallel, delayed

    found = dict(there)
    missing = {path: piece for path, piece in wanted.items() if path not in found}
    done = len(wanted) - len(missing)
    with progress_bar(progress, len(wanted), what) as show:
        show(done, "")
        tasks = [delayed(_made)(path, piece, run) for path, piece in missing.items()]
        results = Parallel(n_jobs=jobs or -1, return_as="generator_unordered")(tasks) if tasks else ()
        for path, content in results:
            sealed.write(path, content, {})
            found[path] = content
            done += 1
            show(done, f"{path.parent.name}/{path.stem}")
    return {path: found[path] for path in wanted}


def stored(path: Path) -> dict[str, Any] | None:
    """Return the stored result of a trial, or None if it must be run: there is none, or it is damaged."""
    try:
        return sealed.read(path)[0]
    except sealed.OtherFormatError:
        raise
    except RecordError:
        return None


def _made(path: Path, piece: T, run: Callable[[T], dict[str, Any]]) -> tuple[Path, dict[str, Any]]:
    return path, run(piece)
