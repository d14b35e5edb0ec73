"""The only loop."""

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from threadpoolctl import threadpool_limits

from d3gd import weights as weighting
from d3gd.algorithms.base import Algorithm, require_admissible
from d3gd.algorithms.identity import describe
from d3gd.arrays import CSR, Floats
from d3gd.conditions import Conditions
from d3gd.conditions.method import Under
from d3gd.conditions.network import ConditionedNetwork
from d3gd.digest import digest
from d3gd.distributed.halo import Halo
from d3gd.distributed.interrupts import noted
from d3gd.distributed.parts import SharedProblem, is_factory, part_of
from d3gd.errors import ProblemError, SettingsError, WeightsError
from d3gd.graphs import Digraph
from d3gd.kernels.threads import threads
from d3gd.metrics import Log, Metric, Snapshot, choose
from d3gd.network import Network
from d3gd.problems import Problem
from d3gd.result import Result, Status
from d3gd.runs import files
from d3gd.runs.folder import RunFolder
from d3gd.runs.progress import progress_bar
from d3gd.state import kinds
from d3gd.transports.alone import Alone
from d3gd.transports.base import InterruptedTogetherError, Transport
from d3gd.validation import count, one_of

Callback: TypeAlias = Callable[[Snapshot], bool | None]

_RUNAWAY = 1e12  # how far beyond its start a model may go before the run counts as diverged
_LOOK = 10  # iterations between two looks at whether it has


class _Position(NamedTuple):
    """Where a run stands; replaced as a whole, so that an interrupt always finds it consistent."""

    k: int
    state: Any
    bytes_sent: int


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
) -> Result:
    """Run an algorithm on a graph and a problem.

    Args:
        algorithm: The method, e.g. ``d3gd.DiDGD(step_size=0.1)``.
        graph: Who hears whom; strongly connected, one agent per agent of the problem.
        problem: The objectives, e.g. ``d3gd.problems.sigmoid_classification(agents=20)``.
        iterations: How many to run.
        every: Record the metrics every so many iterations, and at the first and the last.
        seed: The key of the algorithm's own random draws; a problem has its own.
        weights: The initial weights; Metropolis weights by default.
        x0: The initial models, (n, d) or one (d,) for all; by default where the problem starts: zeros, or a
            network's own parameters.
        conditions: What the network does to messages and agents; by default everything arrives at once. A method that
            does not survive them is refused, unless they say that it may be biased.
        metrics: Names from ``d3gd.metrics.METRICS``, or a mapping of names to functions of a snapshot.
        target: Stop at the first record where each of these metrics is at or below its value.
        callbacks: Called with the snapshot at every record; one that returns True stops the run.
        progress: Show a progress bar; by default only on a terminal.
        out: A folder for the run's files: settings, metrics, weights, models and checkpoints.
        checkpoint_every: Iterations between two checkpoints in ``out``; by default a twentieth of the run.
        resume: Continue from the newest complete checkpoint in ``out``, bit for bit as if never interrupted.
        notes: What else to keep in the run's settings.
        transport: The ranks to run on, from ``d3gd.transports.connect()``; by default this process alone. Every
            rank calls ``run`` with the same arguments and keeps only its own agents of the problem; instead of a
            whole problem, pass a function of a list of agents that makes theirs. Rank 0 writes and shows progress.
        dtype: The precision of models and messages; metrics are always computed in ``"float64"``.

    Returns:
        The records, final models and weights, and a status; divergence is a status, not an exception. On several
        ranks, all return the same.

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
    count("iterations", iterations, least=0)
    count("every", every, least=1)
    count("seed", seed, least=0)
    count("checkpoint_every", 1 if checkpoint_every is None else checkpoint_every, least=1)
    ranks = transport or Alone()
    with ranks.together():
        matrix = _checked_network(graph, weights)
        require_admissible(algorithm, graph, matrix)
        method, net, biased = _placed(algorithm, graph, matrix, conditions, seed=seed, transport=ranks, dtype=dtype)
        made = ranks.ranks == 1 and not is_factory(problem)
        part = problem if made else part_of(problem, net.agents, graph.n)
        start = _checked_start(graph, len(net.agents), part, x0).astype(net.dtype)
    ranks.require_same(str(part.dim), "models of a length")
    halo = net.halo
    whole = part if ranks.ranks == 1 else SharedProblem(part, halo, graph.n)
    with ranks.together():
        log = Log(choose(metrics, whole, graph.n))
        _require_recorded(target or {}, log)
    settings = {
        "algorithm": describe(algorithm),
        "graph": {
            "agents": graph.n,
            "links": graph.link_count,
            **({"labels": list(graph.labels)} if graph.labels else {}),
        },
        "problem": whole.describe() if isinstance(whole, Problem) else {"kind": type(whole).__name__},
        "iterations": iterations,
        "every": every,
        "seed": seed,
        "dtype": dtype,
        **({} if conditions is None else {"conditions": conditions.describe()}),
        **({"biased": biased} if biased else {}),
        "metrics": log.names,
        "versions": files.versions(),
        **(notes or {}),
    }
    plan = [describe(algorithm), graph.indptr, graph.sources, matrix.data, start, iterations, every, seed, log.names]
    plan += [settings.get("conditions"), dict(target or {}), checkpoint_every, out is None, resume, dtype]
    ranks.require_same(digest(*plan), "an experiment (algorithm, network, start or settings)")
    with threadpool_limits(1, "blas"):
        at, seconds_before = _Position(0, method.init(net, start[net.agents]), 0), 0.0
    folder = None
    if out is not None:
        data = whole.fingerprint() if isinstance(whole, Problem) else settings["problem"]
        identity = [settings["algorithm"], data, every, seed, dtype, log.names]
        identity += [settings["conditions"]] if conditions is not None else []
        with ranks.together():
            if ranks.ranks > 1:
                kinds(at.state)  # better to learn before the first iteration than at the first checkpoint
            if ranks.rank == 0:
                folder = RunFolder(
                    Path(out),
                    resume=resume,
                    settings=settings,
                    identity=identity,
                    graph=graph,
                    weights=matrix,
                    x0=start,
                )
        facts, arrays = (folder.found() if folder is not None else None) or ({}, {})
        facts = json.loads(ranks.told(json.dumps(facts)))
        if facts:
            log.rows, seconds_before = [(k, row) for k, row in facts["rows"]], facts["seconds"]
            sent_before = facts["bytes_sent"] if ranks.rank == 0 else 0
            at = _Position(facts["iteration"], halo.split(at.state, arrays), sent_before)
    net.bytes_sent = at.bytes_sent
    saves = checkpoint_every or max(every, iterations // 20)
    limit = _RUNAWAY * (1 + float(np.abs(start).max(initial=0)))
    del start  # as large as the models of today
    status: Status | None = None
    message = ""
    began = time.perf_counter()

    def seconds() -> float:
        return seconds_before + time.perf_counter() - began

    def save() -> None:
        if out is not None:
            arrays, sent = halo.join(at.state), int(halo.total(np.array(at.bytes_sent)))
            if folder is not None:
                folder.checkpoint(at.k, arrays, sent, seconds(), log)

    with (
        # Products here are small: threads would cost more than they bring, and one keeps the bits the same.
        threadpool_limits(1, "blas"),
        threads(None if ranks.ranks == 1 else 1),  # several ranks are expected to fill the cores by themselves
        np.errstate(over="ignore", invalid="ignore", divide="ignore"),
        noted(ranks.ranks > 1) as interrupted,
        folder or nullcontext(),  # and with it the folder's lock
        progress_bar(progress if ranks.rank == 0 else False, iterations, type(algorithm).__name__) as show,
    ):
        try:
            while status is None:
                k, x = at.k, method.point(at.state)
                due = k % every == 0 or k >= iterations
                runaway = False
                if due or k % _LOOK == 0:
                    runaway, stopped = ranks.any_of(not np.abs(x).max() <= limit, interrupted())
                    if stopped:
                        save()
                        raise InterruptedTogetherError
                if (due or runaway) and not log.has(k):
                    seen = halo.everyone(x).astype(np.float64, copy=False).view()
                    seen.setflags(write=False)  # who looks on must not steer
                    snapshot = Snapshot(
                        k=k,
                        x=seen,
                        weights=graph.matrix(halo.everywhere(method.weights(net, at.state))),
                        scale=_gathered(halo, method.scale(net, at.state)),
                        problem=whole,
                        step_size=getattr(algorithm, "step_size", float("nan")),
                        bytes_sent=int(halo.total(np.array(at.bytes_sent))),
                    )
                    row = log.add(snapshot)
                    show(k, _headline(row))
                    if target and all(row[name] <= level for name, level in target.items()):
                        status = "target"
                    stops = [callback(snapshot) for callback in callbacks]  # each is called, whatever others say
                    if callbacks and ranks.any(any(stops)):
                        status = "stopped"
                    del seen, snapshot  # or these models would stay until the next record
                if runaway:
                    status, message = "diverged", f"a model left all bounds by iteration {k}; try a smaller step size"
                elif k >= iterations:
                    status = status or "completed"
                if status is not None or (k > 0 and k % saves == 0):
                    save()
                if status is None:
                    state = method.step(net, partial(_gradients, net, part, x, k), at.state, k)
                    at = _Position(k + 1, state, net.bytes_sent)
        except WeightsError as error:  # the refined weights no longer make a network
            status, message = "diverged", f"iteration {at.k}: {error}"
        except KeyboardInterrupt:
            if ranks.ranks == 1:
                save()
            raise
        result = Result(
            iterations=log.iterations(),
            metrics=log.arrays(),
            x=halo.everyone(method.point(at.state)),
            weights=graph.matrix(halo.everywhere(method.weights(net, at.state))),
            status=status,
            message="; ".join(filter(None, (message, biased))),
            seconds=seconds(),
            settings=settings,
        )
        if folder is not None:
            folder.finish(result)
    return result


def _gradients(net: Network, problem: Any, x: Floats, k: int) -> Floats:
    return net.precise(problem.gradients(x, k))


def _placed(
    algorithm: Algorithm[Any],
    graph: Digraph,
    weights: CSR,
    conditions: Conditions | None,
    **how: Any,
) -> tuple[Algorithm[Any], Network, str]:
    """Return the algorithm as it runs on its network, that network, and what to say about both."""
    how["sees_all"] = algorithm.needs == "all agents"
    if conditions is not None and not isinstance(conditions, Conditions):
        raise SettingsError(
            f"conditions is a {type(conditions).__name__}; pass d3gd.Conditions(loss=0.1), for instance"
        )
    if conditions is None:
        return algorithm, Network(graph, weights, **how), ""
    biased = conditions.require_survival(algorithm)
    conditions.require_fit(graph)
    net = ConditionedNetwork(graph, weights, conditions, **how)
    return Under(algorithm, net, pauses="pauses" in conditions.hardships), net, biased


def _checked_network(graph: Digraph, weights: CSR | None) -> CSR:
    """Return the initial weights, once they and the graph fit together."""
    graph.require_strongly_connected()
    return weighting.metropolis(graph) if weights is None else weighting.check(weights, graph)


def _checked_start(graph: Digraph, agents: int, problem: Any, x0: Floats | None) -> Floats:
    """Return the initial models of all agents, once they and a problem with some of them fit together."""
    if problem.agents != agents:
        raise ProblemError(
            f"the problem has {problem.agents} agents but the graph has {graph.n}; make both the same size"
        )
    shape = (graph.n, problem.dim)
    if x0 is None and isinstance(problem, Problem):
        x0 = problem.start()
    start = np.zeros(shape) if x0 is None else np.asarray(x0, dtype=np.float64)
    if start.shape not in (shape, shape[1:]):
        raise ProblemError(f"x0 has shape {start.shape}; give {shape}, or {shape[1:]} to start all agents alike")
    if not np.isfinite(start).all():
        raise ProblemError("x0 holds NaN or infinite numbers; give finite ones")
    return np.array(np.broadcast_to(start, shape))


def _gathered(halo: Halo, scale: Floats | None) -> Floats | None:
    return None if scale is None else halo.everyone(scale)


def _require_recorded(target: Mapping[str, float], log: Log) -> None:
    missing = [name for name in target if name not in log.names]
    if missing:
        raise SettingsError(
            f"target names {missing[0]!r}, which this run does not record; choose among {', '.join(log.names)}"
        )


def _headline(row: Mapping[str, Any]) -> str:
    shown = [name for name in row if name.startswith(("stationarity", "disagreement"))]
    return "  ".join(f"{name} {row[name]:.2e}" for name in shown)
