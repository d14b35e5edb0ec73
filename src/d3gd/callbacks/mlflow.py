"""Records for MLflow."""

from collections.abc import Mapping
from typing import Any

from d3gd.callbacks.values import flat, imported, numbers, vectors
from d3gd.metrics import Snapshot
from d3gd.result import Result

_LONGEST = 500  # characters of a parameter, in all versions of MLflow
_AT_ONCE = 100  # parameters in one call


class MLflow:
    """Log settings as parameters, and every record's metrics; of metrics per agent and weights least, mean and most.

    Needs ``pip install 'd3gd[mlflow]'``. Where a run of MLflow is active, it is used and stays active; otherwise one is
    started, and ended with the run. Where it goes to is MLflow's own setting, ``mlflow.set_tracking_uri``.

    Args:
        **start: Arguments of ``mlflow.start_run``, such as ``run_name``, or ``run_id`` to go on with an earlier run.
    """

    def __init__(self, **start: Any) -> None:
        self._mlflow = imported("mlflow", "mlflow", "MLflow")
        self._start = start
        self._run: str | None = None
        self._own = False

    def begin(self, settings: Mapping[str, Any]) -> None:
        """Called before the first record, on the first rank only."""
        active = self._mlflow.active_run()
        self._own = active is None
        self._run = (active or self._mlflow.start_run(**self._start)).info.run_id
        told = [(name, str(value)[:_LONGEST]) for name, value in flat(settings)]
        for first in range(0, len(told), _AT_ONCE):
            self._mlflow.log_params(dict(told[first : first + _AT_ONCE]))

    def __call__(self, snapshot: Snapshot) -> None:
        """Log a record."""
        if self._run is None:
            return
        found = numbers(snapshot)
        for name, values in vectors(snapshot).items():
            spread = {"least": values.min(), "mean": values.mean(), "most": values.max()}
            found |= {f"{name}.{word}": float(value) for word, value in spread.items()}
        self._mlflow.log_metrics(found, step=snapshot.k)

    def end(self, result: Result | None) -> None:
        """Called after the last record, or with None after an error."""
        if self._run is not None and result is not None:
            self._mlflow.set_tag("d3gd.status", result.status)
        if self._own:
            self._mlflow.end_run("FAILED" if result is None else "FINISHED")
        self._run, self._own = None, False
