"""The result of a run."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from d3gd.arrays import CSR, Array, Floats, Ints
from d3gd.errors import D3GDError
from d3gd.runs import files
from d3gd.runs import folder as layout
from d3gd.validation import as_path

Status: TypeAlias = Literal["completed", "target", "stopped", "diverged", "interrupted"]


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
    """

    iterations: Ints
    metrics: dict[str, Array]
    x: Floats
    weights: CSR
    status: Status
    message: str = ""
    seconds: float = 0.0
    settings: dict[str, Any] = field(default_factory=dict)

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

    def save(self, folder: str | Path) -> None:
        """Write the result to a folder, new or of the run; :meth:`load` reads it back."""
        facts = {
            "status": self.status,
            "message": self.message,
            "iterations": int(self.iterations[-1]),
            "seconds": self.seconds,
            "final": {name: np.asarray(values[-1]) for name, values in self.metrics.items()},
        }
        layout.write_result(
            as_path("folder", folder),
            facts,
            settings=self.settings,
            iterations=self.iterations,
            metrics=self.metrics,
            x=self.x,
            weights=self.weights,
        )

    @classmethod
    def load(cls, folder: str | Path) -> "Result":
        """Read a finished run from its folder, or raise an error if a file was changed."""
        return cls(**layout.read_result(as_path("folder", folder)))
