"""A user's own table."""

import csv
import zipfile
from pathlib import Path

import numpy as np

from d3gd.arrays import Array, Floats, Ints
from d3gd.errors import ProblemError


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
    path = Path(path)
    if not path.is_file():
        raise ProblemError(f"there is no file {path}; check the path")
    readers = {".csv": _read_csv, ".npz": _read_npz}
    if path.suffix.lower() not in readers:
        raise ProblemError(f"{path} ends in '{path.suffix}'; give a .csv or .npz file")
    return readers[path.suffix.lower()](path, label)


def _read_csv(path: Path, label: str) -> tuple[Floats, Ints]:
    rows: list[list[float]] = []
    lines: list[int] = []
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            header = [name.strip() for name in next(reader, [])]
            _require(label, header, path, "column")
            for row in reader:
                if not row:
                    continue
                if len(row) != len(header):
                    raise ProblemError(
                        f"{path}, line {reader.line_num}: {len(row)} values under {len(header)} columns; "
                        "give every row one value per column"
                    )
                rows.append(_numbers(row, header, f"{path}, line {reader.line_num}"))
                lines.append(reader.line_num)
    except (UnicodeDecodeError, csv.Error) as error:
        raise ProblemError(f"{path} cannot be read as CSV ({error}); save it as UTF-8 text") from error
    if not rows or len(header) < 2:
        raise ProblemError(f"{path} has {len(rows)} rows and {len(header)} columns; it needs samples and features")
    table = np.array(rows)
    bad = np.argwhere(~np.isfinite(table))
    if bad.size:
        row, column = bad[0]
        raise ProblemError(
            f"{path}, line {lines[row]}: {header[column]} is {table[row, column]}; fill or drop that row"
        )
    place = header.index(label)
    labels = table[:, place]
    wrong = np.flatnonzero((labels < 0) | (labels != np.floor(labels)))
    if wrong.size:
        raise ProblemError(
            f"{path}, line {lines[wrong[0]]}: {label} is {labels[wrong[0]]:g}; "
            "number the classes with integers 0, 1, 2, ..."
        )
    return np.delete(table, place, axis=1), labels.astype(np.int64)


def _numbers(row: list[str], header: list[str], where: str) -> list[float]:
    try:
        return [float(value) for value in row]
    except ValueError:
        for name, value in zip(header, row, strict=True):
            try:
                float(value)
            except ValueError as error:
                raise ProblemError(
                    f"{where}: {name} is {value!r}; every value must be a number, classes too (0, 1, 2, ...)"
                ) from error
        raise


def _read_npz(path: Path, label: str) -> tuple[Floats, Ints]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            _require(label, archive.files, path, "array")
            others = [name for name in archive.files if name != label]
            if len(others) != 1:
                raise ProblemError(f"{path} holds the arrays {archive.files}; keep '{label}' and one with the features")
            X, y = archive[others[0]], archive[label]
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        raise ProblemError(f"{path} cannot be read as NPZ ({error}); write it with numpy.savez") from error
    return _checked_npz(X, y, path, others[0], label)


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
    wrong = np.flatnonzero(~((y >= 0) & (y == np.floor(y))))
    if wrong.size:
        raise ProblemError(f"{path}, row {wrong[0]}: {label} is {y[wrong[0]]}; number the classes 0, 1, ...")
    return X.astype(np.float64), y.astype(np.int64)


def _require(label: str, names: list[str], path: Path, what: str) -> None:
    if label not in names:
        raise ProblemError(f"{path} has no {what} '{label}'; it has {', '.join(names) or 'none'}")
