"""Parallel trials of an experiment, each stored in a file when it is finished.

So an interrupted experiment continues where it stopped, and its trials run on any joblib back end:
``with joblib.parallel_config("dask"): ...`` runs them on a cluster.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from d3gd.runs import files
from d3gd.runs.progress import progress_bar

T = TypeVar("T")


def run_missing(
    wanted: Mapping[Path, T],
    run: Callable[[T], dict[str, Any]],
    *,
    there: Iterable[Path],
    jobs: int | None = None,
    progress: bool | None = None,
    what: str = "Trials",
) -> None:
    """Run every missing trial, and write its result to its file.

    Args:
        wanted: The trials, by their files.
        run: Returns the result of a trial, ready for JSON; it runs in another process.
        there: The files that need not be computed again.
        jobs: Number of processes; by default one per core.
        progress: Show progress, as a bar on a terminal and in lines elsewhere; by default only on a terminal.
        what: The name of the computation.
    """
    from joblib import Parallel, delayed

    kept = set(there)
    missing = {path: piece for path, piece in wanted.items() if path not in kept}
    done = len(wanted) - len(missing)
    with progress_bar(progress, len(wanted), what) as show:
        show(done, "")
        if not missing:
            return
        results = Parallel(n_jobs=jobs or -1, return_as="generator_unordered")(
            delayed(_made)(path, piece, run) for path, piece in missing.items()
        )
        for path, content in results:
            files.write_json(path, content)
            done += 1
            show(done, f"{path.parent.name}/{path.stem}")


def _made(path: Path, piece: T, run: Callable[[T], dict[str, Any]]) -> tuple[Path, dict[str, Any]]:
    return path, run(piece)
