"""Runs long enough to be disturbed, and what must be true of their folders afterwards."""

import time
from collections.abc import Callable
from pathlib import Path

from d3gd.result import Result
from tests.fuzz import controls
from tests.fuzz.case import REFUSED, RIGHT, Case, Child, Outcome, silent

NAMES = ("plain", "noisy", "files")
LONG: dict[str, tuple[Result, int]] = {}  # results of long experiments, and the sizes of their largest files


def long(case: Case, name: str) -> Result:
    """Write an experiment that lasts long enough to be stopped on the way; return its result when it is left alone."""
    controls.write_inputs(case.folder)
    saves = case.rng.choice([10, 50, 400])
    content = controls.experiment(name) | {"iterations": 600, "every": 50, "checkpoint_every": saves}
    Path("experiment.toml").write_text(controls.toml(content))
    if name not in LONG:
        outcome = case.start("run", "experiment.toml", "--out", "control").wait()
        assert outcome.code == 0, outcome
        largest = max(path.stat().st_size for path in Path("control").rglob("*") if path.is_file())
        LONG[name] = Result.load("control"), largest
    return LONG[name][0]


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def require_same(case: Case, folder: Path, name: str) -> None:
    verdict, found = case.attempt(Result.load, folder)
    if verdict == REFUSED:
        silent(f"the run ended well, and its folder cannot be read: {found}")
    if not controls.same(found, controls.result(name)):
        silent("another result")


def require_resumed(case: Case, control: Result, child: Outcome) -> str:
    """Whatever happened to the folder, it can be taken up again, and ends as if nothing had."""
    resumed = case.start("run", "experiment.toml", "--out", "out", "--resume").wait()
    if case.judge(resumed) != RIGHT:
        silent(f"it cannot be resumed: {resumed.err.strip()}; before that: {child.err.strip()}")
    if not controls.same(Result.load("out"), control):
        silent("resumed to another result")
    left = [path.name for path in Path("out").rglob("*") if path.name.endswith((".tmp", "~"))]
    if left:
        silent(f"temporary files stay behind: {left[:3]}")
    return RIGHT


def wait_for(child: Child, there: Callable[[], bool]) -> None:
    while child.running and not there():
        time.sleep(0.002)
