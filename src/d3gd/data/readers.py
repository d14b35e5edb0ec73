"""Reading of users' tables."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from d3gd import reading
from d3gd.arrays import Array, Floats, Ints
from d3gd.errors import ProblemError
from d3gd.validation import CLASSES, one_line, shortened, shown

_TABLE = "a CSV file of numbers with a header line, as UTF-8 text"
_ARCHIVE = "an NPZ file that numpy.savez wrote"


def read_table(path: str | Path, *, label: str) -> tuple[Floats, Ints]:
    """Features and labels from a CSV or NPZ file.

    A CSV file has a header line; the column `label` holds the classes and every other column is a feature.
    An NPZ file holds two arrays: the one called `label` of shape (samples,), the other of shape
    (samples, features).

    Args:
        path: The file, ending in .csv or .npz.
        label: Name of the column or array with the classes, integers of 0 or more.

    Returns:
        Features of shape (samples, features) and labels of shape (samples,).
    """
    if not isinstance(path, (str, Path)):
        raise ProblemError(f"path is a {type(path).__name__}; give the name of a .csv or .npz file")
    path = Path(path)
    readers = {".csv": _read_csv, ".npz": _read_npz}
    if path.suffix.lower() not in readers:
        raise ProblemError(f"{path} ends in '{path.suffix}'; give a .csv or .npz file")
    return readers[path.suffix.lower()](path, label)


def _read_csv(path: Path, label: str) -> tuple[Floats, Ints]:
    header, rows = reading.table(path, _TABLE, error=ProblemError)
    _require(label, header, path, "column")
    place, header = header.index(label), [_cited(name) for name in header]
    if not rows or len(header) < 2:
        raise ProblemError(f"{path} has {len(rows)} rows and {len(header)} columns; it needs samples and features")
    for line, row in rows:
        if len(row) != len(header):
            raise ProblemError(
                f"{path}, line {line}: {len(row)} values under {len(header)} columns; "
                "give every row one value per column"
            )
    table = np.array([_numbers(row, header, f"{path}, line {line}") for line, row in rows])
    bad = np.argwhere(~np.isfinite(table))
    if bad.size:
        row, column = bad[0]
        raise ProblemError(
            f"{path}, line {rows[row][0]}: {header[column]} is {table[row, column]}; fill or drop that row"
        )
    labels = table[:, place]
    _require_classes(labels, lambda row: f"{path}, line {rows[row][0]}: {label}")
    return np.delete(table, place, axis=1), labels.astype(np.int64)


def _numbers(row: list[str], header: list[str], where: str) -> list[float]:
    try:
        return [reading.number(value) for value in row]
    except ValueError:
        for name, value in zip(header, row, strict=True):
            try:
                reading.number(value)
            except ValueError as error:
                raise ProblemError(
                    f"{where}: {name} is {shown(value)}; every value must be a number, classes too (0, 1, 2, ...)"
                ) from error
        raise


def _read_npz(path: Path, label: str) -> tuple[Floats, Ints]:
    arrays = reading.arrays(path, _ARCHIVE, error=ProblemError)
    _require(label, list(arrays), path, "array")
    others = [name for name in arrays if name != label]
    if len(others) != 1:
        raise ProblemError(f"{path} holds the arrays {shown(list(arrays))}; keep '{label}' and one with the features")
    return _checked_npz(arrays[others[0]], arrays[label], path, _cited(others[0]), label)


def _checked_npz(X: Array, y: Array, path: Path, name: str, label: str) -> tuple[Floats, Ints]:
    if X.ndim != 2 or X.size == 0 or y.shape != X.shape[:1] or X.dtype.kind not in "fiub" or y.dtype.kind not in "fiu":
        raise ProblemError(
            f"{path}: {name} is {X.dtype} of shape {X.shape} and {label} {y.dtype} of shape {y.shape}; "
            "store numbers of shape (samples, features) and (samples,)"
        )
    bad = np.argwhere(~np.isfinite(X))
    if bad.size:
        row, column = bad[0]
        raise ProblemError(f"{path}, row {row}: {name}[{row}, {column}] is {X[row, column]}; fill or drop that row")
    _require_classes(y, lambda row: f"{path}, row {row}: {label}")
    return X.astype(np.float64), y.astype(np.int64)


def _require_classes(labels: Array, where: Callable[[int], str]) -> None:
    """Raise an error unless labels number classes 0, 1, ..., most of which have samples."""
    labels = labels.astype(np.float64) if labels.dtype.kind == "f" else labels  # 65,536 exceeds float16
    wrong = np.flatnonzero(~((labels >= 0) & (labels == np.floor(labels))))
    if wrong.size:
        raise ProblemError(
            f"{where(int(wrong[0]))} is {labels[wrong[0]]:g}; number the classes with integers 0, 1, 2, ..."
        )
    row = int(labels.argmax())
    if labels[row] >= max(CLASSES, len(labels)):
        raise ProblemError(
            f"{where(row)} is {labels[row]:g}, but there are only {len(labels):,} samples; number the classes 0, 1, 2, "
            "... without gaps"
        )


def _require(label: str, names: list[str], path: Path, what: str) -> None:
    if label not in names:
        raise ProblemError(f"{path} has no {what} '{label}'; it has {_cited(', '.join(names)) or 'none'}")


def _cited(name: str) -> str:
    return shortened(one_line(name))
