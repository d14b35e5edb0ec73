"""What a finished run adds to its folder: tables, models and weights, and the record of their digests."""

import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import save_npz

from d3gd import reading
from d3gd.arrays import CSR, Array
from d3gd.errors import RecordError
from d3gd.runs import files, sealed
from d3gd.runs import history as histories

SETTINGS = "settings.json"
_METRICS, _MODELS, _WEIGHTS, _RESULT = "metrics.csv", "models.npz", "weights.npz", "result.json"
_HISTORY, _TRAFFIC = "history.npz", "traffic.npz"


def is_finished(folder: Path) -> bool:
    """Whether a folder holds the result of a run."""
    return is_file(folder / _RESULT)


def write_result(
    folder: Path,
    facts: Mapping[str, Any],
    *,
    settings: Mapping[str, Any],
    iterations: Array,
    metrics: Mapping[str, Array],
    x: Array,
    weights: CSR,
    history: Mapping[str, Array],
    traffic: CSR | None,
    begun: bool,
) -> None:
    """Write a result: its tables and arrays, and last the record with the facts.

    Args:
        folder: The folder.
        facts: What the record holds beside digests.
        settings: The settings of the run.
        iterations: The recorded iterations.
        metrics: The metrics there.
        x: The final models.
        weights: The final weights.
        history: The weights over time, if they were recorded.
        traffic: The bytes along every link, if they are known.
        begun: Whether the folder already belongs to the run.
    """
    names = (_METRICS, _MODELS, _WEIGHTS, _HISTORY, _TRAFFIC, _RESULT, SETTINGS)
    taken = [name for name in names if os.path.lexists(folder / name)]
    if taken and not (begun or is_finished(folder)):
        raise RecordError(f"{folder} holds {taken[0]!r} and no run; choose a folder where nothing is overwritten")
    contents = {
        _METRICS: files.to_csv(iterations, metrics),
        _MODELS: files.to_npz({"x": x}),
        _WEIGHTS: _packed(weights),
        **({_HISTORY: files.to_npz(history)} if history else {}),
        **({} if traffic is None else {_TRAFFIC: _packed(traffic)}),
        **({SETTINGS: files.to_json(settings)} if settings else {}),
    }
    sealed.write(files.make_folder(folder) / _RESULT, facts, contents)


def read_result(folder: Path, *, begun: bool = False) -> dict[str, Any]:
    """Return the fields of a :class:`d3gd.Result`, verified by their digests; ``begun``: there is a run."""
    if not is_finished(folder):
        todo = "finish it first (--resume)" if begun else "give one, such as runs/experiment-0"
        raise RecordError(f"{folder} has no {_RESULT}: it is not the folder of a finished run; {todo}")
    try:
        facts, contents = sealed.read(folder / _RESULT)
    except sealed.OtherFormatError:
        facts, contents = _unsealed(folder)
    with files.parsing(folder / _RESULT):
        missing = [name for name in (_METRICS, _MODELS, _WEIGHTS) if name not in contents]
        if missing:
            raise ValueError(f"there is no {missing[0]}")
        iterations, metrics = files.read_metrics(folder / _METRICS, contents[_METRICS])
        x = files.read_arrays(folder / _MODELS, contents[_MODELS])["x"]
        weights = reading.csr(folder / _WEIGHTS, files.WANTED, held=contents[_WEIGHTS], square=False)
        if x.ndim != 2 or x.dtype.kind != "f" or weights.shape[0] != len(x):
            raise ValueError(f"its models are {x.dtype} of shape {x.shape}, its weights of {weights.shape[0]} agents")
        return {
            "status": str(facts["status"]),
            "message": str(facts["message"]),
            "seconds": float(facts["seconds"]),
            "settings": files.read_json(folder / SETTINGS, contents[SETTINGS]) if SETTINGS in contents else {},
            "iterations": iterations,
            "metrics": metrics,
            "x": x,
            "weights": weights,
            "history": histories.parsed(folder / _HISTORY, contents[_HISTORY], weights) if _HISTORY in contents else {},
            "traffic": _traffic(folder / _TRAFFIC, contents[_TRAFFIC], weights) if _TRAFFIC in contents else None,
        }


def facts_of(folder: Path) -> dict[str, Any] | None:
    """Return how a run ended and its last metrics, or None if it is not finished or its files are damaged."""
    try:
        return sealed.read(folder / _RESULT)[0]
    except RecordError:
        return None


def _packed(matrix: CSR) -> bytes:
    packed = io.BytesIO()
    save_npz(packed, matrix, compressed=False)
    return packed.getvalue()


def _traffic(path: Path, held: bytes, weights: CSR) -> CSR:
    found = reading.csr(path, files.WANTED, held=held)
    if not (np.array_equal(found.indptr, weights.indptr) and np.array_equal(found.indices, weights.indices)):
        raise ValueError(f"{path.name} has other entries than {_WEIGHTS}")
    return found.astype(np.int64)


def _unsealed(folder: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return a result that an earlier version wrote without digests, or raise an error for later formats."""
    facts = files.read_json(folder / _RESULT)
    if "format" in facts:
        sealed.read(folder / _RESULT)
    names = [name for name in (_METRICS, _MODELS, _WEIGHTS, SETTINGS) if is_file(folder / name)]
    return facts, {name: reading.content(folder / name, files.WANTED, limit=reading.ARRAYS) for name in names}


def is_file(path: Path) -> bool:
    """Whether a path is that of a regular file."""
    return os.path.isfile(path)  # noqa: PTH113 - unlike pathlib's, it never raises
