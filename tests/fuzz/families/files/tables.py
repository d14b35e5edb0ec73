"""Tables of samples, as text and as archives of arrays, compared with what another reader finds."""

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from d3gd.data import read_table
from tests.fuzz import controls
from tests.fuzz.case import REFUSED, RIGHT, Case, silent
from tests.fuzz.families.files import archives
from tests.fuzz.families.files.archives import save
from tests.fuzz.families.files.damage import ESCAPE, damaged, plain_number, put


def table(case: Case) -> str:
    """A table of samples as text."""
    rng = case.rng
    if rng.random() < 0.4:
        data, told = damaged(case, controls.TABLE.encode())
    else:
        lines = controls.TABLE.splitlines()
        odd = [
            "-1", "0.5", "nan", "inf", "1e300", "1e18", str(10**9), str(2**62), str(2**63), "9" * 5000, "", "x", "1_0",
            "0x1", " 1 ", "٣", ESCAPE, "\x00", "a" * 200_000, "1e400", "-0", "1,2", '"', "\x85", "True", "1.0000000001",
        ]  # fmt: skip
        value = rng.choice(odd)
        row, column = rng.randrange(len(lines)), rng.randrange(3)
        data = (put(lines, row, column, value) + "\n").encode()
        told = f"line {row + 1}, column {column + 1} is {value[:30]!r}"
    case.tell(f"table: {told}")
    Path("table.csv").write_bytes(data)
    return _read(case, "table.csv", lambda: _trusted_table(data))


def _read(case: Case, name: str, trusted: Callable[[], Any]) -> str:
    """Read a table, compare it with what another reader finds, and make a problem of it."""
    verdict, found = case.attempt(read_table, name, label="label")
    if verdict == RIGHT:
        wanted = trusted()
        if wanted is None:
            silent(f"accepted, with labels {sorted(set(found[1].tolist()))[:5]}")
        if not (np.array_equal(found[0], wanted[0]) and np.array_equal(found[1], wanted[1])):
            silent("read as another table")
    content = controls.experiment("files")
    content["problem"]["file"] = name
    content["weights"] = {"kind": "metropolis"}
    content["iterations"] = 2
    Path("links.csv").write_text(controls.LINKS)
    Path("experiment.toml").write_text(controls.toml(content))
    ran = case.judge(case.d3gd("run", "experiment.toml", "--out", "run"))
    if verdict == REFUSED and ran == RIGHT:
        silent("read_table refuses it, and a run does not")
    return ran


def _trusted_table(data: bytes) -> Any:
    try:
        header, *rows = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""))
        header = [name.strip() for name in header]
        if header.count("label") != 1 or len(set(header)) != len(header):
            return None
        numbers = np.array([[plain_number(cell) for cell in row] for row in rows if row])
        place = header.index("label")
        labels = numbers[:, place]
        if not np.isfinite(numbers).all() or (labels < 0).any() or (labels != np.floor(labels)).any():
            return None
        return np.delete(numbers, place, axis=1), labels.astype(np.int64)
    except (UnicodeDecodeError, csv.Error, ValueError, IndexError):
        return None


def archive(case: Case) -> str:
    """A table as an archive of arrays: of other types, damaged, or one that unpacks without end."""
    rng = case.rng
    draw = np.random.default_rng(rng.randrange(2**32))
    X, y = draw.standard_normal((24, 2)), np.arange(24) % 3
    arrays: dict[str, Any] = {"label": y, "X": X}
    way = rng.choice(
        ["damage", "damage", "damage", "labels", "features", "members", "header", "bomb", "stream", "name"]
    )
    path = Path("table.npz")
    readable = False  # by whoever trusts its author
    if way == "labels":
        odd = [
            y.astype(np.uint64) + np.uint64(2**63), y - 1, y + 10**9, y + 2**62, y.astype(float) + 0.5, y.astype("U1"),
            np.where(y == 0, np.nan, y), np.array([None] * 24), y.astype(complex), y[:, None], y[:5], y.astype(bool),
            y.astype(float) * 1e300, y.astype("M8[s]"), np.array(1), y.astype(np.float16), y + 0.0,
        ]  # fmt: skip
        arrays["label"] = rng.choice(odd)
        told, readable = f"labels of {arrays['label'].dtype}, from {arrays['label'].ravel()[:1]}", True
    elif way == "features":
        odd = [
            X.astype(complex), X.astype("U9"), X.astype(object), X[:, 0], X[:, :, None], X[:0], X[:, :0], X[:5],
            X.astype(np.float16), X.astype(int), X.astype(bool), np.asfortranarray(X), X.astype(">f8"), X * 1e300, X.T,
            X.astype(np.longdouble), np.array([{}] * 24), X.astype("V8"), X * np.inf,
        ]  # fmt: skip
        arrays["X"] = rng.choice(odd)
        told, readable = f"features of {arrays['X'].dtype} and shape {arrays['X'].shape}", True
    elif way == "members":
        arrays = rng.choice(
            [{}, {"label": y}, {"X": X}, {**arrays, "Z": X}, {"label": y, ESCAPE: X}, {"label": y, "../X": X}]
        )
        told, readable = f"arrays {[name[:9] for name in arrays]}", True
    if way in ("labels", "features", "members"):
        save(case, arrays, path)
    elif way == "damage":
        save(case, arrays, path)
        data, told = damaged(case, path.read_bytes())
        path.write_bytes(data)
        readable = True
    elif way == "header":
        told = archives.lying_header(case, path)
    elif way == "bomb":
        told = archives.bomb(case, path)
    elif way == "stream":
        told = archives.garbage_stream(case, path)
    else:
        told = "no archive at all"
        path.write_bytes(
            rng.choice([b"PK\x05\x06" + bytes(18), b"\x93NUMPY", b"\x80\x04N.", rng.randbytes(99), b"PK\x03\x04"])
        )
    case.tell(f"archive: {told}")
    return _read(case, "table.npz", lambda: _trusted_archive(path) if readable else None)


def _trusted_archive(path: Path) -> Any:
    """The table in an archive, read by NumPy with the checks left to us; None if it is none."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            names = [name for name in archive.files if name != "label"]
            if len(names) != 1 or "label" not in archive.files or len(archive.files) != 2:
                return None
            X, y = archive[names[0]], archive["label"]
    except Exception:
        return None
    if X.ndim != 2 or X.size == 0 or y.shape != X.shape[:1] or X.dtype.kind not in "fiub" or y.dtype.kind not in "fiu":
        return None
    labels = [float(value) if y.dtype.kind == "f" else int(value) for value in y.tolist()]
    if not np.isfinite(X).all() or any(not (0 <= label < 2**63 and label == int(label)) for label in labels):
        return None
    return X.astype(np.float64), np.array([int(label) for label in labels])
