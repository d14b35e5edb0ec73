"""The result of a run."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.sparse import csr_array

from d3gd.arrays import CSR, Array, Floats, Ints
from d3gd.errors import D3GDError
from d3gd.runs import files, outcome
from d3gd.runs import folder as layout
from d3gd.validation import as_path, html_table

Status: TypeAlias = Literal["completed", "target", "stopped", "diverged", "interrupted"]


@dataclass(frozen=True)
class History:
    """The weights of a run over time, at no more than about 200 evenly spaced records.

    Attributes:
        iterations: The iterations of these records.
        weights: (records, entries): one weight per link or self-loop.
        sources: The agent that each of these weights listens to.
        targets: The agent that listens.
        losses: (records, n): every agent's objective on its own data at its own model; None without a loss.
        class_proportions: (n, classes): the share of each class among every agent's samples; None without labels.
        bytes: (records, entries): what each link had carried; None if an older version wrote the file.
    """

    iterations: Ints
    weights: Floats
    sources: Ints
    targets: Ints
    losses: Floats | None = None
    class_proportions: Floats | None = None
    bytes: Ints | None = None

    def __len__(self) -> int:
        return len(self.iterations)

    def __repr__(self) -> str:
        return f"History({len(self)} records of {len(self.sources)} weights, to iteration {self.iterations[-1]})"

    def matrix(self, record: int) -> CSR:
        """Return the weights at a record (its position, not its iteration), like ``Result.weights``."""
        n = int(self.targets.max()) + 1  # every agent has a weight on itself
        return csr_array((self.weights[record], (self.targets, self.sources)), shape=(n, n))


@dataclass(frozen=True)
class Result:
    """A finished run.

    Attributes:
        iterations: The recorded iterations.
        metrics: One array per metric, as long as ``iterations``; those per agent have a second axis.
        x: The final models, (n, d).
        weights: The final weights, CSR, ``weights[i, j]`` is the weight of i on j.
        status: ``"completed"``; ``"target"`` (a target was reached), ``"stopped"`` (by a callback), ``"diverged"``, or
            ``"interrupted"`` (by Ctrl-C in a notebook or at Python's prompt).
        message: An explanation of the status, or an empty string.
        seconds: The time the iterations took, over all resumes.
        settings: The settings of the run: algorithm, graph, problem, seed, versions.
        history: The weights over time, if the run recorded them (``record_weights=True``).
        traffic: What each link carried, CSR with the entries of ``weights``: ``traffic[i, j]`` is the number of bytes
            that j sent to i. Their sum is the last of the metric ``bytes``. None if links are not known: at a site, or
            if an older version wrote the files.
    """

    iterations: Ints
    metrics: dict[str, Array]
    x: Floats
    weights: CSR
    status: Status
    message: str = ""
    seconds: float = 0.0
    settings: dict[str, Any] = field(default_factory=dict)
    history: History | None = None
    traffic: CSR | None = None

    @property
    def labels(self) -> tuple[str, ...] | None:
        """The agents' names, in their order, if the graph has any."""
        names = self.settings.get("graph", {}).get("labels")
        return None if names is None else tuple(names)

    def __repr__(self) -> str:
        last = ", ".join(
            f"{name}={values[-1]:.3g}" for name, values in self.metrics.items() if values.ndim == 1 and len(values)
        )
        said = f", {self.message}" if self.message else ""
        return f"Result({self.status} at iteration {self.iterations[-1]}{said}: {last})"

    def _repr_html_(self) -> str:
        said = f": {self.message}" if self.message else ""
        title = f"{self._name}: {self.status} at iteration {self.iterations[-1]} in {self.seconds:.1f} s{said}"
        scalar = {name: values for name, values in self.metrics.items() if values.ndim == 1}
        rows = [(name, *map(_shown, (values[0], values[-1]))) for name, values in scalar.items()]
        return html_table(title, rows, ("metric", "at the start", "at the end"))

    def to_pandas(self) -> Any:
        """Return the metrics as a data frame with the iteration as its index.

        A metric per agent has a column for each: ``accuracy_per_agent[0]``, or by its name if agents have names.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise D3GDError("to_pandas needs pandas; install it with: pip install 'd3gd[data]'") from error
        columns = files.columns(self.metrics, self.labels)
        return pd.DataFrame(columns, index=pd.Index(self.iterations, name="iteration"))

    def plot(self, metric: str | None = None, *, x: str = "iterations", ax: Any = None) -> Any:
        """Plot a metric, or the usual ones, with matplotlib; :func:`d3gd.plots.plot_runs` plots several runs.

        Args:
            metric: The metric; by default stationarity and disagreement, or on ``ax`` the first that was recorded.
            x: The horizontal axis: ``"iterations"``, ``"bytes"`` or ``"time"``.
            ax: The matplotlib axes to plot on.

        Returns:
            The axes, or without ``ax`` a new figure.
        """
        from d3gd.plots import plot_runs

        names = [] if metric is None else [metric]
        return plot_runs({self._name: self}, metrics=names, x=x, ax=ax)

    def report(self, path: str | Path) -> None:
        """Write one HTML page that shows the run, and moves if its weights were recorded; it needs nothing else.

        Args:
            path: The file; its name ends in .html. :func:`d3gd.report.write_report` shows several runs.
        """
        from d3gd.report import write_report

        write_report({self._name: self}, path)

    @property
    def _name(self) -> str:
        return str(self.settings.get("algorithm", {}).get("kind", "run"))

    def save(self, folder: str | Path) -> None:
        """Write the result to a folder, new or of the run; :meth:`load` reads it back."""
        facts = {
            "status": self.status,
            "message": self.message,
            "iterations": int(self.iterations[-1]),
            "seconds": self.seconds,
            "final": {name: np.asarray(values[-1]) for name, values in self.metrics.items()},
        }
        path = as_path("folder", folder)
        outcome.write_result(
            path,
            facts,
            begun=layout.is_started(path),
            settings=self.settings,
            iterations=self.iterations,
            metrics=self.metrics,
            x=self.x,
            weights=self.weights,
            history={} if self.history is None else _present(self.history),
            traffic=self.traffic,
        )

    @classmethod
    def load(cls, folder: str | Path) -> "Result":
        """Read a finished run from its folder, or raise an error if a file was changed."""
        path = as_path("folder", folder)
        fields = outcome.read_result(path, begun=layout.is_started(path))
        history = fields.pop("history")
        return cls(**fields, history=History(**history) if history else None)


def _shown(value: Any) -> str:
    """Return a metric for a table: counts, such as bytes, with all digits."""
    return f"{value:,}" if isinstance(value, np.integer) else f"{value:.4g}"


def _present(history: History) -> dict[str, Array]:
    return {name: array for name, array in vars(history).items() if array is not None}
