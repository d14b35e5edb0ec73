"""Files that an experiment names: links, weights and tables, damaged, crafted, endless, or no files at all."""

import csv
import io
import json
import math
import os
import re
import socket
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from d3gd.data import read_table
from d3gd.result import Result
from tests.fuzz import controls
from tests.fuzz.case import REFUSED, RIGHT, Case, silent

SECONDS = 20.0

_SPARSE = 20 << 30  # bytes of a file that holds nothing
_BOMB = 3 << 30  # bytes that a few of an archive unpack to
_NOBODY = 65534
_ESCAPE = "\x1b[31m\x1b]0;title\x07"


_HOME: list[Path] = []


def prepare(home: Path) -> None:
    controls.result("files")
    home.mkdir()
    _HOME.append(home)


def case(case: Case) -> str:
    return case.rng.choices([_special, _links, _weights, _dense, _table, _archive], [8, 25, 35, 10, 20, 15])[0](case)


# What is no regular file


def _special(case: Case) -> str:
    """Something else, or nothing, where a file is expected."""
    rng = case.rng
    settings = controls.write("files", case.folder)
    name = rng.choice(["links.csv", "weights.npz", "table.csv", "experiment.toml"])
    path = Path(name)
    good = path.read_bytes()
    path.unlink()
    loop = Path("loop")
    (case.folder / "kept").write_bytes(good)
    made: dict[str, Callable[[], Any]] = {
        "missing": lambda: None,
        "a folder": path.mkdir,
        "a pipe": lambda: os.mkfifo(path),
        "a socket": lambda: socket.socket(socket.AF_UNIX).bind(name),
        "a loop": lambda: (loop.symlink_to(path), path.symlink_to(loop)),
        "a broken link": lambda: path.symlink_to("nowhere"),
        "a link": lambda: path.symlink_to("kept"),
        "/dev/zero": lambda: path.symlink_to("/dev/zero"),
        "/dev/full": lambda: path.symlink_to("/dev/full"),
        "/dev/urandom": lambda: path.symlink_to("/dev/urandom"),
        "/dev/null": lambda: path.symlink_to("/dev/null"),
        "/proc/self/mem": lambda: path.symlink_to("/proc/self/mem"),
        "/dev/stdin": lambda: path.symlink_to("/dev/stdin"),
        "empty": path.touch,
        "20 GB of nothing": lambda: (path.touch(), os.truncate(path, _SPARSE)),
        "unreadable": lambda: (path.write_bytes(good), path.chmod(0)),
        "another's": lambda: (path.write_bytes(good), path.chmod(0o600)),
    }
    kind = rng.choice(list(made))
    case.tell(f"{name} is {kind}")
    made[kind]()
    if kind in ("unreadable", "another's") and os.geteuid() == 0:
        case.folder.chmod(0o777)  # it may write here, and only the one file is closed to it
        parents = [folder for folder in case.folder.parents if folder.stat().st_mode & 0o5 != 0o5]
        for folder in parents[:1]:
            folder.chmod(0o755)
        outcome = case.start("run", settings, "--out", "run", before=lambda: os.setuid(_NOBODY)).wait()
    else:
        outcome = case.d3gd("run", settings, "--out", "run")
    verdict = case.judge(outcome)
    if kind == "a link" and (verdict != RIGHT or not controls.same(Result.load("run"), controls.result("files"))):
        silent(f"a link to a good file is not taken like the file: {outcome.err}")
    if kind != "a link" and verdict == RIGHT:
        silent("accepted")
    return verdict


# Links


def _links(case: Case) -> str:
    """A table of links: as text with one thing wrong, or damaged anywhere."""
    rng = case.rng
    if rng.random() < 0.4:
        data, told = _damaged(case, rng.choice([controls.LINKS, controls.NAMED_LINKS]).encode())
    else:
        told, text = _odd_links(case)
        data = text.encode("utf-8", "surrogatepass")
    case.tell(f"links: {told}")
    Path("links.csv").write_bytes(data)
    verdict = case.judge(outcome := case.d3gd("graph", "--edges", "links.csv", "--json"))
    if verdict == REFUSED:
        return REFUSED
    facts, wanted = json.loads(outcome.out), _trusted_links(data)
    if wanted is None:
        silent(f"accepted, with {facts['n']} agents and {facts['links']} links")
    if wanted != (facts["n"], facts["links"]):
        silent(f"{facts['n']} agents and {facts['links']} links; it should be {wanted}")
    return RIGHT


def _odd_links(case: Case) -> tuple[str, str]:
    rng = case.rng
    odd = [
        "-1", "1.0", "1e0", " 3 ", "٣", "²", "0x1", "+1", "", "nan", "1_0", "007", str(10**9), str(2**31), str(2**62),
        str(2**63), str(2**64), "9" * 30, "9" * 5000, "a" * 200_000, "a,b", '"', "'", "\x00", _ESCAPE, "é", "\u202e",
        "[red]x[/red]", "\ufeff", "0\t", "\n", "{0}", "%s", "=1+1", "\x85", "\u2028", "None", "true",
    ]  # fmt: skip
    value = rng.choice(odd)
    value = f'"{value}"' if rng.random() < 0.3 else value
    lines = rng.choice([controls.LINKS, controls.NAMED_LINKS]).splitlines()
    ways: dict[str, Callable[[], str]] = {
        "an end of a link": lambda: _put(lines, rng.randrange(1, len(lines)), rng.randrange(2), value),
        "an end of every link": lambda: "\n".join([lines[0], *(f"{value},{line.split(',')[1]}" for line in lines[1:])]),
        "the header": lambda: _put(lines, 0, rng.randrange(2), value),
        "a third column": lambda: "\n".join(f"{line},{value}" for line in lines),
        "a line": lambda: "\n".join([*lines, value]),
        "semicolons": lambda: "\n".join(lines).replace(",", ";"),
        "CRLF": lambda: "\r\n".join(lines),
        "only a header": lambda: lines[0],
        "columns exchanged": lambda: "\n".join(",".join(reversed(line.split(","))) for line in lines),
        "a column twice": lambda: "\n".join([f"{lines[0]},source", *(f"{line},{value}" for line in lines[1:])]),
    }
    way = rng.choices(list(ways), [8, 2, 2, 1, 2, 1, 1, 1, 1, 1])[0]
    return f"{value[:30]!r} as {way}", ways[way]() + "\n"


def _put(lines: list[str], row: int, column: int, value: str) -> str:
    cells = lines[row].split(",")
    cells[column] = value
    return "\n".join([*lines[:row], ",".join(cells), *lines[row + 1 :]])


def _trusted_links(data: bytes) -> tuple[int, int] | None:
    """The numbers of agents and links that a table of links stands for, or None if it stands for nothing."""
    try:
        rows = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), skipinitialspace=True))
    except (UnicodeDecodeError, csv.Error):
        return None
    rows = [row for row in rows if row]
    if not rows or rows[0].count("source") < 1 or rows[0].count("target") < 1:
        return None
    width = [len(rows[0]) - 1 - rows[0][::-1].index(name) for name in ("source", "target")]
    try:
        pairs = [tuple(row[place].strip() for place in width) for row in rows[1:]]
    except IndexError:
        return None
    if not pairs or any(not name for pair in pairs for name in pair):
        return None
    names = {name for pair in pairs for name in pair}
    if all(name.isdecimal() for name in names):
        numbers = {(int(a), int(b)) for a, b in pairs} if max(map(len, names)) < 10 else set()
        return (1 + max(map(max, numbers)), sum(a != b for a, b in numbers)) if numbers else None
    return len(names), len({pair for pair in pairs if pair[0] != pair[1]})


# Weights


def _weights(case: Case) -> str:
    """A CSR archive whose arrays are not what they should be."""
    rng = case.rng
    matrix = controls.own_weights()
    arrays: dict[str, Any] = {
        "indices": np.array(matrix.indices),
        "indptr": np.array(matrix.indptr),
        "format": np.array(b"csr"),
        "shape": np.array(matrix.shape),
        "data": np.array(matrix.data),
    }
    told = [_spoil(case, arrays) for _ in range(rng.choice([1, 1, 1, 2]))]
    case.tell(f"weights: {', '.join(told)}")
    _save(case, arrays, Path("weights.npz"))
    return _used(case, _trusted_weights(arrays))


def _spoil(case: Case, arrays: dict[str, Any]) -> str:
    rng = case.rng
    name = rng.choice([name for name in ("indices", "indptr", "data", "shape", "format") if name in arrays] or [""])
    if not name:
        return "nothing left"
    array = arrays[name]
    if name == "format":
        odd = [b"csc", b"coo", b"dia", b"bsr", b"lil", b"", b"\x1b[31m", "csr", 3, None, b"csr\x00", [b"csr"], "é", b"\xff"]
        value = rng.choice(odd)
        arrays[name] = np.array(value, dtype=object if value is None else None)
        return f"format {value!r}"
    if name == "shape":
        big = 2 ** rng.choice([20, 31, 32, 40, 62])
        odd = [(4,), (), (4, 4, 4), (0, 0), (-4, -4), (4, big), (big, 4), (big, big), (4.0, 4.0), (4, 3), (3, 4), (5, 5)]
        value = rng.choice([*odd, (math.nan, 4)])
        arrays[name] = np.array(value)
        return f"shape {value}"
    way = rng.choice(["value", "value", "value", "dtype", "length", "missing", "shape", "order", "object"])
    if way == "value":
        place = rng.randrange(array.size)
        whole = array.dtype.kind in "iu"
        numbers = [-1, -(2**31), 4, 5, 99, 10**6, 2**31 - 1, 0, 1] if whole else [
            math.nan, math.inf, -math.inf, -0.5, 0.0, 1e308, 5e-324, 2.0, 1 / 3 + 1e-8, 1 / 3 + 1e-12
        ]  # fmt: skip
        array = array.copy().ravel()
        array[place] = value = rng.choice(numbers)
        arrays[name] = array
        return f"{name}[{place}] = {value}"
    if way == "dtype":
        kind = rng.choice(["f4", "f8", "c16", "U5", "S5", "?", "u1", "i1", "u8", ">i8", ">f8", "M8[s]", "V8", "f2", "i4"])
        try:
            arrays[name] = array.astype(kind)
        except (TypeError, ValueError):
            arrays[name] = np.zeros(array.size, dtype=kind)
        return f"{name} of type {kind}"
    if way == "length":
        size = rng.choice([0, 1, array.size - 1, array.size + 1, 10**5])
        arrays[name] = np.resize(array, size) if array.size else array
        return f"{name} of length {size}"
    if way == "missing":
        del arrays[name]
        return f"no {name}"
    if way == "shape":
        arrays[name] = array.reshape(rng.choice([(1, -1), (-1, 1), (1, 1, -1)]))
        return f"{name} of shape {arrays[name].shape}"
    if way == "order":
        shuffled = array.tolist()
        rng.shuffle(shuffled)
        arrays[name] = np.array(shuffled, dtype=array.dtype)
        return f"{name} shuffled"
    arrays[name] = np.array([*array.tolist()[:-1], {}], dtype=object)
    return f"{name} with an object"


def _save(case: Case, arrays: dict[str, Any], path: Path) -> None:
    """Write arrays, pickled objects and all, with any compression that archives know."""
    method = case.rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.asanyarray(array), allow_pickle=True)
            archive.writestr(f"{name}.npy", buffer.getvalue())


def _trusted_weights(arrays: dict[str, Any]) -> Any:
    """The dense matrix that the arrays of a CSR archive stand for, or None if they stand for none."""
    if set(arrays) != {"indices", "indptr", "format", "shape", "data"}:
        return None
    kinds = {"indices": "iu", "indptr": "iu", "data": "fiub", "shape": "iu"}
    if any(arrays[name].dtype.kind not in kind or arrays[name].ndim != 1 for name, kind in kinds.items()):
        return None
    if arrays["format"].ndim or arrays["format"].item() not in (b"csr", "csr"):
        return None
    if tuple(arrays["shape"].tolist()) != (4, 4):
        return None
    indptr, indices, data = (arrays[name].tolist() for name in ("indptr", "indices", "data"))
    ends = len(indptr) == 5 and indptr[0] == 0 and all(a <= b for a, b in zip(indptr, indptr[1:], strict=False))
    if not ends or indptr[-1] > min(len(indices), len(data)) or not all(0 <= j < 4 for j in indices[: indptr[-1]]):
        return None
    dense = np.zeros((4, 4))
    for row in range(4):
        for place in range(indptr[row], indptr[row + 1]):
            dense[row, indices[place]] += data[place]
    return dense


def _used(case: Case, trusted: Any) -> str:
    """Run with the weights in the file, and compare them with those that the result ends with."""
    content = controls.experiment("files")
    content |= {"iterations": 2, "algorithm": {"kind": "DiDGD", "step_size": 0.05}}
    content["weights"]["file"] = next(Path().glob("weights.*")).name
    weights = Path(content["weights"]["file"]).read_bytes()
    controls.write_inputs(case.folder)
    Path(content["weights"]["file"]).write_bytes(weights)
    Path("experiment.toml").write_text(controls.toml(content))
    verdict = case.judge(case.d3gd("run", "experiment.toml", "--out", "run"))
    if verdict == REFUSED:
        return REFUSED
    if trusted is None or not np.array_equal(Result.load("run").weights.toarray(), trusted):
        silent(f"accepted as {Result.load('run').weights.toarray().tolist()}")
    return RIGHT


def _dense(case: Case) -> str:
    """Weights as rows of numbers."""
    rng = case.rng
    matrix = controls.own_weights().toarray()
    rows = [[repr(value) for value in row] for row in matrix.tolist()]
    if rng.random() < 0.5:
        i, j = rng.randrange(4), rng.randrange(4)
        value = rng.choice(["nan", "inf", "-0.25", "1e400", "", "x", _ESCAPE, "0,5", "1_0", "٠", "9" * 5000, "\x00", "0x1", "1j"])
        rows[i][j] = value
        told, data = f"A[{i}, {j}] = {value[:30]!r}", "\n".join(map(",".join, rows)).encode()
    else:
        data, told = _damaged(case, "\n".join(map(",".join, rows)).encode())
    case.tell(f"dense weights: {told}")
    Path("weights.csv").write_bytes(data)
    return _used(case, _trusted_dense(data))


def _trusted_dense(data: bytes) -> Any:
    try:
        text = data.decode("utf-8-sig")
        rows = [[_plain_number(cell) for cell in line.split(",")] for line in re.split(r"\r\n|\r|\n", text) if line.strip()]
        return np.array(rows) if {len(row) for row in rows} == {len(rows)} else None
    except (UnicodeDecodeError, ValueError):
        return None


def _plain_number(text: str) -> float:
    """A number as other programs write it; Python's own ``float`` reads more than that."""
    if not re.fullmatch(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", text):
        raise ValueError(text)
    return float(text)


# Tables


def _table(case: Case) -> str:
    """A table of samples as text."""
    rng = case.rng
    if rng.random() < 0.4:
        data, told = _damaged(case, controls.TABLE.encode())
    else:
        lines = controls.TABLE.splitlines()
        odd = [
            "-1", "0.5", "nan", "inf", "1e300", "1e18", str(10**9), str(2**62), str(2**63), "9" * 5000, "", "x", "1_0",
            "0x1", " 1 ", "٣", _ESCAPE, "\x00", "a" * 200_000, "1e400", "-0", "1,2", '"', "\x85", "True", "1.0000000001",
        ]  # fmt: skip
        value = rng.choice(odd)
        row, column = rng.randrange(len(lines)), rng.randrange(3)
        data = (_put(lines, row, column, value) + "\n").encode()
        told = f"line {row + 1}, column {column + 1} is {value[:30]!r}"
    case.tell(f"table: {told}")
    Path("table.csv").write_bytes(data)
    return _table_read(case, "table.csv", lambda: _trusted_table(data))


def _table_read(case: Case, name: str, trusted: Callable[[], Any]) -> str:
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
        numbers = np.array([[_plain_number(cell) for cell in row] for row in rows if row])
        place = header.index("label")
        labels = numbers[:, place]
        if not np.isfinite(numbers).all() or (labels < 0).any() or (labels != np.floor(labels)).any():
            return None
        return np.delete(numbers, place, axis=1), labels.astype(np.int64)
    except (UnicodeDecodeError, csv.Error, ValueError, IndexError):
        return None


# Archives


def _archive(case: Case) -> str:
    """A table as an archive of arrays: of other types, damaged, or one that unpacks without end."""
    rng = case.rng
    draw = np.random.default_rng(rng.randrange(2**32))
    X, y = draw.standard_normal((24, 2)), np.arange(24) % 3
    arrays: dict[str, Any] = {"label": y, "X": X}
    way = rng.choice(["damage", "damage", "damage", "labels", "features", "members", "header", "bomb", "stream", "name"])
    path = Path("table.npz")
    readable = False  # by whoever trusts its author
    if way == "labels":
        odd = [
            y.astype(np.uint64) + np.uint64(2**63), y - 1, y + 10**9, y + 2**62, y.astype(float) + 0.5, y.astype("U1"),
            np.where(y == 0, np.nan, y), np.array([None] * 24), y.astype(complex), y[:, None], y[:5], y.astype(bool),
            y.astype(float) * 1e300, y.astype("M8[s]"), np.array(1), y.astype(np.float16), y.astype(np.float32), y + 0.0,
        ]  # fmt: skip
        arrays["label"] = rng.choice(odd)
        told, readable = f"labels of {arrays['label'].dtype}, from {arrays['label'].ravel()[:1]}", True
    elif way == "features":
        odd = [
            X.astype(complex), X.astype("U9"), X.astype(object), X[:, 0], X[:, :, None], X[:0], X[:, :0], X[:5], X * np.inf,
            X.astype(np.float16), X.astype(int), X.astype(bool), np.asfortranarray(X), X.astype(">f8"), X * 1e300, X.T,
            X.astype(np.longdouble), np.array([{}] * 24), X.astype("V8"),
        ]  # fmt: skip
        arrays["X"] = rng.choice(odd)
        told, readable = f"features of {arrays['X'].dtype} and shape {arrays['X'].shape}", True
    elif way == "members":
        arrays = rng.choice([{}, {"label": y}, {"X": X}, {**arrays, "Z": X}, {"label": y, _ESCAPE: X}, {"label": y, "../X": X}])
        told, readable = f"arrays {[name[:9] for name in arrays]}", True
    if way in ("labels", "features", "members"):
        _save(case, arrays, path)
    elif way == "damage":
        _save(case, arrays, path)
        data, told = _damaged(case, path.read_bytes())
        path.write_bytes(data)
        readable = True
    elif way == "header":
        told = _lying_header(case, path)
    elif way == "bomb":
        told = _bomb(case, path)
    elif way == "stream":
        told = _garbage_stream(case, path)
    else:
        told = "no archive at all"
        path.write_bytes(rng.choice([b"PK\x05\x06" + bytes(18), b"\x93NUMPY", b"\x80\x04N.", rng.randbytes(99), b"PK\x03\x04"]))
    case.tell(f"archive: {told}")
    return _table_read(case, "table.npz", lambda: _trusted_archive(path) if readable else None)


def _lying_header(case: Case, path: Path) -> str:
    """An array's header that speaks of more, or of something else, than follows."""
    size = case.rng.choice(["(10**9,)", "(1000000000,)", f"({2**62},)", "(-5,)", "(24, 2", "(24.5,)", "9" * 5000, "((24,),)"])
    kind = case.rng.choice(["'<f8'", "'|O'", "'<U1000000000'", "[('a', '<f8')]", "'" + _ESCAPE + "'", "'x'", "__import__('os')"])
    text = f"{{'descr': {kind}, 'fortran_order': False, 'shape': {size}, }}".encode()
    data = b"\x93NUMPY\x02\x00" + struct.pack("<I", len(text)) + text + bytes(64)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("X.npy", data)
        archive.writestr("label.npy", data)
    return f"a header of {kind[:20]!r} {size[:20]}"


def _bomb(case: Case, path: Path) -> str:
    """Gigabytes of zeros, compressed to megabytes."""
    bomb = _HOME[0] / "bomb.npz"
    path.hardlink_to(bomb if bomb.exists() else _made_bomb(bomb))
    return f"a bomb of {_BOMB >> 30} GiB in {path.stat().st_size >> 20} MiB"


def _made_bomb(path: Path) -> Path:
    """Write an archive by hand whose member X is all zeros: one compressed block of them, over and over."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (24, _BOMB // 192)})
    block = bytes(1 << 24)
    squeezed = zlib.compressobj(9, zlib.DEFLATED, -15)
    parts = [squeezed.compress(header.getvalue()) + squeezed.flush(zlib.Z_FULL_FLUSH)]
    parts += [squeezed.compress(block) + squeezed.flush(zlib.Z_FULL_FLUSH)] * (_BOMB // len(block))
    parts += [zlib.compressobj(9, zlib.DEFLATED, -15).flush()]
    check = zlib.crc32(header.getvalue())
    for _ in range(_BOMB // len(block)):
        check = zlib.crc32(block, check)
    with zipfile.ZipFile(path, "w") as archive:
        buffer = io.BytesIO()
        np.save(buffer, np.arange(24) % 3)
        archive.writestr("label.npy", buffer.getvalue())
        archive.writestr("X.npy", b"".join(parts))
        large = archive.getinfo("X.npy")
        large.compress_type, large.CRC, large.file_size = zipfile.ZIP_DEFLATED, check, len(header.getvalue()) + _BOMB
        fields = struct.pack("<HHHHLLL", 8, 0, 0, 33, check, large.compress_size, large.file_size)
        file = archive.fp
        assert file is not None
        end = file.tell()
        file.seek(large.header_offset + 8)
        file.write(fields[:2] + fields[4:])
        file.seek(end)
    return path


def _garbage_stream(case: Case, path: Path) -> str:
    """An archive whose directory is good and whose compressed bytes are not, whatever the method."""
    rng = case.rng
    method = rng.choice([zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, 1, 6, 9, 93, 95, 99])
    good = method if method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA) else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "w", good) as archive:
        for name, array in (("label", np.arange(24) % 3), ("X", np.ones((24, 2)))):
            buffer = io.BytesIO()
            np.save(buffer, array)
            archive.writestr(f"{name}.npy", buffer.getvalue())
    data = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        at = -1
        while (at := data.find(mark, at + 1)) >= 0:
            data[at + offset : at + offset + 2] = struct.pack("<H", method)
            if method == 1:
                data[at + offset - 2] |= 1  # encrypted
    begin = data.find(b"label.npy") + 9
    for _ in range(rng.randrange(1, 9)):
        data[begin + rng.randrange(20)] = rng.randrange(256)
    path.write_bytes(data)
    return f"garbage compressed by method {method}"


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


def _damaged(case: Case, data: bytes) -> tuple[bytes, str]:
    """Bytes with a few of them flipped, cut, repeated, exchanged or made up."""
    rng = case.rng
    place = rng.randrange(len(data))
    end = min(len(data), place + rng.randrange(1, 40))
    way = rng.choice(["flip", "flip", "flip", "flips", "cut", "drop", "repeat", "insert", "random"])
    changed = bytearray(data)
    if way in ("flip", "flips"):
        for at in [place] if way == "flip" else [rng.randrange(len(data)) for _ in range(rng.randrange(2, 30))]:
            changed[at] ^= 1 << rng.randrange(8)
    elif way == "cut":
        del changed[place:]
    elif way == "drop":
        del changed[place:end]
    elif way == "repeat":
        changed[place:place] = data[place:end] * rng.choice([1, 2, 50])
    elif way == "insert":
        changed[place:place] = rng.randbytes(rng.randrange(1, 9))
    else:
        changed = bytearray(rng.randbytes(rng.randrange(1, 400)))
    return bytes(changed), f"{way} at {place}"
