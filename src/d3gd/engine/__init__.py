"""A run: set-up, loop, records and checkpoints, one module each."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from d3gd.algorithms.base import Algorithm
from d3gd.arrays import CSR, Floats
from d3gd.conditions import Conditions
from d3gd.distributed.interrupts import noted
from d3gd.engine.history import Historian
from d3gd.engine.keeper import Keeper
from d3gd.engine.loop import Ending, loop
from d3gd.engine.observers import observed
from d3gd.engine.recorder import Callback, Recorder
from d3gd.engine.setup import Setup, set_up
from d3gd.graphs import Digraph
from d3gd.kernels.threads import threads
from d3gd.metrics import Metric
from d3gd.privacy.settings import Privacy
from d3gd.result import Result
from d3gd.runs.progress import progress_bar
from d3gd.transports.alone import chosen
from d3gd.transports.base import Transport
from d3gd.validation import as_path, count, flag, mapping, one_of

__all__ = ["Callback", "run"]


def run(
    algorithm: Algorithm[Any],
    graph: Digraph,
    problem: Any,
    *,
    iterations: int,
    every: int = 10,
    seed: int = 0,
    weights: CSR | None = None,
    x0: Floats | None = None,
    conditions: Conditions | None = None,
    privacy: Privacy | None = None,
    metrics: Iterable[str] | Mapping[str, Metric] | None = None,
    target: Mapping[str, float] | None = None,
    callbacks: Sequence[Callback] = (),
    progress: bool | None = None,
    out: str | Path | None = None,
    checkpoint_every: int | None = None,
    resume: bool = False,
    notes: Mapping[str, Any] | None = None,
    transport: Transport | None = None,
    dtype: Literal["float64", "float32"] = "float64",
    record_weights: bool = False,
) -> Result:
    """Run an algorithm on a graph and a problem.

    Args:
        algorithm: The method, e.g. ``d3gd.DiDGD(step_size=0.1)``.
        graph: The network; strongly connected, with as many agents as the problem.
        problem: The objectives, e.g. ``d3gd.problems.sigmoid_classification(agents=20)``.
        iterations: Number of iterations.
        every: Iterations between records of the metrics; the first and the last are always recorded.
        seed: The seed of the algorithm's random draws; a problem has its own.
        weights: The initial weights; Metropolis weights by default.
        x0: The initial models, (n, d) or one (d,) for all; by default those of the problem: zeros, or a network's own
            parameters.
        conditions: What an unreliable network does to messages and agents; by default every message arrives at once.
            A method that does not survive them is refused, unless they are declared ``biased``.
        privacy: Clipping and noise with which all messages are differentially private; the metric ``epsilon`` says how
            much. Noise is keyed by the seed, so that a run can be repeated: a simulation of what sites do with secret
            noise.
        metrics: Names from ``d3gd.metrics.METRICS``, or a mapping of names to functions of a snapshot.
        target: Stop at the first record where each of these metrics is at or below its value.
        callbacks: Called with the snapshot at every record; one that returns True stops the run. See
            ``d3gd.callbacks`` for early stopping and trackers of experiments. An object may also have
            ``begin(settings)`` and ``end(result)``, called once on the first rank; after an error the result is None.
        progress: Show a progress bar; by default only on a terminal.
        out: A folder for the run's files: settings, metrics, weights, models and checkpoints.
        checkpoint_every: Iterations between two checkpoints in ``out``; by default a twentieth of the run.
        resume: Continue from the newest complete checkpoint in ``out``, bit for bit as if never interrupted.
        notes: Further values to store in the run's settings.
        transport: The ranks to run on, from ``d3gd.transports.connect()``; by default this process alone. Every
            rank calls ``run`` with the same arguments and keeps only its own agents of the problem. Instead of a whole
            problem, you may pass a function that builds the problem of a list of agents. Rank 0 writes files and shows
            progress.
        dtype: The precision of models and messages; metrics are always computed in ``"float64"``.
        record_weights: Keep the weights over time, thinned to about 200 records, as ``result.history`` and in ``out``.

    Returns:
        The records, final models and weights, and the status; divergence is a status, not an exception. On several
        ranks, all return the same. Ctrl-C at a prompt or in a notebook returns the partial result, ``"interrupted"``;
        elsewhere it is raised. Like SIGTERM, it leaves a checkpoint in ``out``.

    Example:
        >>> import d3gd
        >>> result = d3gd.run(
        ...     d3gd.D3GD(step_size=0.1, rule="global"),
        ...     d3gd.graphs.erdos_renyi(20, 0.6, seed=0),
        ...     d3gd.problems.sigmoid_classification(agents=20, alpha=0.1, seed=0),
        ...     iterations=20,
        ... )
        >>> result.iterations
        array([ 0, 10, 20])
    """
    one_of("dtype", dtype, ("float64", "float32"))
    flag("record_weights", record_weights)
    count("iterations", iterations, least=0)
    count("every", every, least=1)
    count("seed", seed, least=0)
    count("checkpoint_every", 1 if checkpoint_every is None else checkpoint_every, least=1)
    flag("resume", resume)
    flag("progress", False if progress is None else progress)
    notes, target = mapping("notes", notes, "names to values"), mapping("target", target, "metrics to levels")
    folder = None if out is None else as_path("out", out)
    ranks = chosen(transport)
    setup, *start = set_up(
        algorithm,
        graph,
        problem,
        seed=seed,
        weights=weights,
        x0=x0,
        conditions=conditions,
        privacy=privacy,
        metrics=metrics,
        transport=ranks,
        dtype=dtype,
    )
    own: dict[str, Any] = {"iterations": iterations, "every": every, "seed": seed}
    own |= {"record_weights": True} if record_weights else {}
    with ranks.together():
        historian = Historian(every, graph.sources.size) if record_weights else None
        recorder = Recorder(setup, target, callbacks, historian)
    setup.require_same(start[0], own, dict(target), checkpoint_every, out is None, resume)
    return execute(
        setup,
        start,
        recorder,
        settings={**setup.describe(), **own, **notes},
        progress=progress,
        out=folder,
        checkpoint_every=checkpoint_every,
        resume=resume,
    )


def execute(
    setup: Setup,
    start: list[Floats],
    recorder: Recorder,
    *,
    settings: dict[str, Any],
    progress: bool | None,
    out: Path | None,
    checkpoint_every: int | None,
    resume: bool,
) -> Result:
    """Take the iterations of a run that is set up.

    Args:
        setup: The run.
        start: The initial models of all agents; taken out of the list, because they are as large as the current ones.
        recorder: Its records.
        settings: Its settings, with the numbers of ``iterations`` and of those between records, ``every``.
        progress: Whether to show a progress bar.
        out: The folder of the run.
        checkpoint_every: Iterations between checkpoints.
        resume: Whether to continue from the newest one.
    """
    ranks, iterations, every = setup.ranks, int(settings["iterations"]), int(settings["every"])
    if out is not None and not ranks.resumes:
        ranks.resumes = "resume=True continues from the last checkpoint"
    keeper = Keeper(setup, recorder, start.pop(), out=out, resume=resume, settings=settings)
    with (
        keeper,
        observed(recorder.callbacks, settings, ranks) as ended,
        _steady(ranks),
        noted(together=ranks.ranks > 1, terminate=out is not None) as signals,
        progress_bar(progress if ranks.rank == 0 else False, iterations, setup.name) as show,
    ):
        ending = loop(
            setup,
            keeper.begin(),
            iterations=iterations,
            every=every,
            save_every=checkpoint_every or max(every, iterations // 20),
            recorder=recorder,
            keeper=keeper,
            noted=signals,
            show=show,
        )
        result = _result(setup, ending, recorder, settings, keeper.seconds())
        keeper.finish(result)
        ended(result)
    return result


@contextmanager
def _steady(ranks: Transport) -> Iterator[None]:
    """Set threads, so that results do not depend on their number, and silence floating-point warnings."""
    with (
        # Products are small: BLAS threads would cost more than they gain, and one keeps results bitwise equal.
        threadpool_limits(1, "blas"),
        threads(None if ranks.ranks == 1 else 1),  # several ranks already fill the cores
        np.errstate(over="ignore", invalid="ignore", divide="ignore"),
    ):
        yield


def _result(run: Setup, ending: Ending, recorder: Recorder, settings: dict[str, Any], seconds: float) -> Result:
    state, log, historian = ending.at.state, recorder.log, recorder.history
    graph, sent = run.graph, run.traffic(ending.at.sent)
    return Result(
        iterations=log.iterations(),
        metrics=log.arrays(),
        x=run.halo.everyone(run.method.point(state)),
        weights=run.matrix(state),
        status=ending.status,
        message="; ".join(filter(None, (ending.message, run.biased))),
        seconds=seconds,
        settings=settings,
        history=None if historian is None else historian.history(graph, run.whole),
        traffic=None if sent is None else csr_array((sent, graph.sources, graph.indptr), shape=(graph.n, graph.n)),
    )
