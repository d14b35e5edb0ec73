"""The records of a run, and when they end it."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from d3gd.arrays import Floats
from d3gd.distributed.traffic import Traffic
from d3gd.engine.history import Historian
from d3gd.engine.setup import Setup
from d3gd.errors import SettingsError
from d3gd.metrics import Log, Snapshot
from d3gd.result import Status
from d3gd.runs.progress import Show
from d3gd.validation import function, is_number, listed, plain, shown

Callback: TypeAlias = Callable[[Snapshot], bool | None]


class Position(NamedTuple):
    """The progress of a run; replaced as a whole, so that it is consistent after an interrupt."""

    k: int
    state: Any
    sent: Traffic  # along the links into this rank's agents
    gradients: int = 0  # evaluations per agent


class Totals(NamedTuple):
    """The cost of a run so far, summed over ranks."""

    bytes_sent: int
    gradients: int

    @classmethod
    def at(cls, at: Position, run: Setup) -> "Totals":
        """Return the totals at a position; collective."""
        if run.ranks.ranks == 1:
            return cls(at.sent.total, at.gradients)
        each = run.ranks.each(np.array([at.sent.total, at.gradients]))
        return cls(int(each[:, 0].sum()), int(each[:, 1].max()))


class Recorder:
    """Passes snapshots of a run to its metrics, target and callbacks.

    Args:
        run: The run.
        target: Levels of metrics at which to stop.
        callbacks: Functions of a snapshot; one that returns True stops the run.
        history: Keeps the weights over time, if they are wanted.
    """

    def __init__(
        self,
        run: Setup,
        target: Mapping[str, float],
        callbacks: Sequence[Callback],
        history: Historian | None = None,
    ) -> None:
        self.log, self.history = Log(run.metrics), history
        self._run, self._target, self.callbacks = run, target, _functions(callbacks)
        _require_targets(target, self.log.names)

    def record(self, at: Position, x: Floats, show: Show) -> Status | None:
        """Record a position, unless it is already recorded, and return the status if the run ends here.

        Args:
            at: The position.
            x: The models of this rank's agents.
            show: Shows progress.
        """
        snapshot = self.add(at, x)
        if snapshot is None:
            return None
        row = self.log.rows[-1][1]
        show(at.k, _headline(row))
        if self.callbacks:
            snapshot = replace(snapshot, records=tuple(self.log.rows))
        stops = [_stops(callback(snapshot)) for callback in self.callbacks]  # call each, regardless of the others
        if self.callbacks and self._run.ranks.any(any(stops)):
            return "stopped"
        met = [bool(np.all(row[name] <= level)) for name, level in self._target.items()]
        return "target" if met and all(met) else None

    def add(self, at: Position, x: Floats) -> Snapshot | None:
        """Record a position and return its snapshot, or None if it is already recorded."""
        if self.log.has(at.k):
            return None
        run, snapshot = self._run, self._snapshot(at, x)
        self.log.add(snapshot)
        if self.history is not None:
            self.history.add(snapshot, run.traffic(at.sent))
        return snapshot

    def _snapshot(self, at: Position, x: Floats) -> Snapshot:
        run = self._run
        seen = run.halo.everyone(x).astype(np.float64, copy=False).view()
        seen.setflags(write=False)  # observers must not change the run
        scale = run.method.scale(run.net, at.state)
        return Snapshot(
            k=at.k,
            x=seen,
            weights=run.matrix(at.state),
            scale=None if scale is None else run.halo.everyone(scale),
            problem=run.whole,
            step_size=getattr(run.algorithm, "step_size", float("nan")),
            **Totals.at(at, run)._asdict(),
        )


def _functions(callbacks: Any) -> list[Callback]:
    """Return the callbacks as a list, or raise an error unless they are functions."""
    found = listed("callbacks", callbacks, "functions of a snapshot")
    for callback in found:
        function("a callback", callback, "a snapshot")
    return found


def _stops(answer: Any) -> bool:
    if answer is not None and not isinstance(answer, bool | np.bool_):
        raise SettingsError(f"a callback returned {shown(answer)}; return True to stop the run, else False or None")
    return bool(answer)


def _require_targets(target: Mapping[str, float], names: Sequence[str]) -> None:
    for name, level in target.items():
        if name not in names:
            raise SettingsError(
                f"target names {name!r}, which this run does not record; choose from {', '.join(names)}"
            )
        if not is_number(level) or math.isnan(plain(level)):
            raise SettingsError(f"target {name} = {shown(level)}: it must be a number; try 1e-3")


def _headline(row: Mapping[str, Any]) -> str:
    shown = [name for name in row if name.startswith(("stationarity", "disagreement"))]
    return "  ".join(f"{name} {row[name]:.2e}" for name in shown)
