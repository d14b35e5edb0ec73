"""The result of a comparison."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from d3gd.comparison import text
from d3gd.comparison.runs import Run
from d3gd.comparison.scenario import Budget
from d3gd.comparison.summary import Row
from d3gd.errors import D3GDError
from d3gd.runs import files
from d3gd.validation import one_line


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

    def plot(self, path: str | Path) -> None:
        """Draw the curves against iterations, bytes and time into a .png, .pdf or .svg file."""
        from d3gd.comparison.figure import draw

        path = Path(path)
        files.make_folder(path.parent)
        files.write_atomically(path, draw(self, [path.suffix])[path.suffix])

    def save(self, folder: str | Path) -> None:
        """Write ``compare.csv``, ``.json`` and ``.md`` and ``curves.png`` and ``.pdf``."""
        from d3gd.comparison.figure import draw

        path = files.make_folder(Path(folder))
        for suffix, picture in draw(self, [".png", ".pdf"]).items():
            files.write_atomically(path / f"curves{suffix}", picture)
        files.write_atomically(path / "compare.csv", text.table_csv(self).encode())
        files.write_json(path / "compare.json", text.content(self))
        files.write_atomically(path / "compare.md", text.markdown(self).encode())
