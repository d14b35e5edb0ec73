"""Folders of computations with several runs: comparisons, reproductions and studies."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from d3gd.errors import RecordError
from d3gd.runs import files

_SETTINGS = "settings.json"


def claim(folder: Path, what: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Claim a folder for a computation, so that files of others are never overwritten.

    Args:
        folder: A new or empty folder, or that of an earlier computation of the same kind.
        what: The kind of computation, in messages.
        settings: Written to a new folder; their names identify the kind.

    Returns:
        The settings in the folder, which may be those of an earlier computation.

    Raises:
        RecordError: The folder holds something else.
    """
    there = files.visible(folder)
    if not there:
        files.write_json(files.make_folder(folder) / _SETTINGS, settings)
        return dict(settings)
    found = files.read_json(folder / _SETTINGS) if _SETTINGS in there else {}
    if not settings.keys() <= found.keys():
        raise RecordError(
            f"{folder} holds something other than a {what}, such as {there[0]!r}; choose a new or an empty folder "
            "(--out); nothing is overwritten"
        )
    return found
