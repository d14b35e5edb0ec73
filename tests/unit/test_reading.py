"""Users' files: read completely or rejected in one line, at once and within bounds."""

import contextlib
import io
import os
import random
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array, save_npz

from d3gd import reading
from d3gd.errors import GraphError, RecordError

Reader = Callable[..., Any]
READERS = [reading.content, reading.text, reading.rows, reading.arrays, reading.csr]
GOOD = {
    "indptr": np.array([0, 2, 4]),
    "indices": np.array([0, 1, 0, 1]),
    "data": np.array([0.5, 0.5, 0.25, 0.75]),
    "shape": np.array([2, 2]),
    "format": np.array(b"csr"),
}


def refusal(read: Reader, path: Path | str, **settings: Any) -> str:
    """What a reader says of a file that it refuses, which is one line that names it."""
    with pytest.raises(RecordError) as refused:
        read(path, "something else", **settings)
    message = str(refused.value)
    assert str(path)[:400] in message  # a message loses its middle where a name is longer than any line
    assert "give something else" in message
    assert "\n" not in message
    return message


def npy(header: str, content: bytes, version: bytes = b"\x01\x00") -> bytes:
    """An NPY file with any header at all."""
    head = header.encode()
    return b"\x93NUMPY" + version + len(head).to_bytes(2, "little") + head + content


def archive(path: Path, members: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path


def refused_in_little_memory(path: Path) -> None:
    tracemalloc.start()
    try:
        refusal(reading.arrays, path)
        assert tracemalloc.get_traced_memory()[1] < 2**26
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
def test_only_regular_files_are_opened(read: Reader, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path / "link", Path("/dev/zero"), tmp_path, tmp_path / "absent"):
        refusal(read, path)
    for path in ("a\0b", "x" * 5000, str(tmp_path / "pipe" / "beyond")):
        refusal(read, path)


@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
def test_a_file_larger_than_its_bound_is_not_read(read: Reader, tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(2**40)  # takes no room on the disk
    assert f"{2**40:,}" in refusal(read, path)


def test_the_caller_says_what_is_raised(tmp_path: Path) -> None:
    with pytest.raises(GraphError, match="absent"):
        reading.content(tmp_path / "absent", "a file", error=GraphError)


def test_text_is_utf8_with_or_without_a_mark(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"\xef\xbb\xbfna\xc3\xafve")
    assert reading.text(path, "text") == "naïve"
    path.write_bytes(b"\xff\xfe\x00")
    refusal(reading.text, path)


def test_rows_know_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text('a,"b\nc"\n\n1, 2\n')
    assert reading.rows(path, "a table") == [(2, ["a", "b\nc"]), (4, ["1", "2"])]
    path.write_text("x" * 200_000)
    refusal(reading.rows, path)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_come_back_as_they_were_written(save: Any, tmp_path: Path) -> None:
    written: dict[str, Any] = {
        "floats": np.arange(6.0).reshape(2, 3),
        "columns": np.asfortranarray(np.arange(6).reshape(2, 3)),
        "none": np.zeros((0, 3)),
        "text": np.array("of two words"),
        "scalar": np.array(2.5),
        "swapped": np.arange(3, dtype=">i4"),
    }
    save(tmp_path / "arrays.npz", **written)
    read = reading.arrays(tmp_path / "arrays.npz", "arrays")
    held = reading.arrays("elsewhere", "arrays", held=(tmp_path / "arrays.npz").read_bytes())
    assert list(read) == list(held) == list(written)
    for name, values in written.items():
        assert np.array_equal(read[name], values)
        assert np.array_equal(held[name], values)
        assert read[name].dtype == values.dtype.newbyteorder("=")
        assert read[name].flags.writeable


@pytest.mark.parametrize(
    "member",
    [
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }\n", b"\0" * 16),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }\n", b"\0" * 16),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-2,), }\n", b"\0" * 16),
        npy("{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000000,), }\n", b""),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 10000000000000000000000), }\n", b""),
        npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n", b"cos\nsystem\n(S'true'\ntR."),
        npy("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (2,), }\n", b"\0" * 16),
        npy("{'descr': None, 'fortran_order': False, 'shape': (2,), }\n", b"\0" * 16),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': 2, }\n", b"\0" * 16),
        npy("{'descr': '<f8', 'fortran_order'", b""),
        npy("(" * 5000, b""),
        npy("-" * 9000 + "1", b""),
        npy("[]", b""),
        npy("", b"", version=b"\x09\x00"),
        b"\x93NUMPY",
        b"PK but no array",
        b"",
    ],
)
def test_an_array_must_fit_its_bytes(member: bytes, tmp_path: Path) -> None:
    path = archive(tmp_path / "crafted.npz", {"x.npy": member})
    refused_in_little_memory(path)


def test_a_small_archive_unpacks_to_no_more_than_its_bound(tmp_path: Path) -> None:
    count = 2 * 10**8
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({count},), }}\n"
    path = tmp_path / "bomb.npz"
    archive(path, {"x.npy": npy(header, b"")})
    spoiled = bytearray(path.read_bytes())
    sizes = len(npy(header, b"")).to_bytes(4, "little")
    at = spoiled.rfind(sizes)  # the uncompressed size in the archive's directory
    for claimed in (8 * count + len(npy(header, b"")), 2**29):
        spoiled[at : at + 4] = claimed.to_bytes(4, "little")
        path.write_bytes(spoiled)
        refused_in_little_memory(path)


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_damaged_archive_is_refused_or_read_right(compression: int, tmp_path: Path) -> None:
    buffer = io.BytesIO()
    np.save(buffer, np.arange(200.0))
    whole = archive(tmp_path / "whole.npz", {"x.npy": buffer.getvalue()}, compression).read_bytes()
    path = tmp_path / "spoiled.npz"
    draw = random.Random(0)
    for _ in range(300):
        spoiled = bytearray(whole)
        for _ in range(draw.choice([1, 1, 3])):
            spoiled[draw.randrange(len(spoiled))] ^= 1 << draw.randrange(8)
        path.write_bytes(spoiled[: draw.choice([len(whole), draw.randrange(len(whole))])])
        with contextlib.suppress(RecordError):
            read = reading.arrays(path, "arrays")
            assert all(np.array_equal(values, np.arange(200.0)) for values in read.values())


def test_two_members_of_one_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "twice.npz"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("x.npy", b"")
        with pytest.warns(UserWarning, match="Duplicate"):
            file.writestr("x.npy", b"")
    refusal(reading.arrays, path)


@pytest.mark.parametrize("odd", ["9" * 5000, "\x1b[31m"])
def test_what_is_repeated_of_a_file_is_short_and_printable(odd: str, tmp_path: Path) -> None:
    header = npy(f"{{'descr': '<f8', 'fortran_order': False, 'shape': {odd!r}}}\n", b"")
    said = refusal(reading.arrays, archive(tmp_path / "odd.npz", {f"{odd[:50]}.npy": header}))
    assert said.isprintable()
    assert len(said) < 1000


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "links.csv"
    path.write_text("source,target, source\n0,1,1\n")
    with pytest.raises(GraphError, match="'source'"):
        reading.table(path, "links", error=GraphError)


@pytest.mark.parametrize("text", ["1_0", "\N{FULLWIDTH DIGIT ONE}", "one", ""])
def test_only_what_other_programs_take_for_numbers_is_one(text: str) -> None:
    assert reading.number(" -1.5e3 ") == -1500
    with pytest.raises(ValueError, match="could not convert"):
        reading.number(text)


def test_a_sparse_matrix_comes_back_as_it_was_written(tmp_path: Path) -> None:
    dense = np.array([[0.5, 0.5, 0], [0, 1, 0], [0.25, 0, 0.75]])
    save_npz(tmp_path / "matrix.npz", csr_array(dense))
    assert np.array_equal(reading.csr(tmp_path / "matrix.npz", "weights").toarray(), dense)


@pytest.mark.parametrize(
    "changes",
    [
        {"indptr": np.array([0, 2, 5])},
        {"indptr": np.array([0, 2, 10**9])},
        {"indptr": np.array([1, 2, 4])},
        {"indptr": np.array([0, -3, 4])},
        {"indptr": np.array([0, 9, 4])},
        {"indptr": np.array([0, 2**63 + 1, 4], dtype=np.uint64)},
        {"indptr": np.array([0, 4])},
        {"indptr": np.array([], dtype=np.int64)},
        {"indptr": np.array([0.0, 2.0, 4.0])},
        {"indptr": np.array([[0, 2, 4]])},
        {"indices": np.array([0, 1, 0, 2])},
        {"indices": np.array([0, -1, 0, 1])},
        {"indices": np.array([0, 1, 0, 2**63], dtype=np.uint64)},
        {"indices": np.array([0, 1])},
        {"data": np.array([1.0])},
        {"data": np.array(["a", "b", "c", "d"])},
        {"shape": np.array([2, 2**62])},
        {"shape": np.array([2**62, 2**62])},
        {"shape": np.array([-2, -2])},
        {"shape": np.array([2])},
        {"shape": np.array([2.0, 2.0])},
        {"format": np.array(b"dia")},
        {"format": np.array([b"csr", b"csr"])},
        {"format": None},
        {"data": None},
    ],
)
def test_a_sparse_matrix_out_of_its_bounds_is_refused(changes: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "matrix.npz"
    np.savez(path, **{name: values for name, values in {**GOOD, **changes}.items() if values is not None})
    refusal(reading.csr, path)


def test_no_sparse_matrix_that_is_read_can_reach_beyond_its_arrays(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    accepted = 0
    for _ in range(300):
        changed = {name: values.copy() for name, values in GOOD.items()}
        for name in draw.choice(["indptr", "indices"], size=draw.integers(0, 3)):
            changed[str(name)][draw.integers(changed[str(name)].size)] = draw.choice([-1, 0, 1, 2, 3, 4, 10**6])
        np.savez(tmp_path / "matrix.npz", **changed)
        try:
            matrix = reading.csr(tmp_path / "matrix.npz", "weights")
        except RecordError:
            continue
        matrix.check_format(full_check=True)
        assert matrix.toarray().sum() == pytest.approx(2)
        accepted += 1
    assert accepted
