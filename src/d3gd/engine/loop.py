"""The main loop."""

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from d3gd.distributed.interrupts import Noted, TerminatedError
from d3gd.engine.checks import require_state
from d3gd.engine.gradients import Gradients
from d3gd.engine.keeper import Keeper
from d3gd.engine.recorder import Position, Recorder
from d3gd.engine.setup import Setup
from d3gd.errors import ProblemError, WeightsError
from d3gd.result import Status
from d3gd.runs.progress import Show
from d3gd.schedules import at as value_at
from d3gd.state import flatten
from d3gd.transports.base import InterruptedTogetherError

_LOOK = 10  # iterations between checks for divergence and signals
_SMALL = 1 << 20  # bytes of a state that is kept between checks, to find the cause of divergence


class Ending(NamedTuple):
    """Where and how a run ended."""

    at: Position
    status: Status
    message: str


def loop(
    run: Setup,
    at: Position,
    *,
    iterations: int,
    every: int,
    save_every: int,
    recorder: Recorder,
    keeper: Keeper,
    noted: Callable[[], Noted],
    show: Show,
) -> Ending:
    """Iterate from a position until the end, a target, a callback, divergence or a signal."""
    method, net, ranks = run.method, run.net, run.ranks
    gradient = _gradients(run)
    gradient.count, net.traffic = at.gradients, at.sent
    started, kept = False, net.repeatable and not ranks.any(not _is_small(at.state))
    last = at.k - 1
    sound: Position | None = None
    status: Status | None = None
    message = ""
    try:
        while status is None:
            k = min(net.begin(at.k), iterations)
            at = at._replace(k=k, state=net.renewed(method, at.state))
            x = method.point(at.state)
            due = _passed(last, k, every) or k >= iterations
            runaway = False
            if due or k % _LOOK == 0:
                runaway, *signals = ranks.any_of(not np.abs(x).max() <= run.bound, *noted())
                if any(signals):
                    keeper.save(at)
                    raise TerminatedError if signals[1] else InterruptedTogetherError
                if kept and not runaway:
                    sound = at
            if due or runaway:
                status = recorder.record(at, x, show)
            if runaway:
                status, message = "diverged", _reason(run, gradient, sound, at)
            elif k >= iterations:
                status = status or "completed"
            if status is not None or (k > 0 and _passed(last, k, save_every)):
                keeper.save(at)
            last = k
            if status is None:
                gradient.begin(x, k, watched=not started)
                state = net.take(method, gradient, at.state, k)
                at = Position(k + 1, state, net.traffic, gradient.count)
                if not started:
                    _check(run, gradient, state)
                    started = True
    except WeightsError as error:  # the refined weights no longer connect the network
        status, message = "diverged", f"iteration {at.k}: {_from_any(run, gradient.trouble) or error}"
    except (KeyboardInterrupt, TerminatedError) as signal:
        if ranks.ranks > 1:
            raise
        keeper.save(at)
        if isinstance(signal, TerminatedError) or not recorder.log.rows or not _is_interactive():
            raise
        recorder.add(at, method.point(at.state))
        status, message = "interrupted", f"stopped by Ctrl-C at iteration {at.k}"
    return Ending(at, status, message)


def _passed(last: int, k: int, every: int) -> bool:
    """Whether a multiple of ``every`` has been reached since the last iteration; some may have been left out."""
    return k // every > last // every


def _gradients(run: Setup) -> Gradients:
    shape = (len(run.net.agents), run.part.dim)
    return Gradients(
        run.part.gradients, shape, run.net.dtype, source=type(run.part).__name__, agents=run.net.agents, bound=run.bound
    )


def _check(run: Setup, gradient: Gradients, state: Any) -> None:
    """Raise an error if the first step found an invalid problem or returned an invalid state; collective."""
    with run.ranks.together():
        if gradient.trouble:
            raise ProblemError(f"{gradient.trouble}; correct the problem or its data")
        require_state(run.method, run.net, state, run.part.dim, run.name, "step")


def _reason(run: Setup, gradient: Gradients, sound: Position | None, at: Position) -> str:
    """Return why the models diverged, by repeating the last iterations with a check of every gradient.

    So gradients need not be checked in every iteration of every run.
    """
    state = None if sound is None else sound.state
    for k in range(at.k if sound is None else sound.k, at.k):
        gradient.begin(run.method.point(state), k, watched=True)
        state = run.method.step(run.net, gradient, state, k)
    gradient.count, run.net.traffic = at.gradients, at.sent
    try_smaller = f"try a smaller step size{_suggested(run.algorithm, at.k)}"
    trouble = _from_any(run, gradient.trouble)
    if trouble:
        return f"{trouble}; correct the problem or its data, or, if the models have diverged, {try_smaller}"
    return f"the models diverged by iteration {at.k}; {try_smaller}"


def _from_any(run: Setup, text: str) -> str:
    """Return the first non-empty text of any rank; collective."""
    texts = [text] if run.ranks.ranks == 1 else run.ranks.texts(text)
    return next(filter(None, texts), "")


def _suggested(algorithm: Any, k: int) -> str:
    size = getattr(algorithm, "step_size", None)
    return "" if size is None else f", such as {value_at(size, k) / 10:.3g}"


def _is_small(state: Any) -> bool:
    return sum(array.nbytes for array in flatten(state).values()) <= _SMALL


def _is_interactive() -> bool:
    """Whether Python is interactive: a prompt of Python, IPython or a notebook; all of them set this."""
    return "ps1" in vars(sys)
