"""Archives that other programs would not write: any compression, lies in headers, garbage, and bombs."""

import io
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz.case import Case
from tests.fuzz.families.files.damage import ESCAPE

_BOMB = 3 << 30  # bytes that a few of an archive unpack to
HOME: list[Path] = []


def save(case: Case, arrays: dict[str, Any], path: Path) -> None:
    """Write arrays, pickled objects and all, with any compression that archives know."""
    method = case.rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.asanyarray(array), allow_pickle=True)
            archive.writestr(f"{name}.npy", buffer.getvalue())


def lying_header(case: Case, path: Path) -> str:
    """An array's header that speaks of more, or of something else, than follows."""
    size = case.rng.choice(
        ["(10**9,)", "(1000000000,)", f"({2**62},)", "(-5,)", "(24, 2", "(24.5,)", "9" * 5000, "((24,),)"]
    )
    kind = case.rng.choice(
        ["'<f8'", "'|O'", "'<U1000000000'", "[('a', '<f8')]", "'" + ESCAPE + "'", "'x'", "__import__('os')"]
    )
    text = f"{{'descr': {kind}, 'fortran_order': False, 'shape': {size}, }}".encode()
    data = b"\x93NUMPY\x02\x00" + struct.pack("<I", len(text)) + text + bytes(64)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("X.npy", data)
        archive.writestr("label.npy", data)
    return f"a header of {kind[:20]!r} {size[:20]}"


def bomb(case: Case, path: Path) -> str:
    """Gigabytes of zeros, compressed to megabytes."""
    bomb = HOME[0] / "bomb.npz"
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


def garbage_stream(case: Case, path: Path) -> str:
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
