"""Records for TensorBoard."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from d3gd.callbacks.values import imported, numbers, vectors
from d3gd.digest import jsonable
from d3gd.metrics import Snapshot
from d3gd.result import Result
from d3gd.validation import as_path


class TensorBoard:
    """Write every record for TensorBoard: metrics as curves; metrics per agent and weights of links as histograms.

    Needs PyTorch's writer: ``pip install 'd3gd[tensorboard]'``; then ``tensorboard --logdir FOLDER`` shows it. A run
    that is resumed replaces what it repeats.

    Args:
        folder: The folder of this run's events.
    """

    def __init__(self, folder: str | Path) -> None:
        self._writers = imported("torch.utils.tensorboard", "tensorboard", "TensorBoard")
        self._folder = as_path("folder", folder)
        self._settings: Mapping[str, Any] | None = None
        self._writer: Any = None

    def begin(self, settings: Mapping[str, Any]) -> None:
        """Called before the first record, on the first rank only."""
        self._settings = settings

    def __call__(self, snapshot: Snapshot) -> None:
        """Write a record."""
        if self._settings is None:
            return
        if self._writer is None:
            self._writer = self._writers.SummaryWriter(str(self._folder), purge_step=snapshot.k)
            told = json.dumps(jsonable(self._settings), indent=2)
            self._writer.add_text("settings", "".join(f"    {line}\n" for line in told.splitlines()), snapshot.k)
        for name, value in numbers(snapshot).items():
            self._writer.add_scalar(name, value, snapshot.k)
        for name, values in vectors(snapshot).items():
            self._writer.add_histogram(name, values, snapshot.k)

    def end(self, result: Result | None) -> None:
        """Called after the last record, or with None after an error."""
        writer, self._writer, self._settings = self._writer, None, None
        if writer is not None:
            writer.close()
