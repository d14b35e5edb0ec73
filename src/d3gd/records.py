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


def read_json(path: Path) -> dict[str, Any]:
    """Read what :func:`write_json` wrote."""
    try:
        content: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise RecordError(f"{path} cannot be read ({error}); is this the folder of a d3gd run?") from error
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
    try:
        with np.load(path, allow_pickle=False) as file:
            return dict(file)
    except (OSError, ValueError) as error:
        raise RecordError(f"{path} cannot be read ({error}); is this the folder of a d3gd run?") from error


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
    try:
        with path.open(newline="") as file:
            header, *rows = csv.reader(file)
    except (OSError, ValueError) as error:
        raise RecordError(f"{path} cannot be read ({error}); is this the folder of a d3gd run?") from error
    table = np.array([[float(value) for value in row] for row in rows]).reshape(len(rows), len(header))
    metrics: dict[str, Array] = {}
    for name in dict.fromkeys(column.split("[")[0] for column in header[1:]):
        columns = [i for i, column in enumerate(header) if column.split("[")[0] == name]
        metrics[name] = table[:, columns[0]] if header[columns[0]] == name else table[:, columns]
    return table[:, 0].astype(np.int64), metrics


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
        if (folder / "manifest.json").exists():
            return
        make_folder(folder)
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
            manifest = read_json(folder / "manifest.json")
            if manifest["experiment"] != self._experiment:
                raise RecordError(
                    f"{self._folder.parent} holds checkpoints of another experiment (its algorithm, graph, weights, "
                    "problem, seed or start differ); give the same settings to resume, or another folder"
                )
            content = (folder / "state.npz").read_bytes()
            if hashlib.sha256(content).hexdigest() == manifest["sha256"]:
                return manifest, read_arrays(folder / "state.npz")
        return None

    def _complete(self) -> list[Path]:
        return sorted(path.parent for path in self._folder.glob("*/manifest.json"))
