"""The weights and losses of a run over time, thinned as it grows."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from d3gd.arrays import Array, Floats, Ints
from d3gd.metrics import Snapshot, loss_per_agent
from d3gd.problems import Problem
from d3gd.result import History
from d3gd.transports.base import Transport

_RECORDS, _FEWEST = 200, 16
_NUMBERS = 1 << 24  # weights of all records together; very large networks get fewer records
_KEPT = ("weights", "losses", "bytes")  # of every record


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
        self.rows: dict[int, tuple[Floats, Floats, Floats]] = {}  # iteration: weights, losses, bytes

    def add(self, snapshot: Snapshot, sent: Ints | None) -> None:
        """Keep a snapshot's weights and losses, and drop those that no longer fit; collective.

        Args:
            snapshot: The snapshot.
            sent: The bytes along every edge so far, if they are known.
        """
        step = self._every
        while snapshot.k // step >= self._limit:
            step *= 2
        self.rows = {k: row for k, row in self.rows.items() if k % step == 0 and k < snapshot.k}
        row = np.empty(0) if sent is None else np.array(sent, dtype=np.float64)
        self.rows[snapshot.k] = (np.array(snapshot.weights.data), _losses(snapshot), row)

    def arrays(self) -> dict[str, Array]:
        """Return the history as arrays with one row per record."""
        held = zip(*self.rows.values(), strict=True) if self.rows else ((),) * len(_KEPT)
        arrays = {name: np.array(rows) for name, rows in zip(_KEPT, held, strict=True)}
        return {
            "iterations": np.array(list(self.rows), dtype=np.int64),
            **arrays,
            "bytes": arrays["bytes"].astype(np.int64),
        }

    def restore(self, arrays: Mapping[str, Array], before: int, ranks: Transport) -> None:
        """Continue a history that rank 0 has read, up to an iteration; collective."""
        rows = len(arrays["iterations"]) if arrays else 0
        names = ("iterations", *_KEPT)  # older versions kept no bytes
        held = [np.asarray(arrays.get(name, ()), np.float64).reshape(rows, -1) for name in names] if rows else []
        sizes = [rows, *(part.shape[1] for part in held)] if rows else [0] * (1 + len(names))
        rows, *widths = ranks.each(np.array(sizes))[0].tolist()
        whole = np.concatenate(held, axis=1).ravel() if held else np.empty(0)
        table = ranks.gather(whole, [rows * sum(widths), *[0] * (ranks.ranks - 1)])[0].reshape(rows, sum(widths))
        for k, *row in zip(*np.split(table, np.cumsum(widths)[:-1], axis=1), strict=True):
            if k % self._every == 0 and k < before:
                self.rows[int(k[0])] = (row[0], row[1], row[2])

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
            bytes=arrays["bytes"] if arrays["bytes"].size else None,
        )


def _losses(s: Snapshot) -> Floats:
    """Every agent's objective at its own model, or nothing if the problem has no loss."""
    if not isinstance(s.problem, Problem) or not s.problem.has_loss:
        return np.empty(0)
    return loss_per_agent(s)
