"""Runs that are stopped, or lose their folder, on the way."""

import resource
import shutil
import signal
import time
from pathlib import Path

from d3gd.result import Result
from tests.fuzz import controls
from tests.fuzz.case import RIGHT, Case, Outcome, silent
from tests.fuzz.families.folders.running import LONG, NAMES, long, require_resumed, wait_for


def signalled(case: Case) -> str:
    """Killed, ended or interrupted at any time, once or several times."""
    rng = case.rng
    name = rng.choice(NAMES)
    control = long(case, name)
    told = []
    outcome = Outcome(0, "", "")
    for _ in range(rng.choice([1, 1, 1, 3])):
        number = rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
        seconds = rng.choice([0.0, 0.03, 0.3]) * rng.random() + rng.random() * 0.2
        told.append(f"{number.name} after {seconds:.3f} s")
        case.tell(f"{name}: {', '.join(told)}")
        saved = _checkpoints()
        child = case.start("run", "experiment.toml", "--out", "out", *(["--resume"] if len(told) > 1 else []))
        time.sleep(seconds)
        child.kill(number)
        outcome = child.wait()
        begun = Path("out").exists() or "KeyboardInterrupt" not in outcome.err  # before that, Python alone is to blame
        if number != signal.SIGKILL and outcome.code not in (-number, 0) and begun:
            case.judge(outcome)
        if number == signal.SIGINT and outcome.code not in (0, 130) and begun:
            silent(f"an interrupted run ends with {outcome.code}: {outcome.err}")
        early = outcome.code == -signal.SIGTERM and _checkpoints() == saved  # nothing was computed that could be lost
        if number == signal.SIGTERM and outcome.code not in (0, 130, 143) and not early:
            silent(f"SIGTERM ends it with {outcome.code}, and no checkpoint: {outcome.err}")
    return require_resumed(case, control, outcome)


def _checkpoints() -> set[str]:
    return {path.name for path in Path("out").glob("checkpoints/*")}


def full(case: Case) -> str:
    """No room for a file beyond some size, as on a full disk."""
    rng = case.rng
    name = rng.choice(NAMES)
    control = long(case, name)
    limit = rng.randrange(LONG[name][1])
    case.tell(f"{name}: no file beyond {limit} bytes")
    outcome = case.start(
        "run", "experiment.toml", "--out", "out",
        before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    ).wait()  # fmt: skip
    if case.judge(outcome) == RIGHT:
        silent("there was no room, and nobody was told")
    if any(Path("out").glob("checkpoints/*/*")) and "--resume" not in outcome.err:
        silent(f"nobody was told of --resume: {outcome.err.strip()}")
    return require_resumed(case, control, outcome)


def deleted(case: Case) -> str:
    """The folder, or part of it, goes away in mid-run."""
    rng = case.rng
    name = rng.choice(NAMES)
    control = long(case, name)
    child = case.start("run", "experiment.toml", "--out", "out")
    wait_for(child, lambda: any(Path("out").glob("checkpoints/*/*")))
    target = rng.choice([Path("out"), Path("out"), Path("out/checkpoints")])
    way = rng.choice(["deleted", "moved"])
    case.tell(f"{name}: {target} {way} in mid-run")
    seen = child.running
    if way == "moved":
        target.rename("elsewhere")
    else:
        shutil.rmtree(target, ignore_errors=True)
    verdict = case.judge(child.wait())
    if verdict == RIGHT and seen:
        found, result = case.attempt(Result.load, "out")
        if found == RIGHT and not controls.same(result, control):
            silent("another result")
    if not any(Path("out").rglob("*")):
        return verdict
    return require_resumed(case, control, Outcome(0, "", ""))


def moved(case: Case) -> str:
    """Stopped, taken elsewhere, and taken up again from its own copy of the experiment."""
    rng = case.rng
    name = rng.choice(NAMES)
    control = long(case, name)
    case.tell(f"{name}: interrupted, moved, and resumed from its own copy")
    child = case.start("run", "experiment.toml", "--out", "first")
    wait_for(child, lambda: any(Path("first").glob("checkpoints/*/*")))
    child.kill(rng.choice([signal.SIGINT, signal.SIGKILL]))
    child.wait()
    for file in ("links.csv", "table.csv", "weights.npz", "experiment.toml"):
        Path(file).unlink()
    Path("first").rename("second")
    outcome = case.d3gd("run", "second/experiment.toml", "--out", "second", "--resume")
    if case.judge(outcome) != RIGHT:
        silent(f"it cannot be resumed: {outcome.err}")
    if not controls.same(Result.load("second"), control):
        silent("resumed to another result")
    return RIGHT
