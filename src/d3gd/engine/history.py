"""The weights and losses of a run over time, thinned as it grows."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from d3gd.arrays import Array, Floats
from d3gd.metrics import Snapshot, loss_per_agent
from d3gd.problems import Problem
from d3gd.result import History
from d3gd.transports.base import Transport

_RECORDS, _FEWEST = 200, 16
_NUMBERS = 1 << 24  # of all records together; very large networks get fewer records


class Historian:
    """Keeps the weights of a run at evenly spaced records.

    The first record and the last are always kept, those between at multiples of ``every`` times a power of two. Which
    ones depends on the last iteration only, so that a resumed run keeps the same.

    Args:
        every: Iterations between records of the run.
        entries: Number of weights.
    """

    def __init__(self, every: int, entries: int) -> None:
        self._every = every
        self._limit = max(_FEWEST, min(_RECORDS, _NUMBERS // entries))
        self.rows: dict[int, tuple[Floats, Floats]] = {}  # iteration: weights, losses

    def add(self, snapshot: Snapshot) -> None:
        """Keep a snapshot's weights and losses, and drop those that no longer fit; collective."""
        step = self._every
        while snapshot.k // step >= self._limit:
            step *= 2
        self.rows = {k: row for k, row in self.rows.items() if k % step == 0 and k < snapshot.k}
        self.rows[snapshot.k] = (np.array(snapshot.weights.data), _losses(snapshot))

    def arrays(self) -> dict[str, Array]:
        """Return the history as arrays with one row per record."""
        weights, losses = zip(*self.rows.values(), strict=True) if self.rows else ((), ())
        return {
            "iterations": np.array(list(self.rows), dtype=np.int64),
            "weights": np.array(weights),
            "losses": np.array(losses),
        }

    def restore(self, arrays: Mapping[str, Array], before: int, ranks: Transport) -> None:
        """Continue a history that rank 0 has read, up to an iteration; collective."""
        shapes = [np.shape(arrays[name]) if arrays else (0, 0) for name in ("weights", "losses")]
        sizes = ranks.each(np.array(shapes)) if ranks.ranks > 1 else np.array([shapes])
        (rows, entries), (_, agents) = sizes[0].tolist()
        flat = [np.asarray(arrays[name], dtype=np.float64).ravel() for name in arrays]
        whole = np.concatenate(flat) if flat else np.empty(0)
        if ranks.ranks > 1:
            lengths = [rows * (1 + entries + agents), *[0] * (ranks.ranks - 1)]
            whole = ranks.gather(whole, lengths)[0]
        iterations, weights, losses = np.split(whole, np.cumsum([rows, rows * entries]))
        held = zip(iterations, weights.reshape(rows, entries), losses.reshape(rows, agents), strict=True)
        self.rows = {int(k): (weights, losses) for k, weights, losses in held if k % self._every == 0 and k < before}

    def history(self, graph: Any, problem: Any) -> History:
        """Return the result's history; collective."""
        shares = problem.class_proportions() if isinstance(problem, Problem) else None
        arrays = self.arrays()
        return History(
            iterations=arrays["iterations"],
            weights=arrays["weights"],
            sources=np.array(graph.sources),
            targets=np.array(graph.targets),
            losses=arrays["losses"] if arrays["losses"].size else None,
            class_proportions=shares,
        )


def _losses(s: Snapshot) -> Floats:
    """Every agent's objective at its own model, or nothing if the problem has no loss."""
    if not isinstance(s.problem, Problem) or not s.problem.has_loss:
        return np.empty(0)
    return loss_per_agent(s)
