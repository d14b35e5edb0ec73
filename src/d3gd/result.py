"""What a run returns."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.sparse import load_npz, save_npz

from d3gd.arrays import CSR, Array, Floats, Ints
from d3gd.errors import D3GDError, RecordError
from d3gd.runs import files

Status: TypeAlias = Literal["completed", "target", "stopped", "diverged", "interrupted"]


@dataclass(frozen=True)
class Result:
    """A finished run.

    Attributes:
        iterations: The iterations that were recorded.
        metrics: One array per metric, as long as ``iterations``; those per agent have a second axis.
        x: The final models, (n, d).
        weights: The final weights, CSR, ``weights[i, j]`` what i puts on j.
        status: ``"completed"``; ``"target"`` (a target was reached), ``"stopped"`` (by a callback), ``"diverged"``, or
            ``"interrupted"`` (by Ctrl-C in a notebook or at Python's prompt).
        message: What there is to say about the status, or an empty string.
        seconds: The time the iterations took, over all resumes.
        settings: What was run: algorithm, graph, problem, seed, versions.
    """

    iterations: Ints
    metrics: dict[str, Array]
    x: Floats
    weights: CSR
    status: Status
    message: str = ""
    seconds: float = 0.0
    settings: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        last = ", ".join(
            f"{name}={values[-1]:.3g}" for name, values in self.metrics.items() if values.ndim == 1 and len(values)
        )
        said = f", {self.message}" if self.message else ""
        return f"Result({self.status} at iteration {self.iterations[-1]}{said}: {last})"

    def to_pandas(self) -> Any:
        """Return the metrics as a data frame with the iteration as its index."""
        try:
            import pandas as pd
        except ImportError as error:
            raise D3GDError("to_pandas needs pandas; install it with: pip install 'd3gd[data]'") from error
        columns: dict[str, Array] = {}
        for name, values in self.metrics.items():
            if values.ndim == 1:
                columns[name] = values
            else:
                columns |= {f"{name}[{i}]": values[:, i] for i in range(values.shape[1])}
        return pd.DataFrame(columns, index=pd.Index(self.iterations, name="iteration"))

    def save(self, folder: str | Path) -> None:
        """Write the result into a run's folder, ``result.json`` last."""
        path = files.make_folder(Path(folder))
        files.write_metrics(path / "metrics.csv", self.iterations, self.metrics)
        files.write_arrays(path / "models.npz", {"x": self.x})
        with files.replacing(path / "weights.npz") as beside:
            save_npz(beside, self.weights)
        if self.settings:
            files.write_json(path / "settings.json", self.settings)
        files.write_json(
            path / "result.json",
            {
                "status": self.status,
                "message": self.message,
                "iterations": int(self.iterations[-1]),
                "seconds": self.seconds,
                "final": {name: np.asarray(values[-1]).tolist() for name, values in self.metrics.items()},
            },
        )

    @classmethod
    def load(cls, folder: str | Path) -> "Result":
        """Read a finished run back from its folder."""
        path = Path(folder)
        if not (path / "result.json").exists():
            raise RecordError(f"{path} has no result.json: it is not the folder of a finished run; finish it first")
        facts = files.read_json(path / "result.json")
        settings = path / "settings.json"
        iterations, metrics = files.read_metrics(path / "metrics.csv")
        with files.reading(path / "weights.npz") as content:
            weights = load_npz(content)
        return cls(
            iterations=iterations,
            metrics=metrics,
            x=files.read_arrays(path / "models.npz")["x"],
            weights=weights,
            status=facts["status"],
            message=facts["message"],
            seconds=facts["seconds"],
            settings=files.read_json(settings) if settings.exists() else {},
        )
