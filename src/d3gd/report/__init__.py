"""Reports: one HTML page that plays runs back, without a server or an internet connection."""

from collections.abc import Mapping
from pathlib import Path

from d3gd.errors import RecordError, SettingsError
from d3gd.report.page import page
from d3gd.report.payload import payload
from d3gd.result import Result
from d3gd.runs import files
from d3gd.validation import shown

__all__ = ["write_report"]


def write_report(results: Mapping[str, Result], path: str | Path) -> None:
    """Write a page that shows runs side by side: their networks over time, curves, data and settings.

    Args:
        results: The runs, by their names on the page. Those with ``record_weights=True`` can be played back.
        path: The file to write; its name ends in .html.
    """
    if not results:
        raise RecordError("there is no run to report; give at least one")
    title = " and ".join(results) if len(results) < 3 else f"{len(results)} runs"
    runs = [payload(name, result) for name, result in results.items()]
    write_page(path, title, "runs", {"runs": runs})


def write_page(path: str | Path, title: str, kind: str, content: Mapping[str, object]) -> None:
    """Write one page.

    Args:
        path: The file.
        title: The title, any text.
        kind: The name of its script, ``"runs"`` or ``"table"``.
        content: The data, ready for JSON.
    """
    if not isinstance(path, str | Path):
        raise SettingsError(f"the report's file is {shown(path)}; give a name that ends in .html")
    if Path(path).suffix not in (".html", ".htm"):
        raise SettingsError(f"{path} ends in {Path(path).suffix!r}; a report's name ends in .html")
    files.make_folder(Path(path).parent)
    files.write_atomically(Path(path), page(title, kind, content).encode())
