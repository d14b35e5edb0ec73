"""The result of a comparison."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from d3gd.comparison import text
from d3gd.comparison.runs import Run
from d3gd.comparison.scenario import Budget
from d3gd.comparison.summary import Row
from d3gd.errors import D3GDError, RecordError, SettingsError
from d3gd.runs import files
from d3gd.validation import html_table, one_line, one_of

_FILES = ("compare.json", "compare.csv", "compare.md", "curves.png", "curves.pdf")


@dataclass(frozen=True)
class Comparison:
    """Methods compared on one network, problem and budget.

    Attributes:
        title: The network and problem in words.
        rows: The methods, best first; those that diverged, failed or cannot run are last.
        metric: The ranking metric, at the end of the budget.
        tuned_by: The metric for tuning.
        budget: The budget of every run.
        target: The level of the metric whose cost is reported.
        target_text: The origin of that level.
        grid_text: The steps that were tried.
        seeds: The seeds of the reported runs.
        tuning_seeds: The seeds of the tuning runs.
        jobs: Number of parallel runs.
        notes: Further remarks for readers.
        versions: Versions of Python, libraries and the machine.
        runs: The reported runs of each method.
    """

    title: str
    rows: tuple[Row, ...]
    metric: str
    tuned_by: str
    budget: Budget
    target: float
    target_text: str
    grid_text: str
    seeds: tuple[int, ...]
    tuning_seeds: tuple[int, ...]
    jobs: int
    notes: tuple[str, ...]
    versions: Mapping[str, str]
    runs: Mapping[str, Sequence[Run]] = field(repr=False)

    def __repr__(self) -> str:
        best = [f"{row.rank}. {one_line(row.method)}" for row in self.rows if row.rank is not None]
        return f"Comparison({self.title}: {', '.join(best) or 'nothing ranked'})"

    def _repr_html_(self) -> str:
        return html_table(self.title, [text.cells(row) for row in self.rows], text.header(self))

    def row(self, method: str) -> Row:
        """Return the row of one method."""
        for row in self.rows:
            if row.method == method:
                return row
        known = ", ".join(one_line(row.method) for row in self.rows)
        raise D3GDError(f"no method {method!r} was compared; choose from {known}")

    def show(self) -> None:
        """Print the table, and how to read it."""
        text.show(self)

    def to_pandas(self) -> Any:
        """Return the table as a data frame."""
        try:
            import pandas as pd
        except ImportError as error:
            raise D3GDError("to_pandas needs pandas; install it with: pip install 'd3gd[data]'") from error
        return pd.DataFrame([text.flat(row) for row in self.rows])

    def plot(
        self,
        path: str | Path | None = None,
        *,
        x: Literal["iterations", "gradients", "bytes", "time"] = "iterations",
        ax: Any = None,
    ) -> Any:
        """Draw the curves against iterations, bytes and processor time, or against one of them on given axes.

        Args:
            path: A file to write, .png, .pdf or .svg; by default none is written.
            x: The horizontal axis, with ``ax``: ``"iterations"``, ``"gradients"``, ``"bytes"`` or ``"time"``, that
                of the processor.
            ax: matplotlib axes to draw on; the numbers at the lines' ends are ranks.

        Returns:
            ``ax``; without it a new matplotlib figure.
        """
        from d3gd.comparison import figure
        from d3gd.plots import write_figure

        if ax is not None:
            if path is not None:
                raise SettingsError("ax= writes no file; leave the path out, or the axes")
            one_of("x", x, ("iterations", "gradients", "bytes", "time"))
            figure.draw_panel(ax, self, "seconds" if x == "time" else x)
            return ax
        made = figure.figure_of(self)
        if path is not None:
            write_figure(made, path)
        return made

    def to_latex(self) -> str:
        """Return the table as a LaTeX ``tabular``, which needs no package."""
        return text.latex(self)

    def report(self, path: str | Path) -> None:
        """Write one HTML page that needs nothing else: the table, which sorts, and the curves, which can be hidden."""
        from d3gd.comparison.page import write as write_page

        write_page(text.content(self), self.runs, path)

    def save(self, folder: str | Path) -> None:
        """Write ``compare.csv``, ``.json`` and ``.md`` and ``curves.png`` and ``.pdf``.

        Files of these names are replaced only if they are an earlier version of this comparison.
        """
        path = Path(folder)
        taken = [name for name in _FILES if os.path.lexists(path / name)]
        if taken and not self._is_in(path):
            raise RecordError(
                f"{path} holds {taken[0]!r}, which is not of this comparison; choose another folder; nothing is "
                "overwritten"
            )
        write(self, path)

    def _is_in(self, folder: Path) -> bool:
        with suppress(RecordError):
            return files.read_json(folder / _FILES[0]).get("title") == self.title
        return False


def write(comparison: Comparison, folder: Path) -> None:
    """Write the files of :meth:`Comparison.save` to a folder that belongs to the comparison."""
    from d3gd.comparison.figure import draw

    pictures = draw(comparison, [".png", ".pdf"])
    tables = text.table_csv(comparison).encode(), text.markdown(comparison).encode()
    files.make_folder(folder)
    for name, content in zip(_FILES[1:], (*tables, pictures[".png"], pictures[".pdf"]), strict=True):
        files.write_atomically(folder / name, content)
    files.write_json(folder / _FILES[0], text.content(comparison))
