"""Records for Weights & Biases."""

from collections.abc import Mapping
from typing import Any

from d3gd.callbacks.values import flat, imported, numbers, vectors
from d3gd.metrics import Snapshot
from d3gd.result import Result


class WandB:
    """Log settings as configuration, every record's metrics, and metrics per agent and weights as histograms.

    Needs ``pip install 'd3gd[wandb]'``. Where a run of Weights & Biases is active, it is used and stays active;
    otherwise one is started, and finished with the run. ``mode="offline"`` keeps everything on this machine.

    Args:
        **init: Arguments of ``wandb.init``, such as ``project``, ``name`` or ``mode``.
    """

    def __init__(self, **init: Any) -> None:
        self._wandb = imported("wandb", "wandb", "WandB")
        self._init = init
        self._run: Any = None
        self._own = False

    def begin(self, settings: Mapping[str, Any]) -> None:
        """Called before the first record, on the first rank only."""
        self._own = self._wandb.run is None
        self._run = self._wandb.init(**self._init) if self._own else self._wandb.run
        told = {name: str(value) if isinstance(value, list) else value for name, value in flat(settings)}
        self._run.config.update(told)

    def __call__(self, snapshot: Snapshot) -> None:
        """Log a record."""
        if self._run is None:
            return
        spread = {name: self._wandb.Histogram(values) for name, values in vectors(snapshot).items()}
        self._run.log({**numbers(snapshot), **spread}, step=snapshot.k)

    def end(self, result: Result | None) -> None:
        """Called after the last record, or with None after an error."""
        run, self._run = self._run, None
        if run is not None and result is not None:
            run.summary["status"] = result.status
        if run is not None and self._own:
            run.finish(exit_code=1 if result is None else 0)
