"""All reading of users' files: regular files of bounded size, and arrays that match their bytes.

Any defect of a file is reported in one line that names it. Nothing here blocks on a pipe, unpickles, or allocates what
only a header claims.
"""

import csv
import io
import math
import os
import stat
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
from scipy.sparse import csr_array

from d3gd.arrays import CSR, Array
from d3gd.errors import D3GDError, RecordError
from d3gd.validation import one_line, shortened, shown

TEXT = 64 * 2**20  # limit on bytes of text
ARRAYS = 2**30  # limit on bytes of arrays, also after unpacking a smaller archive
_MEMBERS = 10_000
_REASON = 200  # limit on characters of a parser's error that are repeated
_CHUNK = 2**24
# Opening must not block on a pipe. Windows lacks these flags, and needs another one for binary files.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
_KINDS = "biufcSU"  # kinds of dtypes: plain values, no objects or records

Raised: TypeAlias = type[D3GDError]


def content(path: str | Path, what: str, *, limit: int = TEXT, error: Raised = RecordError) -> bytes:
    """Return the bytes of a regular file.

    Args:
        path: The file; pipes, devices and folders are rejected at once.
        what: The expected file, for messages: "a TOML file".
        limit: The most bytes to read.
        error: The error to raise.
    """
    with _opened(Path(path), what, limit, error) as (file, size):
        return file.read(size)


def text(path: str | Path, what: str, *, limit: int = TEXT, error: Raised = RecordError) -> str:
    """Return a file of UTF-8 text, without the byte-order mark that some editors write; see :func:`content`."""
    held = content(path, what, limit=limit, error=error)
    with reported(Path(path), what, error):
        return held.decode("utf-8-sig")


def rows(path: str | Path, what: str, *, error: Raised = RecordError) -> list[tuple[int, list[str]]]:
    """Return the rows of a CSV file that are not empty, each with the number of its last line."""
    reader = csv.reader(io.StringIO(text(path, what, error=error), newline=""), skipinitialspace=True)
    with reported(Path(path), what, error):
        return [(reader.line_num, row) for row in reader if row]


def table(path: str | Path, what: str, *, error: Raised = RecordError) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Return the names of a CSV file's columns, which must differ, and its other rows as :func:`rows` does."""
    found = rows(path, what, error=error)
    header = [name.strip() for name in found[0][1]] if found else []
    twice = [name for i, name in enumerate(header) if name and name in header[:i]]
    if twice:
        raise error(f"{path} has two columns {shown(twice[0])}; rename or drop one")
    return header, found[1:]


def number(text: str) -> float:
    """Return the number in a text, or raise a ValueError.

    Unlike ``float``, it refuses what other programs do not read as numbers: ``1_0`` and digits of other scripts.
    """
    if "_" in text or not text.isascii():
        raise ValueError(f"could not convert string to float: {text!r}")
    return float(text)


def arrays(
    path: str | Path, what: str, *, held: bytes | None = None, limit: int = ARRAYS, error: Raised = RecordError
) -> dict[str, Array]:
    """Return the arrays of an NPZ file.

    Every member's shape and dtype must match its bytes before its array is allocated. A compressed archive
    may unpack to 1 GiB, or to its own size if that is more.

    Args:
        path: The file.
        what: The expected file, for messages.
        held: The file's content, if it is already read.
        limit: The most bytes that the file may have.
        error: The error to raise.
    """
    path = Path(path)
    if held is not None:
        with reported(path, what, error):
            return _unpacked(io.BytesIO(held), len(held))
    with _opened(path, what, limit, error) as (file, size):
        return _unpacked(file, size)


def csr(
    path: str | Path,
    what: str,
    *,
    held: bytes | None = None,
    limit: int = ARRAYS,
    error: Raised = RecordError,
    square: bool = True,
) -> CSR:
    """Return the CSR matrix of a file that ``scipy.sparse.save_npz`` wrote, with all of its format checked.

    The other arguments are those of :func:`arrays`. Values become float64 and are not checked.

    Args:
        path: The file.
        what: What it should be, for messages.
        held: Its content, if it has been read.
        limit: Limit on its size.
        error: The kind of error to raise.
        square: Whether the matrix must be square.
    """
    found = arrays(path, what, held=held, limit=limit, error=error)
    with reported(Path(path), what, error):
        return _matrix(found, square)


@contextmanager
def reported(path: Path, what: str, error: Raised) -> Iterator[None]:
    """Turn any error of a parser into one line."""
    try:
        yield
    except D3GDError:
        raise
    except OSError as cause:
        raise error(f"{path} cannot be read ({cause.strerror or cause}); check the path, or give {what}") from cause
    except Exception as cause:  # zlib, zipfile, csv, tokenize, NumPy: each has its own errors
        reason = shortened(one_line(str(cause)), _REASON) or type(cause).__name__
        raise error(f"{path} cannot be read ({reason}); give {what}") from cause


@contextmanager
def _opened(path: Path, what: str, limit: int, error: Raised) -> Iterator[tuple[IO[bytes], int]]:
    """Open a regular file and yield it with its size."""
    with reported(path, what, error):
        _require_regular(path.stat().st_mode)  # opening a device may have side effects
        with os.fdopen(os.open(path, _FLAGS), "rb") as file:
            status = os.fstat(file.fileno())
            _require_regular(status.st_mode)
            if status.st_size > limit:
                raise ValueError(f"{status.st_size:,} bytes, more than the {limit:,} that are read")
            yield file, status.st_size


def _require_regular(mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise ValueError("it is a directory")
    if not stat.S_ISREG(mode):
        raise ValueError("it is a pipe or a device, not a regular file")


def _unpacked(file: IO[bytes], size: int) -> dict[str, Array]:
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        names = {member.filename for member in members}
        if len(names) < len(members) or len(members) > _MEMBERS:
            raise ValueError(f"it holds {len(members)} members with {len(names)} names")
        total = sum(member.file_size for member in members)
        if total > max(size, ARRAYS):
            raise ValueError(f"its arrays take {total:,} bytes, more than the {ARRAYS:,} that are unpacked")
        return {member.filename.removesuffix(".npy"): _array(archive, member) for member in members}


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Array:
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{member.filename} has a compression that NumPy does not use")
    with archive.open(member) as file:
        shape, fortran, dtype = _header(file)
        count = math.prod(shape)
        there = member.file_size - file.tell()
        if dtype.kind not in _KINDS or min(shape, default=0) < 0 or count * dtype.itemsize != there or count > there:
            raise ValueError(f"{member.filename} says {dtype} of shape {shape} but holds {there:,} bytes")
        values = bytearray()  # grows with the actual content, regardless of the claimed size
        while chunk := file.read(_CHUNK):
            values += chunk
    if len(values) != there:
        raise ValueError(f"{member.filename} ends after {len(values):,} of {there:,} bytes")
    array = np.frombuffer(values, dtype).reshape(shape, order="F" if fortran else "C")
    return array.astype(dtype.newbyteorder("="), copy=False)


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"an NPY header of version {version}")
    return readers[version](file)


def _matrix(found: dict[str, Array], square: bool) -> CSR:
    missing = {"data", "indices", "indptr", "shape", "format"} - set(found)
    if missing:
        raise ValueError(f"it has no array {min(missing)!r}")
    kind = found["format"].item() if found["format"].size == 1 else b""
    if kind not in (b"csr", "csr"):
        raise ValueError(f"it holds the format {kind!r}, not a CSR matrix")
    data, indices, indptr, shape = (found[name] for name in ("data", "indices", "indptr", "shape"))
    whole = all(array.dtype.kind in "iu" for array in (indices, indptr, shape))
    flat = all(array.ndim == 1 for array in (data, indices, indptr, shape))
    if not (whole and flat and data.dtype.kind in "fiub" and shape.size == 2):
        raise ValueError("its arrays are not those of a CSR matrix")
    rows, columns = shape.tolist()
    if rows != indptr.size - 1 or (square and rows != columns):
        needed = "it must be square" if square else "they must be equal"
        raise ValueError(f"its shape is ({rows}, {columns}) and it has {indptr.size - 1} rows; {needed}")
    if indptr[0] != 0 or indptr[-1] != indices.size or data.size != indices.size:
        raise ValueError("indptr does not run from 0 to the number of entries")
    if np.any(indptr[1:] < indptr[:-1]):
        raise ValueError("indptr decreases")
    if indices.size and not 0 <= indices.min() <= indices.max() < columns:
        raise ValueError(f"its indices are not all in 0 to {columns - 1}")
    return csr_array((data.astype(np.float64, copy=False), indices, indptr), shape=(rows, columns))
