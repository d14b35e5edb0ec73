"""Damage in a run's folder, finished or interrupted: what is read back is right, or it is said that it cannot be."""

import itertools
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np

from d3gd.cli import call
from d3gd.metrics import METRICS
from d3gd.result import Result
from tests.fuzz import controls
from tests.fuzz.case import REFUSED, RIGHT, Case, Child, silent
from tests.fuzz.families.damage import damage

SECONDS = 20.0

_NAMES = ("plain", "noisy", "files")  # runs with several checkpoints


_FOLDERS: dict[tuple[str, bool], Path] = {}  # by experiment, and whether it was finished


def prepare(home: Path) -> None:
    for name in _NAMES:
        place = home / name
        place.mkdir(parents=True)
        settings = controls.write(name, place)
        for finished in (True, False):
            folder = place / ("finished" if finished else "interrupted")
            _FOLDERS[name, finished] = _made(settings, folder, stop_after=None if finished else 3)


def case(case: Case) -> str:
    rng = case.rng
    name, finished = rng.choice(_NAMES), rng.random() < 0.5
    shutil.copytree(_FOLDERS[name, finished], "run", symlinks=True)
    told = [damage(rng, Path("run")) for _ in range(rng.choice([1, 1, 1, 1, 2, 5]))]
    action = rng.choice([_loaded, _loaded, _resumed, _resumed, _plotted] if finished else [_resumed])
    if action is _plotted and rng.random() < 0.8:  # a figure takes as long as ten other cases
        action = _loaded
    case.tell(f"{name}, {'finished' if finished else 'interrupted'}: {', '.join(told)}; {action.__name__[1:]}")
    return action(case, name)


def _loaded(case: Case, name: str) -> str:
    verdict, found = case.attempt(Result.load, "run")
    if verdict == REFUSED:
        return REFUSED
    control = Result.load(_FOLDERS[name, True])
    if not controls.same(found, control):
        silent(f"Result.load gives another result: {_difference(found, control)}")
    if (found.settings, found.seconds) != (control.settings, control.seconds):
        silent("Result.load gives other settings or seconds")
    return RIGHT


def _plotted(case: Case, name: str) -> str:
    return case.judge(case.d3gd("plot", "run"))


def _resumed(case: Case, name: str) -> str:
    controls.write(name, case.folder)
    verdict = case.judge(case.d3gd("run", "experiment.toml", "--out", "run", "--resume"))
    if verdict == REFUSED:
        return REFUSED
    verdict, found = case.attempt(Result.load, "run")
    if verdict == REFUSED:
        silent(f"--resume was content with a folder that Result.load is not: {found}")
    if not controls.same(found, controls.result(name)):
        silent(f"resumed to another result: {_difference(found, controls.result(name))}")
    return RIGHT


def _difference(a: Result, b: Result) -> str:
    parts = [name for name in b.metrics if not np.array_equal(a.metrics.get(name), b.metrics[name], equal_nan=True)]
    parts += ["iterations"] if not np.array_equal(a.iterations, b.iterations) else []
    parts += ["models"] if not controls.same_array(a.x, b.x) else []
    parts += [f"status {a.status}"] if a.status != b.status else []
    parts += ["message"] if a.message != b.message else []
    return ", ".join(parts) or "weights, or names of metrics"


def _made(settings: Path, folder: Path, *, stop_after: int | None) -> Path:
    """A run's folder to take copies of; one that was stopped after some records has checkpoints, and no end.

    The clock stands still meanwhile, so that the same seed damages the same bytes in every process.
    """

    def action() -> int:
        time.perf_counter = lambda: 0.0
        records = itertools.count()
        measured = METRICS["stationarity"]

        def stopping(snapshot: Any) -> Any:
            if next(records) == stop_after:
                os.kill(os.getpid(), signal.SIGINT)
            return measured(snapshot)

        METRICS["stationarity"] = stopping
        return call(["run", str(settings), "--out", str(folder)])

    outcome = Child(action).wait()
    assert outcome.code == (0 if stop_after is None else 130), outcome
    return folder
