"""Weights: archives of CSR arrays and rows of numbers, compared with the dense matrix that they stand for."""

import itertools
import math
import re
from pathlib import Path
from typing import Any

import numpy as np

from d3gd.result import Result
from tests.fuzz import controls
from tests.fuzz.case import REFUSED, RIGHT, Case, silent
from tests.fuzz.families.files.archives import save
from tests.fuzz.families.files.damage import ESCAPE, damaged, plain_number


def sparse(case: Case) -> str:
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
    save(case, arrays, Path("weights.npz"))
    return _used(case, _trusted_weights(arrays))


def _spoil(case: Case, arrays: dict[str, Any]) -> str:
    rng = case.rng
    name = rng.choice([name for name in ("indices", "indptr", "data", "shape", "format") if name in arrays] or [""])
    if not name:
        return "nothing left"
    array = arrays[name]
    if name == "format":
        odd = [
            b"csc",
            b"coo",
            b"dia",
            b"bsr",
            b"lil",
            b"",
            b"\x1b[31m",
            "csr",
            3,
            None,
            b"csr\x00",
            [b"csr"],
            "é",
            b"\xff",
        ]
        value = rng.choice(odd)
        arrays[name] = np.array(value, dtype=object if value is None else None)
        return f"format {value!r}"
    if name == "shape":
        big = 2 ** rng.choice([20, 31, 32, 40, 62])
        odd = [
            (4,),
            (),
            (4, 4, 4),
            (0, 0),
            (-4, -4),
            (4, big),
            (big, 4),
            (big, big),
            (4.0, 4.0),
            (4, 3),
            (3, 4),
            (5, 5),
        ]
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
        kind = rng.choice(
            ["f4", "f8", "c16", "U5", "S5", "?", "u1", "i1", "u8", ">i8", ">f8", "M8[s]", "V8", "f2", "i4"]
        )
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


def _trusted_weights(arrays: dict[str, Any]) -> Any:
    """The dense matrix that the arrays of a CSR archive stand for, or None if they stand for none."""
    if set(arrays) != {"indices", "indptr", "format", "shape", "data"}:
        return None
    kinds = {"indices": "iu", "indptr": "iu", "data": "fiub", "shape": "iu"}
    if any(arrays[name].dtype.kind not in kind or arrays[name].ndim != 1 for name, kind in kinds.items()):
        return None
    if arrays["format"].size != 1 or arrays["format"].item() not in (b"csr", "csr"):
        return None
    if tuple(arrays["shape"].tolist()) != (4, 4):
        return None
    indptr, indices, data = (arrays[name].tolist() for name in ("indptr", "indices", "data"))
    ends = len(indptr) == 5 and indptr[0] == 0 and all(a <= b for a, b in itertools.pairwise(indptr))
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


def dense(case: Case) -> str:
    """Weights as rows of numbers."""
    rng = case.rng
    matrix = controls.own_weights().toarray()
    rows = [[repr(value) for value in row] for row in matrix.tolist()]
    if rng.random() < 0.5:
        i, j = rng.randrange(4), rng.randrange(4)
        value = rng.choice(
            ["nan", "inf", "-0.25", "1e400", "", "x", ESCAPE, "0,5", "1_0", "\u0660", "9" * 5000, "\x00", "0x1", "1j"]
        )
        rows[i][j] = value
        told, data = f"A[{i}, {j}] = {value[:30]!r}", "\n".join(map(",".join, rows)).encode()
    else:
        data, told = damaged(case, "\n".join(map(",".join, rows)).encode())
    case.tell(f"dense weights: {told}")
    Path("weights.csv").write_bytes(data)
    return _used(case, _trusted_dense(data))


def _trusted_dense(data: bytes) -> Any:
    try:
        text = data.decode("utf-8-sig")
        rows = [
            [plain_number(cell) for cell in line.split(",")] for line in re.split(r"\r\n|\r|\n", text) if line.strip()
        ]
        return np.array(rows) if {len(row) for row in rows} == {len(rows)} else None
    except (UnicodeDecodeError, ValueError):
        return None
