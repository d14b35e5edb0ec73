"""The layout of a run's folder; :mod:`d3gd.runs.outcome` writes and reads what a finished run adds to it.

::

    RUN/
      settings.json     the settings: algorithm, graph, problem, seed, versions
      start.npz         the network, the initial weights and models
      experiment.toml   a copy of the experiment; inputs/ has the files it names
      checkpoints/      the newest valid ones
      metrics.csv       one row per record
      weights.npz       the final weights (scipy.sparse.load_npz reads them)
      models.npz        the final models, as `x`
      traffic.npz       the bytes that each link carried, if they are known
      history.npz       the weights over time, if they were recorded
      report.html       a page that shows the run, if it was asked for
      result.json       the status and the digests of the other files; written last
      .d3gd.lock        only while a process writes here
"""

import contextlib
import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from d3gd import reading
from d3gd.arrays import CSR, Array, Floats
from d3gd.digest import digest
from d3gd.errors import D3GDError, RecordError
from d3gd.graphs import Digraph
from d3gd.metrics import Log
from d3gd.runs import checkpoints, files
from d3gd.runs.checkpoints import Checkpoint, Checkpoints
from d3gd.runs.lock import Lock
from d3gd.runs.outcome import SETTINGS, is_file, is_finished

if TYPE_CHECKING:
    from d3gd.result import Result

_START, _CHECKPOINTS, _LOCK = "start.npz", "checkpoints", ".d3gd.lock"
_EXPERIMENT, _INPUTS = "experiment.toml", "inputs"
_REPORT = "report.html"
_SEAL = re.compile(rb"# sha256 of all above: ([0-9a-f]{64})\n")
_INPUT_SEAL = re.compile(rb"# sha256 of (.+): ([0-9a-f]{64})\n")


def is_started(folder: Path) -> bool:
    """Whether a folder holds a run, finished or not."""
    begun = is_file(folder / SETTINGS) and is_file(folder / _START)
    return begun or bool(checkpoints.folders(folder / _CHECKPOINTS))


def settings_in(folder: Path) -> dict[str, Any]:
    """Return the settings of the run in a folder, finished or not; none if they are missing."""
    path = folder / SETTINGS
    return files.read_json(path) if is_file(path) else {}


def resumable_from(folder: Path) -> int | None:
    """Return the iteration from which a run would resume, or None without a valid checkpoint."""
    found = checkpoints.newest(folder / _CHECKPOINTS)
    return None if found is None else found.iteration


def require_free(folder: Path) -> None:
    """Raise an error unless a folder is new or empty."""
    if is_started(folder):
        if is_file(folder / _LOCK):
            Lock(folder / _LOCK).release()  # raises if a process is using the folder, the more useful error
        raise _taken(folder)
    # With a lock, the start is that of a process that was killed before its run started.
    left = {_START} if os.path.lexists(folder / _LOCK) else set()
    strangers = [name for name in files.visible(folder) if name not in left]
    if strangers:
        raise RecordError(
            f"{folder} holds {strangers[0]!r} and no run; choose a new or an empty folder; nothing is overwritten"
        )


class RunFolder:
    """Writes settings and initial state once and checkpoints during the run; never overwrites existing files.

    As a context manager it locks the folder. A run that fails with a :class:`D3GDError` before its first checkpoint
    leaves nothing behind.

    Args:
        path: The folder; it must be new or empty, unless ``resume``.
        resume: Continue the run in the folder, if there is one.
        settings: The settings of the run.
        identity: What identifies the experiment, apart from its start.
        graph: The network.
        weights: The initial weights.
        x0: The initial models.
        fixed: Whether the network is that of the start, and with it the experiment's identity, until the end.
    """

    def __init__(
        self,
        path: Path,
        *,
        resume: bool,
        settings: dict[str, Any],
        identity: Any,
        graph: Digraph,
        weights: CSR,
        x0: Floats,
        fixed: bool = True,
    ) -> None:
        start = {"indptr": graph.indptr, "sources": graph.sources, "weights": weights.data, "x0": x0}
        experiment = digest(identity, *(start.values() if fixed else []))
        start["experiment"] = np.array(experiment)
        self.path = path
        self._every = int(settings["every"])
        self._checkpoints = Checkpoints(path / _CHECKPOINTS, experiment)
        self._found: Checkpoint | None = None
        self._fresh = not (resume and is_started(path))
        if self._fresh:
            require_free(path)  # before anything is created
        self._made = not os.path.lexists(path)
        files.make_folder(path)
        self._lock = Lock(path / _LOCK)
        try:
            if is_started(path):
                self._fresh = False
                if not resume:
                    raise _taken(path)  # another process was faster
                self._go_on(start, experiment, int(settings["iterations"]))
            else:
                files.remove_leftovers(path)
                files.write_arrays(path / _START, start)
                files.write_json(path / SETTINGS, settings)
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._fresh and isinstance(error, D3GDError) and self._lock.holds() and resumable_from(self.path) is None:
            self._clear()
        self._lock.release()
        if self._fresh and self._made and isinstance(error, D3GDError):
            with contextlib.suppress(OSError):
                self.path.rmdir()  # only if it is empty

    def found(self) -> Checkpoint | None:
        """Return the newest checkpoint, with the earlier records among its facts, or None."""
        if self._found is None:
            return None
        k, facts = self._found.iteration, self._found.facts
        # The record at the checkpoint is repeated, so that targets and callbacks can act on it.
        rows = [(at, row) for at, row in facts["rows"] if at % self._every == 0 and at < k]
        return self._found._replace(facts={**facts, "rows": rows})

    def checkpoint(
        self,
        k: int,
        arrays: dict[str, Array],
        bytes_sent: int,
        seconds: float,
        log: Log,
        *,
        gradients: int,
        history: Mapping[str, Array],
    ) -> None:
        """Write everything needed to continue the run."""
        self._require_there()
        facts = {"bytes_sent": bytes_sent, "gradients": gradients, "seconds": seconds, "rows": log.rows}
        self._checkpoints.write(k, arrays, facts, history)

    def finish(self, result: "Result") -> None:
        """Write the result."""
        self._require_there()
        result.save(self.path)

    def _go_on(self, start: Mapping[str, Array], experiment: str, iterations: int) -> None:
        """Continue the run in the folder, or raise an error if it is another one."""
        there = _experiment_in(self.path / _START)
        if there not in (None, experiment):
            raise RecordError(
                f"{self.path} holds another experiment (its algorithm, graph, weights, problem, seed, start, metrics "
                "or record_weights differ); give the same settings to resume, or another folder"
            )
        self._found = self._checkpoints.newest()
        if there is None and self._found is None:
            raise RecordError(
                f"{self.path / _START} is missing or damaged and there is no valid checkpoint, so the run cannot be "
                "identified; choose another folder"
            )
        if self._found is not None and self._found.iteration > iterations:
            raise RecordError(
                f"{self.path} already holds {self._found.iteration} iterations, more than the {iterations} requested; "
                "request as many or more, or choose another folder"
            )
        for folder in (self.path, self.path / _INPUTS):
            files.remove_leftovers(folder)
        self._checkpoints.remove_leftovers()
        if there is None:
            files.write_arrays(self.path / _START, start)

    def _require_there(self) -> None:
        if not self._lock.holds():
            raise RecordError(
                f"{self.path} was deleted or moved during its run, so that nothing more can be written to it; start "
                "again, in another folder"
            )

    def _clear(self) -> None:
        for name in (SETTINGS, _START, _EXPERIMENT):
            with contextlib.suppress(OSError):
                (self.path / name).unlink(missing_ok=True)
        for name in (_INPUTS, _CHECKPOINTS):
            files.remove_folder(self.path / name)


def write_experiment(folder: Path, text: str, inputs: Mapping[str, bytes]) -> None:
    """Write the TOML text that repeats a run and the files that it names, by their names in the text.

    The text ends with comments that hold the digests of these files and of the text.
    """
    for name, content in inputs.items():
        files.make_folder((folder / name).parent)
        files.write_atomically(folder / name, content)
    files.write_atomically(files.make_folder(folder) / _EXPERIMENT, _sealed(text, inputs))


def holds_experiment(folder: Path, text: str, inputs: Mapping[str, bytes]) -> bool:
    """Whether a folder holds what :func:`write_experiment` would write."""
    copy = experiment_in(folder)
    return copy is not None and reading.content(copy, files.WANTED) == _sealed(text, inputs)


def _sealed(text: str, inputs: Mapping[str, bytes]) -> bytes:
    digests = [f"# sha256 of {name}: {hashlib.sha256(content).hexdigest()}" for name, content in inputs.items()]
    above = "".join(f"{line}\n" for line in (text.rstrip("\n"), "", *digests)).encode()
    return above + f"# sha256 of all above: {hashlib.sha256(above).hexdigest()}\n".encode()


def report_in(folder: Path) -> Path:
    """Return the place of a run's report, which belongs to no digest."""
    return folder / _REPORT


def input_name(name: str) -> str:
    """Return the path of an input file, relative to the folder of the experiment's copy."""
    return f"{_INPUTS}/{name}"


def experiment_in(folder: Path) -> Path | None:
    """Return the copy of a run's experiment, if there is one."""
    return folder / _EXPERIMENT if is_file(folder / _EXPERIMENT) else None


def require_as_written(experiment: Path) -> None:
    """Raise an error if a run's copy of its experiment, or a file that it names, was changed.

    Args:
        experiment: A settings file; outside a run's folder it may be changed.
    """
    if not is_started(experiment.parent):
        return
    *above, last = reading.content(experiment, files.WANTED).splitlines(keepends=True) or [b""]
    seal = _SEAL.fullmatch(last)
    if seal is None:
        return
    todo = "to change an experiment, copy it out of its run's folder"
    if hashlib.sha256(b"".join(above)).hexdigest().encode() != seal[1]:
        raise RecordError(f"{experiment} is not what the run wrote (SHA-256); {todo}")
    for name, sha256 in (match.groups() for match in map(_INPUT_SEAL.fullmatch, above) if match):
        path = experiment.parent / os.fsdecode(name)
        if hashlib.sha256(reading.content(path, files.WANTED, limit=reading.ARRAYS)).hexdigest().encode() != sha256:
            raise RecordError(f"{path} is not what the run wrote (SHA-256); {todo}, with its files")


def _taken(folder: Path) -> RecordError:
    at = None if is_finished(folder) else resumable_from(folder)
    where = "" if at is None else f" from iteration {at}"
    return RecordError(
        f"{folder} already holds a run; continue it{where} (--resume, resume=True), or choose another folder"
    )


def _experiment_in(start: Path) -> str | None:
    """Return the digest of a start's experiment, or None if it cannot be read."""
    with contextlib.suppress(RecordError, KeyError):
        return str(files.read_arrays(start)["experiment"])
    return None
