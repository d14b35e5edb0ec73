"""Pieces of an experiment, side by side, each finished one kept in a file of its own.

So an experiment that was stopped goes on where it was, and its pieces run on any joblib back end:
``with joblib.parallel_config("dask"): ...`` takes them to a cluster.
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
    """Run every piece that is not there yet, and write what it returns to its file.

    Args:
        wanted: The pieces, by their files.
        run: What makes a piece's content, ready for JSON; it runs in another process.
        there: The files that need not be made again.
        jobs: How many processes; by default one per core.
        progress: Show progress, as a bar on a terminal and in lines elsewhere; by default only on a terminal.
        what: What is being done, in a word.
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
