"""Stop a run that no longer improves."""

from dataclasses import dataclass

import numpy as np

from d3gd.errors import SettingsError
from d3gd.metrics import Snapshot
from d3gd.validation import count, flag, not_negative, shown


@dataclass(frozen=True)
class EarlyStopping:
    """Stop at the first record at which the best value of a metric is ``patience`` records old.

    It judges by the run's own records and remembers nothing, so that a resumed run stops where a whole one would.

    Args:
        metric: A metric that the run records; of one with a value per agent, the worst agent counts.
        patience: Number of records without improvement.
        least: The smallest improvement that counts.
        larger: Whether more is better, as for ``"accuracy"``.

    Example:
        >>> import d3gd
        >>> graph, problem = d3gd.graphs.ring(4), d3gd.problems.quadratic(agents=4, dim=2)
        >>> stop = d3gd.callbacks.EarlyStopping("disagreement", patience=2)
        >>> result = d3gd.run(d3gd.DiDGD(step_size=0.1), graph, problem, iterations=1000, callbacks=[stop])
        >>> result.status, result.iterations.tolist()  # it is smallest at the start, where all models are equal
        ('stopped', [0, 10, 20])
    """

    metric: str
    patience: int = 10
    least: float = 0.0
    larger: bool = False

    def __post_init__(self) -> None:
        count("patience", self.patience, least=1)
        not_negative("least", self.least)
        flag("larger", self.larger)

    def __call__(self, snapshot: Snapshot) -> bool:
        """Whether to stop."""
        if self.metric not in snapshot.metrics:
            known = ", ".join(snapshot.metrics)
            raise SettingsError(f"EarlyStopping needs {shown(self.metric)}, which is not recorded; choose from {known}")
        sign = -1.0 if self.larger else 1.0
        values = [float(np.max(sign * np.asarray(row[self.metric]))) for _, row in snapshot.records]
        best, since = np.inf, 0
        for value in values:
            since = 0 if value < best - self.least else since + 1
            best = min(best, value) if since == 0 else best
        return since >= self.patience
