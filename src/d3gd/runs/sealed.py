"""Records with digests of themselves and of other files, so that damage is always detected.

A record is a JSON file with facts, its ``format``, the size and SHA-256 of the ``files`` that belong to it, and the
``sha256`` of the rest of itself.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from d3gd import reading
from d3gd.digest import jsonable
from d3gd.errors import RecordError
from d3gd.runs import files

FORMAT = 2


class OtherFormatError(RecordError):
    """A record written by another version of d3gd."""


def write(record: Path, facts: Mapping[str, Any], contents: Mapping[str, bytes]) -> None:
    """Remove the old record, write the files, and last the record with their digests."""
    covered = {name: {"bytes": len(content), "sha256": _sha256(content)} for name, content in contents.items()}
    content = jsonable({"format": FORMAT, **facts, "files": covered})
    files.remove(record)
    for name, each in contents.items():
        files.write_atomically(record.with_name(name), each)
    files.write_json(record, {**content, "sha256": _seal(content)})


def read(record: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return a record's facts and the contents of its files, or raise a `RecordError` if any was changed."""
    content = files.read_json(record)
    if not {"format", "files"} & content.keys():
        raise OtherFormatError(f"{record} was written by an older d3gd; continue with that version, or run it again")
    with files.parsing(record):
        if content.pop("sha256", None) != _seal(content):
            raise _damaged(record)
    found = content.pop("format")
    if found != FORMAT:
        raise OtherFormatError(
            f"{record} has the format {found}, but this version of d3gd reads {FORMAT}; use the one that wrote it"
        )
    with files.parsing(record):
        covered = content.pop("files").items()
        return content, {name: _content(record.with_name(name), **kept) for name, kept in covered}


def _content(path: Path, *, bytes: int, sha256: str) -> bytes:
    content = reading.content(path, files.WANTED, limit=bytes)
    if _sha256(content) != sha256:
        raise _damaged(path)
    return content


def _damaged(path: Path) -> RecordError:
    return RecordError(f"{path} is damaged: it is not what was written (SHA-256); restore it, or run again")


def _seal(content: Mapping[str, Any]) -> str:
    return _sha256(json.dumps(content, sort_keys=True).encode())


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
