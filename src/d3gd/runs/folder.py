"""The folder of a run: what was started, and where it can go on."""

import json
from pathlib import Path
from typing import Any, Self

import numpy as np

from d3gd.arrays import CSR, Array, Floats
from d3gd.digest import digest
from d3gd.errors import RecordError
from d3gd.graphs import Digraph
from d3gd.metrics import Log
from d3gd.result import Result
from d3gd.runs import files


class RunFolder:
    """Settings and start written once, checkpoints along the way; nothing already there is ever overwritten.

    Args:
        path: The folder; it must be new or empty, unless ``resume``.
        resume: Go on with the run that the folder holds, if it holds one.
        settings: What to write to ``settings.json``.
        identity: What two runs must share to be the same experiment, besides their start.
        graph: The network.
        weights: The initial weights.
        x0: The initial models.
    """

    def __init__(
        self,
        path: Path,
        *,
        resume: bool,
        settings: dict[str, Any],
        identity: Any,
        graph: Digraph,
        weights: CSR,
        x0: Floats,
    ) -> None:
        started = (path / "settings.json").exists()
        if started and not resume:
            raise RecordError(f"{path} already holds a run; resume it (resume=True, --resume) or choose another folder")
        start = {"indptr": graph.indptr, "sources": graph.sources, "weights": weights.data, "x0": x0}
        experiment = digest(identity, *start.values())
        self.path = files.make_folder(path)
        self._every = int(settings["every"])
        self._checkpoints = files.Checkpoints(path / "checkpoints", experiment)
        if started and str(files.read_arrays(path / "start.npz")["experiment"]) != experiment:
            raise RecordError(
                f"{path} holds another experiment (its algorithm, graph, weights, problem, seed, start or metrics "
                "differ); give the same settings to resume, or another folder"
            )
        self._found = self._checkpoints.newest() if resume else None
        if self._found is not None and self._found[0]["iteration"] > settings["iterations"]:
            raise RecordError(
                f"{path} already holds {self._found[0]['iteration']} iterations, more than the "
                f"{settings['iterations']} asked for; ask for as many or more, or choose another folder"
            )
        if not started:
            files.write_arrays(path / "start.npz", {**start, "experiment": np.array(experiment)})
        files.write_json(path / "settings.json", settings)

    def found(self) -> tuple[dict[str, Any], dict[str, Array]] | None:
        """Return the manifest and the arrays of the newest checkpoint, or None; its rows are those before it."""
        if self._found is None:
            return None
        manifest, arrays = self._found
        # The checkpoint's own record is made again, so that targets and callbacks have their say on it.
        rows = [(k, row) for k, row in manifest["rows"] if k % self._every == 0 and k < manifest["iteration"]]
        return {**manifest, "rows": rows}, arrays

    def checkpoint(
        self, k: int, arrays: dict[str, Array], bytes_sent: int, seconds: float, log: Log, *, gradients: int
    ) -> None:
        """Write everything that the rest of the run depends on."""
        facts = {"bytes_sent": bytes_sent, "gradients": gradients, "seconds": seconds, "rows": log.rows}
        self._checkpoints.write(k, arrays, json.loads(json.dumps(facts, default=_plain)))

    def finish(self, result: Result) -> None:
        """Write the result of the run."""
        result.save(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...


def _plain(value: Array | np.generic) -> Any:
    return value.tolist()
