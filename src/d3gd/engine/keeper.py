"""The start of a run and its checkpoints; collective, with rank 0 reading and writing."""

import json
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from d3gd.arrays import Array, Floats
from d3gd.distributed.traffic import Traffic
from d3gd.engine.checks import require_state
from d3gd.engine.recorder import Position, Recorder, Totals
from d3gd.engine.setup import Setup
from d3gd.result import Result
from d3gd.runs.folder import RunFolder
from d3gd.state import kinds

_TRAFFIC = "_traffic"  # in a checkpoint: the bytes along every edge


class Keeper:
    """Stores a run in its folder, if any, and measures its time; as a context manager, it locks the folder.

    Args:
        run: The run.
        recorder: Its records.
        x0: The initial models of all agents.
        out: The folder.
        resume: Whether to resume from the folder.
        settings: The settings of the run.
    """

    def __init__(
        self, run: Setup, recorder: Recorder, x0: Floats, *, out: Path | None, resume: bool, settings: dict[str, Any]
    ) -> None:
        self._run, self._recorder, self._out = run, recorder, out
        self._x0: list[Floats] = [x0]
        self._folder: RunFolder | None = None
        self._held = ExitStack()
        self._before, self._began = 0.0, time.perf_counter()
        if out is None:
            return
        identity = run.identity(settings)
        with run.ranks.together():
            if run.ranks.rank == 0:
                place: dict[str, Any] = {"graph": run.graph, "weights": run.weights, "x0": x0, "fixed": run.fixed}
                self._folder = RunFolder(out, resume=resume, settings=settings, identity=identity, **place)

    def __enter__(self) -> Self:
        if self._folder is not None:
            self._held.enter_context(self._folder)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.__exit__(kind, error, trace)  # removes a folder without any results

    def begin(self) -> Position:
        """Return the initial position, or that of the newest checkpoint; call it once."""
        run = self._run
        x0 = self._x0.pop()  # as large as the current models, so not kept
        state = run.method.init(run.net, x0[run.net.agents])
        with run.ranks.together():
            require_state(run.method, run.net, state, run.part.dim, run.name, "init")
            if self._out is not None and run.ranks.ranks > 1:
                kinds(state)  # fail before the first iteration, not at the first checkpoint
        found = self._folder.found() if self._folder is not None else None
        arrays = {} if found is None else dict(found.arrays)
        sent = arrays.pop(_TRAFFIC, None)
        facts = {} if found is None else {**found.facts, "edges": None if sent is None else len(sent)}
        facts = json.loads(run.ranks.broadcast(json.dumps(facts)))
        self._began = time.perf_counter()
        if not facts:
            return Position(0, state, run.net.traffic)  # what it took to start
        log, history = self._recorder.log, self._recorder.history
        log.rows, self._before = [(k, row) for k, row in facts["rows"]], facts["seconds"]
        if history is not None:
            history.restore({} if found is None else found.history, facts["iteration"], run.ranks)
        state = run.halo.split(state, arrays)
        return Position(facts["iteration"], state, self._sent(sent, facts), facts["gradients"])

    def _sent(self, sent: Array | None, facts: dict[str, Any]) -> Traffic:
        """Return the traffic into this rank's agents until a checkpoint that rank 0 has read; collective."""
        run, links = self._run, self._run.net.traffic.links
        if facts["edges"] is None:  # an older version wrote it
            return Traffic(links, elsewhere=facts["bytes_sent"] if run.ranks.rank == 0 else 0, known=False)
        whole = np.empty(0, dtype=np.int64) if sent is None else sent
        whole = run.ranks.gather(whole, [facts["edges"], *[0] * (run.ranks.ranks - 1)])[0]
        return Traffic(links, some=whole[run.halo.block.edges])

    def save(self, at: Position) -> None:
        """Write a checkpoint."""
        if self._out is None or self._run.ranks.any(not np.isfinite(self._run.method.point(at.state)).all()):
            return  # a checkpoint is there to go on from
        arrays, totals = self._run.halo.join(at.state), Totals.at(at, self._run)
        sent = self._run.traffic(at.sent)
        if sent is not None:
            arrays[_TRAFFIC] = sent
        if self._folder is not None:
            recorder = self._recorder
            self._folder.checkpoint(
                at.k,
                arrays,
                totals.bytes_sent,
                self.seconds(),
                recorder.log,
                gradients=totals.gradients,
                history={} if recorder.history is None else recorder.history.arrays(),
            )

    def finish(self, result: Result) -> None:
        """Write the result of a finished run."""
        if self._folder is not None and result.status != "interrupted":
            self._folder.finish(result)

    def seconds(self) -> float:
        """The time that the iterations took, over all resumes."""
        return self._before + time.perf_counter() - self._began
