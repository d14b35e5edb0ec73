"""Files in standard formats (JSON, CSV, NPZ), written atomically."""

import contextlib
import csv
import errno
import io
import json
import os
import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from d3gd import reading
from d3gd.arrays import Array
from d3gd.digest import jsonable
from d3gd.errors import RecordError

WANTED = "the file as d3gd wrote it"  # in messages about one that cannot be read
_LARGEST = 2**40  # limit on bytes of a run's arrays; uncompressed, so memory is bounded by the file size
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_LEFTOVER = re.compile(r"\..+\.\d+\.tmp")
_NUMBERED = re.compile(r"(.+)\[(\d+)\]")  # the column of a metric that has one value per agent


@contextlib.contextmanager
def replacing(path: Path, *, private: bool = False) -> Iterator[BinaryIO]:
    """Open a temporary file and rename it to ``path`` when complete: readers see the old or the new one.

    Args:
        path: The file.
        private: Whether only its owner may read it.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        mode = 0o600 if private else 0o666
        with open(beside, "wb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        todo = "choose another folder with --out"
        if error.errno in _FULL:
            todo = "free some space and start again; --resume continues a run from its last checkpoint"
        raise RecordError(f"{path} cannot be written ({error.strerror}); {todo}") from error
    finally:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)


def remove_leftovers(folder: Path) -> None:
    """Remove temporary files that :func:`replacing` leaves when its process is killed."""
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if _LEFTOVER.fullmatch(path.name):
                path.unlink()


def remove(path: Path) -> None:
    """Remove a file if it exists."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise RecordError(f"{path} cannot be replaced ({error.strerror}); choose another folder with --out") from error


def remove_folder(folder: Path) -> None:
    """Remove a folder with all that it holds, as far as possible.

    A signal may interrupt it anywhere. ``shutil.rmtree`` may then close a descriptor twice, and raise an OSError that
    hides the signal.
    """
    with contextlib.suppress(OSError):
        for path in [folder / name for name in os.listdir(folder)]:  # noqa: PTH208 - no iterator to leave open
            if path.is_dir() and not path.is_symlink():
                remove_folder(path)
            else:
                path.unlink(missing_ok=True)
        folder.rmdir()


def sync(folder: Path) -> None:
    """Flush a folder's entries to disk, if the system supports it."""
    with contextlib.suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file completely or not at all."""
    with replacing(path) as file:
        file.write(content)


def make_folder(path: Path, *, parents: bool = True) -> Path:
    """Create a folder, optionally with its parents, or raise an error."""
    try:
        path.mkdir(parents=parents, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise RecordError(f"folder {path} cannot be created ({reason}); choose another with --out") from error
    return path


def visible(folder: Path) -> list[str]:
    """Return the names in a folder, except hidden ones; none if it is missing or not a folder."""
    try:
        return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    except (OSError, ValueError):
        return []  # creating the folder raises the error


@contextlib.contextmanager
def parsing(path: Path) -> Iterator[None]:
    """Report any error in a file's content in one line."""
    try:
        yield
    except RecordError:
        raise
    except Exception as error:  # parsers of damaged bytes raise all kinds of errors
        reason = str(error) or type(error).__name__
        raise RecordError(f"{path} cannot be read ({reason}); is this the folder of a d3gd run?") from error


def to_json(content: Mapping[str, Any]) -> bytes:
    """Return readable JSON; NumPy's numbers become JSON's."""
    return (json.dumps(jsonable(content), indent=2, allow_nan=True) + "\n").encode()


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write readable JSON."""
    write_atomically(path, to_json(content))


def read_json(path: Path, held: bytes | None = None) -> dict[str, Any]:
    """Read what :func:`write_json` wrote, from its bytes if given."""
    held = reading.content(path, WANTED, limit=reading.ARRAYS) if held is None else held
    with parsing(path):
        content = json.loads(held)
        if not isinstance(content, dict):
            raise ValueError(f"it holds a {type(content).__name__}, not an object")
        return content


def to_npz(arrays: Mapping[str, Array]) -> bytes:
    """Return named arrays as NPZ, not compressed, so that the file's size bounds the memory for reading."""
    buffer = io.BytesIO()
    # Signals interrupt the main thread only. An archive that is left half open raises an error instead of Ctrl-C.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(np.savez, buffer, allow_pickle=False, **dict(arrays)).result()
    return buffer.getvalue()


def write_arrays(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write named arrays as NPZ."""
    write_atomically(path, to_npz(arrays))


def read_arrays(path: Path, held: bytes | None = None) -> dict[str, Array]:
    """Read named arrays, from the file's bytes if given; never unpickles."""
    return reading.arrays(path, WANTED, held=held, limit=_LARGEST)


def columns(metrics: Mapping[str, Array], agents: Sequence[Any] | None = None) -> dict[str, Array]:
    """Return one column per metric; for metrics per agent, one per agent: ``name[0]``, ``name[1]``, ...

    Args:
        metrics: One array per metric, its first axis the records.
        agents: The names of the agents instead of 0, 1, ...
    """
    found: dict[str, Array] = {}
    for name, values in metrics.items():
        if name == "iteration" or _NUMBERED.fullmatch(name):
            raise RecordError(f"a metric cannot be called {name!r}, as another column of the table is; rename it")
        if values.ndim not in (1, 2) or values.dtype.kind not in "biuf":
            raise RecordError(
                f"metric {name!r} is {values.dtype} of shape {values.shape[1:]} at each record; a metric is one real "
                "number, or one per agent"
            )
        if values.ndim == 1:
            found[name] = values
        else:
            width = values.shape[1]
            names = agents if agents is not None and len(agents) == width else range(width)
            found |= {f"{name}[{agent}]": values[:, i] for i, agent in enumerate(names)}
    return found


def to_csv(iterations: Array, metrics: Mapping[str, Array]) -> bytes:
    """Return one CSV row per record, in full precision; Booleans become 1 and 0."""
    table = {"iteration": iterations, **columns(metrics)}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table)
    numbers = [(column + 0 if column.dtype.kind == "b" else column).tolist() for column in table.values()]
    writer.writerows(zip(*numbers, strict=True))
    return text.getvalue().encode()


def write_metrics(path: Path, iterations: Array, metrics: Mapping[str, Array]) -> None:
    """Write what :func:`to_csv` returns."""
    write_atomically(path, to_csv(iterations, metrics))


def read_metrics(path: Path, held: bytes | None = None) -> tuple[Array, dict[str, Array]]:
    """Read what :func:`write_metrics` wrote, from its bytes if given."""
    held = reading.content(path, WANTED, limit=reading.ARRAYS) if held is None else held
    with parsing(path):
        header, *rows = csv.reader(io.StringIO(held.decode(), newline=""))
        if not rows or header[:1] != ["iteration"] or len(set(header)) < len(header):
            raise ValueError("it has no records under a line of names")
        table = [np.array([_number(value) for value in column]) for column in zip(*rows, strict=True)]
        if len(table) != len(header) or not all(column.dtype.kind in "iuf" for column in table):
            raise ValueError("its rows do not match its first line")
    found: dict[str, list[Array]] = {}
    numbered = [_NUMBERED.fullmatch(name) for name in header]
    for name, match, column in list(zip(header, numbered, table, strict=True))[1:]:
        found.setdefault(name if match is None else match[1], []).append(column)
    return table[0], {name: held[0] if name in header else np.column_stack(held) for name, held in found.items()}


def _number(text: str) -> int | float:
    return int(text) if text.lstrip("-").isdecimal() else float(text)


def versions() -> dict[str, str]:
    """Return the versions and the machine, on which results may depend."""
    import scipy

    from d3gd import __version__

    return {
        "d3gd": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "machine": platform.machine(),
    }
