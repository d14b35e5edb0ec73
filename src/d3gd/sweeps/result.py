"""The result of a sweep: a table with one row per run, and its combinations of settings, best first."""

import csv
import io
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from d3gd import reading
from d3gd.comparison.numbers import quantile, shown
from d3gd.config.schema import unknown
from d3gd.config.toml import value_of
from d3gd.errors import D3GDError, SettingsError
from d3gd.result import Result
from d3gd.runs import files, outcome
from d3gd.sweeps.points import text_of
from d3gd.validation import html_table, one_line

_USUAL = ("stationarity", "stationarity_at_mean", "loss", "loss_at_mean", "disagreement")
_LARGER = ("accuracy", "n_min_pi")  # metrics of which more is better
TABLE, FIGURE = "sweep.csv", "sweep"
_FACTS = "sweep.json"
_TEXTS = ("status", "message", "run", "seed", "iterations", "seconds")  # columns that are no metrics


@dataclass(frozen=True)
class Row:
    """One run of a sweep.

    Attributes:
        values: The values of the swept settings.
        seed: The seed.
        status: As of :class:`d3gd.Result`, or ``"failed"``.
        message: An explanation of the status.
        place: The folder of the run in that of the sweep.
        iterations: The last iteration.
        seconds: The time of the iterations.
        final: The last value of every metric that is one number.
    """

    values: Mapping[str, Any]
    seed: int
    status: str
    message: str
    place: Path
    iterations: int | None = None
    seconds: float | None = None
    final: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Group:
    """A combination of settings, over all seeds.

    Attributes:
        values: The values of the swept settings.
        rows: Its runs.
        low: The lower quartile of the metric over seeds; runs that diverged or failed count as the worst.
        median: Its median.
        high: Its upper quartile.
    """

    values: Mapping[str, Any]
    rows: Sequence[Row]
    low: float
    median: float
    high: float

    @property
    def name(self) -> str:
        """The combination in words."""
        return ", ".join(f"{key}={text_of(value)}" for key, value in self.values.items()) or "all seeds"

    @property
    def note(self) -> str:
        """How many runs diverged or failed."""
        counts = {word: sum(row.status == word for row in self.rows) for word in ("diverged", "failed")}
        of = f" of {len(self.rows)}" if len(self.rows) > 1 else ""
        return ", ".join(f"{count}{of} {word}" if of else word for word, count in counts.items() if count)


@dataclass(frozen=True)
class Sweep:
    """A sweep: an experiment with every combination of some settings' values, over several seeds.

    Attributes:
        title: The name of the experiment.
        settings: The values of every swept setting.
        seeds: The seeds.
        wanted: The metric that was asked for, or None.
        rows: One row per run.
        folder: The folder with all runs.
    """

    title: str
    settings: Mapping[str, Sequence[Any]]
    seeds: Sequence[int]
    wanted: str | None
    rows: tuple[Row, ...] = field(repr=False)
    folder: Path

    def __repr__(self) -> str:
        swept = " x ".join(f"{len(values)} {name}" for name, values in self.settings.items()) or "one setting"
        return f"Sweep({one_line(self.title)}: {swept} x {len(self.seeds)} seeds, {len(self.failures)} failed)"

    def _repr_html_(self) -> str:
        return html_table(self.title, [self._cells(group) for group in self.ranked], self._header)

    @property
    def failures(self) -> list[Row]:
        """The runs that failed; those that diverged are not among them."""
        return [row for row in self.rows if row.status == "failed"]

    @cached_property
    def metric(self) -> str:
        """The metric by which combinations are ranked."""
        known = list(dict.fromkeys(name for row in self.rows for name in row.final))
        if self.wanted is not None and known and self.wanted not in known:
            raise unknown("metric", self.wanted, known)
        return self.wanted or next((name for name in _USUAL if name in known), known[0] if known else _USUAL[0])

    @cached_property
    def groups(self) -> list[Group]:
        """The combinations of settings, in the order in which they were given."""
        found: dict[str, list[Row]] = {}
        for row in self.rows:
            found.setdefault(str(row.place.parent), []).append(row)
        return [self._group(rows) for rows in found.values()]

    @property
    def ranked(self) -> list[Group]:
        """The combinations, best first: by the median over seeds."""
        sign = -1.0 if self.metric.startswith(_LARGER) else 1.0
        return sorted(self.groups, key=lambda group: sign * group.median)

    @property
    def best(self) -> Group:
        """The combination with the best median."""
        return self.ranked[0]

    @classmethod
    def load(cls, folder: str | Path) -> "Sweep":
        """Read a finished sweep from its folder."""
        path = Path(folder)
        facts = files.read_json(path / _FACTS)
        content = reading.text(path / TABLE, files.WANTED, limit=reading.ARRAYS)
        with files.parsing(path / TABLE):
            names = list(facts["settings"])
            table = list(csv.DictReader(io.StringIO(content, newline="")))
            rows = tuple(_read_row(line, names) for line in table)
            settings = {name: tuple({text_of(r.values[name]): r.values[name] for r in rows}.values()) for name in names}
            seeds = tuple(dict.fromkeys(row.seed for row in rows))
            return cls(str(facts["title"]), settings, seeds, str(facts["metric"]), rows, path)

    def result(self, row: Row) -> Result:
        """Read the run of a row from its folder."""
        return Result.load(self.folder / row.place)

    def results(self) -> dict[str, list[Result]]:
        """Read all finished runs, by the names of their combinations, as :func:`d3gd.plots.plot_runs` takes them."""
        finished = {group.name: [row for row in group.rows if row.status != "failed"] for group in self.groups}
        return {name: [self.result(row) for row in rows] for name, rows in finished.items() if rows}

    def to_pandas(self) -> Any:
        """Return the table as a data frame, one row per run."""
        try:
            import pandas as pd
        except ImportError as error:
            raise D3GDError("to_pandas needs pandas; install it with: pip install 'd3gd[data]'") from error
        return pd.DataFrame(self._table())

    def to_latex(self) -> str:
        """Return the combinations, best first, as a LaTeX ``tabular``, which needs no package."""
        from d3gd.comparison.text import tabular

        return tabular([self._header, *(self._cells(group) for group in self.ranked)], "l" * len(self.settings) + "rl")

    def plot(self, path: str | Path | None = None, *, metric: str | None = None, ax: Any = None) -> Any:
        """Draw the metric at the end: a heat map over two settings, a curve over one; panels show the others.

        Args:
            path: A file to write: .png, .pdf or .svg; by default none is written.
            metric: Another metric than the sweep's own.
            ax: matplotlib axes to draw on, if no more than two settings have several values.

        Returns:
            A new matplotlib figure, or ``ax``.
        """
        from d3gd.plots import write_figure
        from d3gd.sweeps import figure

        drawn = self if metric is None else replace(self, wanted=metric)
        if ax is not None:
            if path is not None:
                raise SettingsError("ax= writes no file; leave the path out, or the axes")
            figure.draw_on(ax, drawn)
            return ax
        made = figure.figure_of(drawn)
        if path is not None:
            write_figure(made, path)
        return made

    def report(self, path: str | Path) -> None:
        """Write one HTML page that needs nothing else: the combinations, which sort, and curves that can be hidden."""
        from d3gd.sweeps.page import write

        write(self, path)

    def save(self) -> None:
        """Write the table, as CSV and, where pandas and pyarrow are installed, as Parquet; and the figure."""
        told = {"title": self.title, "metric": self.metric, "settings": list(self.settings)}
        files.write_json(self.folder / _FACTS, told)
        text = io.StringIO()
        table = self._table()
        writer = csv.DictWriter(text, list(dict.fromkeys(name for line in table for name in line)), lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)
        files.write_atomically(self.folder / TABLE, text.getvalue().encode())
        with suppress(ImportError):
            import pyarrow  # noqa: F401 - pandas needs it

            packed = io.BytesIO()
            self.to_pandas().to_parquet(packed, index=False)
            files.write_atomically(self.folder / f"{FIGURE}.parquet", packed.getvalue())
        if any(np.isfinite(group.median) for group in self.groups):
            from d3gd.plots import write_figure

            figure = self.plot()
            for suffix in (".png", ".pdf"):
                write_figure(figure, self.folder / f"{FIGURE}{suffix}")

    def show(self) -> None:
        """Print the combinations, best first, and the failures."""
        from rich import box
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        console = Console(highlight=False)
        console = console if console.is_terminal else Console(width=150, highlight=False)
        table = Table(box=box.SIMPLE_HEAD, title=Text(one_line(self.title)), pad_edge=False, show_edge=False)
        for name in self._header:
            table.add_column(Text(name), no_wrap=True)
        for group in self.ranked:
            table.add_row(*(Text(cell) for cell in self._cells(group)))
        console.print(table)
        said: dict[str, list[Row]] = {}
        for row in self.failures:
            said.setdefault(row.message, []).append(row)
        for message, rows in said.items():
            more = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
            console.print(Text(f"failed: {rows[0].place}{more}: {message}", style="red"), soft_wrap=True)

    @property
    def _header(self) -> list[str]:
        spread = " [quartiles]" if len(self.seeds) > 1 else ""
        return [*self.settings, f"{self.metric}{spread}", ""]

    def _cells(self, group: Group) -> list[str]:
        value = shown(group.median)
        value += f" [{shown(group.low)}, {shown(group.high)}]" if len(group.rows) > 1 else ""
        return [*(one_line(text_of(each)) for each in group.values.values()), value, group.note]

    def _group(self, rows: Sequence[Row]) -> Group:
        worst = -np.inf if self.metric.startswith(_LARGER) else np.inf
        ended = [row.status not in ("diverged", "failed") for row in rows]
        values = [row.final.get(self.metric, worst) if fine else worst for row, fine in zip(rows, ended, strict=True)]
        known = [worst if np.isnan(value) else value for value in values]
        return Group(rows[0].values, tuple(rows), *(quantile(known, q) for q in (0.25, 0.5, 0.75)))

    def _table(self) -> list[dict[str, Any]]:
        """Return one flat mapping per run."""
        plain = {
            name: all(type(value) in (int, float, bool) for value in self.settings[name]) for name in self.settings
        }
        return [
            {
                **{key: value if plain[key] else one_line(text_of(value)) for key, value in row.values.items()},
                "seed": row.seed,
                "status": row.status,
                "message": one_line(row.message),
                "iterations": row.iterations,
                "seconds": row.seconds,
                **row.final,
                "run": row.place.as_posix(),
            }
            for row in self.rows
        ]


def is_sweep(folder: Path) -> bool:
    """Whether a folder holds a finished sweep."""
    return outcome.is_file(folder / _FACTS) and outcome.is_file(folder / TABLE)


def _read_row(line: Mapping[str, str], names: Sequence[str]) -> Row:
    final = {key: float(value) for key, value in line.items() if value and key not in (*names, *_TEXTS)}
    return Row(
        values={name: value_of(line[name]) for name in names},
        seed=int(line["seed"]),
        status=line["status"],
        message=line["message"],
        place=Path(line["run"]),
        iterations=int(line["iterations"]) if line["iterations"] else None,
        seconds=float(line["seconds"]) if line["seconds"] else None,
        final=final,
    )
