"""A run on disk: plain files that other tools read, written so that a crash never costs what was there before.

::

    RUN/
      settings.json     what was run: algorithm, graph, problem, seed, versions
      start.npz         the network, the initial weights and models
      metrics.csv       one row per record
      weights.npz       the final weights (scipy.sparse.load_npz reads them)
      models.npz        the final models, as `x`
      result.json       status, iterations, seconds
      checkpoints/      the newest complete ones; the manifest is written last
"""

import contextlib
import csv
import hashlib
import io
import json
import os
import platform
import shutil
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from d3gd.arrays import Array
from d3gd.errors import RecordError

_KEPT = 2  # checkpoints: should the newest turn out damaged, the one before it still serves


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a file beside ``path`` and move it there when it is whole: readers see the old one or the new one."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with beside.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        raise RecordError(f"{path} cannot be written ({error.strerror}); choose another folder with --out") from error
    finally:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)


def write_atomically(path: Path, content: bytes) -> None:
    """Write a whole file or none."""
    with replacing(path) as file:
        file.write(content)


def make_folder(path: Path) -> Path:
    """Create a folder and its parents, or say why not."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RecordError(f"folder {path} cannot be created ({error.strerror}); choose another with --out") from error
    return path


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write readable JSON."""
    write_atomically(path, (json.dumps(content, indent=2, allow_nan=True) + "\n").encode())


@contextlib.contextmanager
def reading(path: Path) -> Iterator[io.BytesIO]:
    """Yield a file's content, and say in one line whatever is wrong with it."""
    try:
        yield io.BytesIO(path.read_bytes())
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise RecordError(f"{path} cannot be read ({error}); is this the folder of a d3gd run?") from error


def read_json(path: Path) -> dict[str, Any]:
    """Read what :func:`write_json` wrote."""
    with reading(path) as file:
        content: dict[str, Any] = json.load(file)
    return content


def write_arrays(path: Path, arrays: Mapping[str, Array]) -> str:
    """Write named arrays as NPZ and return the file's SHA-256."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **dict(arrays))
    content = buffer.getvalue()
    write_atomically(path, content)
    return hashlib.sha256(content).hexdigest()


def read_arrays(path: Path) -> dict[str, Array]:
    """Read named arrays; never unpickles."""
    with reading(path) as content, np.load(content, allow_pickle=False) as file:
        return dict(file)


def write_metrics(path: Path, iterations: Array, metrics: Mapping[str, Array]) -> None:
    """Write one CSV row per record, every digit kept; a metric per agent takes a column for each."""
    columns: dict[str, list[Any]] = {"iteration": iterations.tolist()}
    for name, values in metrics.items():
        if values.ndim == 1:
            columns[name] = values.tolist()
        else:
            columns |= {f"{name}[{i}]": values[:, i].tolist() for i in range(values.shape[1])}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    write_atomically(path, text.getvalue().encode())


def read_metrics(path: Path) -> tuple[Array, dict[str, Array]]:
    """Read what :func:`write_metrics` wrote."""
    with reading(path) as content:
        header, *rows = csv.reader(io.TextIOWrapper(content, newline=""))
        if not rows:
            raise ValueError("no records")
        table = [np.array([_number(value) for value in column]) for column in zip(*rows, strict=True)]
    metrics: dict[str, Array] = {}
    for name in dict.fromkeys(column.split("[")[0] for column in header[1:]):
        columns = [table[i] for i, column in enumerate(header) if column.split("[")[0] == name]
        metrics[name] = columns[0] if name in header else np.column_stack(columns)
    return table[0], metrics


def _number(text: str) -> int | float:
    return int(text) if text.lstrip("-").isdecimal() else float(text)


def versions() -> dict[str, str]:
    """Return what a run's numbers may depend on."""
    import scipy

    from d3gd import __version__

    return {
        "d3gd": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "machine": platform.machine(),
    }


class Checkpoints:
    """The checkpoints of one run: a new folder each, complete once its manifest is there."""

    def __init__(self, folder: Path, experiment: str) -> None:
        self._folder = folder
        self._experiment = experiment

    def write(self, k: int, arrays: Mapping[str, Array], facts: Mapping[str, Any]) -> None:
        """Write the checkpoint of iteration ``k``, then drop the oldest."""
        folder = self._folder / f"{k:012d}"
        if _whole(folder) is not None:
            return
        make_folder(folder)
        (folder / "manifest.json").unlink(missing_ok=True)  # a damaged one is not complete while it is replaced
        digest = write_arrays(folder / "state.npz", arrays)
        write_json(
            folder / "manifest.json",
            {"iteration": k, "experiment": self._experiment, "sha256": digest, **facts},
        )
        for old in self._complete()[:-_KEPT]:
            shutil.rmtree(old, ignore_errors=True)

    def newest(self) -> tuple[dict[str, Any], dict[str, Array]] | None:
        """Return the newest complete checkpoint's manifest and arrays, or None."""
        for folder in reversed(self._complete()):
            found = _whole(folder)
            if found is None:
                continue
            if found[0]["experiment"] != self._experiment:
                raise RecordError(
                    f"{self._folder.parent} holds checkpoints of another experiment (its algorithm, graph, weights, "
                    "problem, seed or start differ); give the same settings to resume, or another folder"
                )
            return found
        return None

    def _complete(self) -> list[Path]:
        return sorted(path.parent for path in self._folder.glob("*/manifest.json"))


def _whole(folder: Path) -> tuple[dict[str, Any], dict[str, Array]] | None:
    """Return a checkpoint's manifest and arrays, or None if anything of it is missing or damaged."""
    with contextlib.suppress(RecordError, OSError, KeyError):
        manifest = read_json(folder / "manifest.json")
        if hashlib.sha256((folder / "state.npz").read_bytes()).hexdigest() == manifest["sha256"]:
            return manifest, read_arrays(folder / "state.npz")
    return None
