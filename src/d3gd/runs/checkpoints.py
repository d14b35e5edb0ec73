"""Checkpoints: one folder each, complete once its manifest exists and matches.

::

    000000000200/       the iteration
      state.npz         the algorithm's state
      history.npz       the weights so far, if they are recorded
      manifest.json     other facts and digests; written last
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from d3gd.arrays import Array
from d3gd.errors import RecordError
from d3gd.runs import files, sealed

_STATE, _HISTORY, _MANIFEST = "state.npz", "history.npz", "manifest.json"
_KEPT = 2  # if the newest is damaged, the one before is used
_NAME = re.compile(r"\d{12,}")


class Checkpoint(NamedTuple):
    """Everything needed to continue a run."""

    iteration: int
    facts: dict[str, Any]
    arrays: dict[str, Array]
    history: dict[str, Array]


class Checkpoints:
    """The checkpoints of one run.

    Args:
        folder: Their folder.
        experiment: The digest of the experiment, which a checkpoint must have.
    """

    def __init__(self, folder: Path, experiment: str) -> None:
        self._folder = folder
        self._experiment = experiment
        self._good: list[int] = []  # iterations of verified checkpoints, ascending

    def write(
        self, k: int, arrays: Mapping[str, Array], facts: Mapping[str, Any], history: Mapping[str, Array]
    ) -> None:
        """Write the checkpoint of iteration ``k``; after verifying it, remove all but the newest ones."""
        if k in self._good:
            return
        # Without parents: do not recreate a deleted folder of a run.
        folder = files.make_folder(files.make_folder(self._folder, parents=False) / f"{k:012d}", parents=False)
        facts = {"iteration": k, "experiment": self._experiment, **facts}
        contents = {_STATE: arrays, **({_HISTORY: history} if history else {})}
        sealed.write(folder / _MANIFEST, facts, {name: files.to_npz(each) for name, each in contents.items()})
        sealed.read(folder / _MANIFEST)
        files.sync(self._folder)
        self._good = [*self._good, k][-_KEPT:]
        for other in folders(self._folder):
            if int(other.name) not in self._good:
                files.remove_folder(other)

    def newest(self) -> Checkpoint | None:
        """Return the newest valid checkpoint, or None; raise an error if it is of another experiment."""
        found = newest(self._folder)
        if found is None:
            return None
        if found.facts["experiment"] != self._experiment:
            raise RecordError(
                f"{self._folder.parent} holds checkpoints of another experiment (its algorithm, graph, weights, "
                "problem, seed or start differ); give the same settings to resume, or another folder"
            )
        self._good = [found.iteration]
        return found

    def remove_leftovers(self) -> None:
        """Remove temporary files of a killed process."""
        for folder in folders(self._folder):
            files.remove_leftovers(folder)


def newest(folder: Path) -> Checkpoint | None:
    """Return the newest valid checkpoint in a folder; damaged ones are ignored."""
    other: RecordError | None = None
    for path in reversed(folders(folder)):
        try:
            return _read(path)
        except sealed.OtherFormatError as error:
            other = error
        except RecordError:
            continue
    if other is not None:
        raise other  # rather than restart the run
    return None


def _read(folder: Path) -> Checkpoint:
    facts, contents = sealed.read(folder / _MANIFEST)
    with files.parsing(folder / _MANIFEST):
        rows = [(int(k), dict(row)) for k, row in facts["rows"]]
        counts = {name: int(facts[name]) for name in ("iteration", "bytes_sent", "gradients")}
        told = {"experiment": str(facts["experiment"]), "seconds": float(facts["seconds"]), "rows": rows}
        if counts["iteration"] != int(folder.name):
            raise ValueError(f"it is of iteration {counts['iteration']}")
        arrays = files.read_arrays(folder / _STATE, contents[_STATE])
        history = files.read_arrays(folder / _HISTORY, contents[_HISTORY]) if _HISTORY in contents else {}
    return Checkpoint(counts["iteration"], {**counts, **told}, arrays, history)


def folders(folder: Path) -> list[Path]:
    """Return the folders of all checkpoints, valid or not, oldest first."""
    try:
        return sorted(
            (path for path in folder.iterdir() if _NAME.fullmatch(path.name)), key=lambda path: int(path.name)
        )
    except (OSError, ValueError):
        return []
