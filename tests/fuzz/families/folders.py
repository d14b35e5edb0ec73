"""Where results go: folders that are taken, lost, full, shared or forbidden, and runs that are stopped in them."""

import os
import resource
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

from d3gd.result import Result
from tests.fuzz import controls
from tests.fuzz.case import REFUSED, RIGHT, Case, Child, Outcome, silent

SECONDS = 20.0

_NOBODY = 65534
_NAMES = ("plain", "noisy", "files")
_LONG: dict[str, tuple[Result, int]] = {}  # results of long experiments, and the sizes of their largest files


def prepare(home: Path) -> None:
    for name in controls.EXPERIMENTS:
        controls.result(name)


def case(case: Case) -> str:
    ways: dict[Callable[[Case], str], int] = {
        _odd_name: 20,
        _someone_elses: 12,
        _here: 6,
        _stopped: 20,
        _full: 12,
        _deleted: 6,
        _two_at_once: 8,
        _other_settings: 10,
        _refused_before: 8,
        _moved: 4,
    }
    return case.rng.choices(list(ways), list(ways.values()))[0](case)


def _odd_name(case: Case) -> str:
    """Names of folders that file systems and shells do not like."""
    rng = case.rng
    name = rng.choice(_NAMES)
    controls.write(name, case.folder)
    Path("file").write_text("precious")
    Path("loop").symlink_to("loop")
    Path("nowhere").symlink_to("not/there")
    Path("there").mkdir()
    Path("link").symlink_to("there")
    out = rng.choice([
        "", ".", "..", "file", "file/deeper", "loop", "loop/deeper", "nowhere", "link", "there", "there/", "a/b/c/d/e",
        "x" * 255, "x" * 256, "/".join(["x" * 200] * 30), "é中🙂", "a b", "-", "--", "a\nb", "a\tb", "\x1b[31m", "a\x00b",
        "/dev/null", "/dev/full/x", "/proc/x", "/sys/x", "experiment.toml", "inputs", "~", "*", "[red]", "a'b", "\udcff", "con",
        "links.csv/../there", "{}", "%s", "there/../there", "./there",
    ])  # fmt: skip
    case.tell(f"{name} --out {out!r}"[:120])
    before = _contents(case.folder)
    verdict = case.judge(_shown(case.d3gd("run", "experiment.toml", "--out", out), out))
    after = _contents(case.folder)
    if any(after.get(path) != content for path, content in before.items()):
        silent("a file that was there before has changed")
    if verdict == RIGHT:
        _require_same(case, Path(out), name)
    elif set(after) - set(before):
        silent(f"refused, and yet it left {sorted(map(str, set(after) - set(before)))[:3]}")
    return verdict


def _shown(outcome: Outcome, name: str) -> Outcome:
    """What was printed, without a name that the user has typed: only what files hold must not reach the terminal."""
    return Outcome(outcome.code, *(text.replace(name, "OUT") if name else text for text in outcome[1:]))


def _contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _require_same(case: Case, folder: Path, name: str) -> None:
    verdict, found = case.attempt(Result.load, folder)
    if verdict == REFUSED:
        silent(f"the run ended well, and its folder cannot be read: {found}")
    if not controls.same(found, controls.result(name)):
        silent("another result")


def _someone_elses(case: Case) -> str:
    """A folder that holds other things than a run, or may not be written."""
    rng = case.rng
    name = rng.choice(_NAMES)
    controls.write(name, case.folder)
    out = Path("out")
    out.mkdir()
    kind = rng.choice(["metrics.csv", "experiment.toml", "checkpoints", "inputs/graph.csv", "thesis.tex", "result.json",
                       "models.npz", "settings.json", "start.npz", "weights.npz", "read-only", "another's"])  # fmt: skip
    case.tell(f"{name} into a folder with {kind}")
    before = lambda: None  # noqa: E731
    if kind in ("read-only", "another's"):
        case.folder.parent.chmod(0o755)
        case.folder.chmod(0o755)
        out.chmod(0o500 if kind == "read-only" else 0o755)
        before = (lambda: os.setuid(_NOBODY)) if os.geteuid() == 0 else before
    else:
        path = out / kind
        path.parent.mkdir(exist_ok=True)
        path.write_text("precious")
    contents = _contents(out)
    resume = rng.choice([[], ["--resume"]])
    outcome = case.start("run", "experiment.toml", "--out", out, *resume, before=before).wait()
    verdict = case.judge(outcome)
    after = _contents(out)
    if any(after.get(path) != content for path, content in contents.items()):
        silent("a file that was there before has changed")
    if verdict == RIGHT:
        _require_same(case, out, name)
    return verdict


def _here(case: Case) -> str:
    """Results among the user's own files of the same names."""
    rng = case.rng
    name = rng.choice(_NAMES)
    controls.write(name, case.folder)
    mine = rng.sample(["metrics.csv", "inputs/graph.csv", "models.npz", "notes.txt", "weights.npz"], rng.randrange(4))
    for file in mine:
        Path(file).parent.mkdir(exist_ok=True)
        Path(file).write_text("precious") if not Path(file).exists() else None
    out = rng.choice([".", "./", case.folder, "../case", ""])
    case.tell(f"{name} --out {str(out)[-9:]!r} beside {mine}")
    before = _contents(case.folder)
    verdict = case.judge(case.d3gd("run", "experiment.toml", "--out", out, *rng.choice([[], ["--resume"]])))
    after = _contents(case.folder)
    changed = [path.name for path, content in before.items() if after.get(path) != content]
    if changed:
        silent(f"overwrote {changed}")
    if verdict == RIGHT:
        _require_same(case, case.folder, name)
    return verdict


def _long(case: Case, name: str) -> Result:
    """Write an experiment that lasts long enough to be stopped on the way; return its result when it is left alone."""
    controls.write_inputs(case.folder)
    saves = case.rng.choice([10, 50, 400])
    content = controls.experiment(name) | {"iterations": 600, "every": 50, "checkpoint_every": saves}
    Path("experiment.toml").write_text(controls.toml(content))
    if name not in _LONG:
        outcome = case.start("run", "experiment.toml", "--out", "control").wait()
        assert outcome.code == 0, outcome
        largest = max(path.stat().st_size for path in Path("control").rglob("*") if path.is_file())
        _LONG[name] = Result.load("control"), largest
    return _LONG[name][0]


def _require_resumed(case: Case, control: Result, child: Outcome) -> str:
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


def _stopped(case: Case) -> str:
    """Killed, ended or interrupted at any time, once or several times."""
    rng = case.rng
    name = rng.choice(_NAMES)
    control = _long(case, name)
    told = []
    outcome = Outcome(0, "", "")
    for _ in range(rng.choice([1, 1, 1, 3])):
        number = rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
        seconds = rng.choice([0.0, 0.03, 0.3]) * rng.random() + rng.random() * 0.2
        told.append(f"{number.name} after {seconds:.3f} s")
        case.tell(f"{name}: {', '.join(told)}")
        child = case.start("run", "experiment.toml", "--out", "out", *(["--resume"] if len(told) > 1 else []))
        time.sleep(seconds)
        child.kill(number)
        outcome = child.wait()
        if number != signal.SIGKILL and outcome.code not in (-number, 0):  # too late, or lost while Python imports
            case.judge(Outcome(130 if outcome.code == 143 else outcome.code, *outcome[1:]))
        if number == signal.SIGINT and outcome.code not in (0, 130):
            silent(f"an interrupted run ends with {outcome.code}: {outcome.err}")
        if number == signal.SIGTERM and outcome.code not in (0, 130, 143):
            silent(f"SIGTERM ends it with {outcome.code}, and no checkpoint: {outcome.err}")
    return _require_resumed(case, control, outcome)


def _full(case: Case) -> str:
    """No room for a file beyond some size, as on a full disk."""
    rng = case.rng
    name = rng.choice(_NAMES)
    control = _long(case, name)
    limit = rng.randrange(_LONG[name][1])
    case.tell(f"{name}: no file beyond {limit} bytes")
    outcome = case.start(
        "run", "experiment.toml", "--out", "out",
        before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    ).wait()  # fmt: skip
    if case.judge(outcome) == RIGHT:
        silent("there was no room, and nobody was told")
    if any(Path("out").glob("checkpoints/*/*")) and "--resume" not in outcome.err:
        silent(f"nobody was told of --resume: {outcome.err.strip()}")
    return _require_resumed(case, control, outcome)


def _deleted(case: Case) -> str:
    """The folder, or part of it, goes away in mid-run."""
    rng = case.rng
    name = rng.choice(_NAMES)
    control = _long(case, name)
    child = case.start("run", "experiment.toml", "--out", "out")
    _wait_for(child, lambda: any(Path("out").glob("checkpoints/*/*")))
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
    return _require_resumed(case, control, Outcome(0, "", ""))


def _wait_for(child: Child, there: Callable[[], bool]) -> None:
    while child.running and not there():
        time.sleep(0.002)


def _two_at_once(case: Case) -> str:
    """Two runs into one folder: one of them wins, whole."""
    rng = case.rng
    name = rng.choice(_NAMES)
    controls.write(name, case.folder)
    resume = rng.choice([[], ["--resume"]])
    gap = rng.choice([0.0, 0.0, rng.random() * 0.1])
    seeds = ["7", rng.choice(["7", "8"])]
    case.tell(f"{name}: seeds {' and '.join(seeds)} into one folder, {gap:.3f} s apart {' '.join(resume)}")
    children = []
    for seed in seeds:
        children.append(case.start("run", "experiment.toml", "--seed", seed, "--out", "out", *resume))
        time.sleep(gap)
    outcomes = [child.wait() for child in children]
    verdicts = [case.judge(outcome) for outcome in outcomes]
    if RIGHT not in verdicts:
        silent(f"nobody won: {[outcome.err for outcome in outcomes]}")
    found = Result.load("out")
    winners = [seed for seed, verdict in zip(seeds, verdicts, strict=True) if verdict == RIGHT]
    if len(set(winners)) > 1:
        silent("two different runs were both accepted")
    alone = case.judge(case.d3gd("run", "experiment.toml", "--seed", winners[0], "--out", "alone"))
    if alone != RIGHT or not controls.same(found, Result.load("alone")) or found.settings["seed"] != int(winners[0]):
        silent("the folder holds the result of neither")
    return RIGHT


def _other_settings(case: Case) -> str:
    """Resumed with settings that are not those it was started with."""
    rng = case.rng
    name = rng.choice(_NAMES)
    path = controls.write(name, case.folder)
    content = controls.experiment(name)
    assert case.judge(case.d3gd("run", path, "--out", "out")) == RIGHT
    before = _contents(Path("out"))
    changes: dict[str, Callable[[], object]] = {
        "step": lambda: content["algorithm"].update(step_size=0.01),
        "method": lambda: content.update(algorithm={"kind": "DiDGD", "step_size": 0.05}),
        "every": lambda: content.update(every=3),
        "seed": lambda: content.update(seed=5),
        "graph": lambda: content.update(graph={"kind": "complete", "n": 4}, weights={"kind": "metropolis"}),
        "dtype": lambda: content.update(dtype="float32"),
        "metrics": lambda: content.update(metrics=["loss"]),
        "problem": lambda: content.update(problem={"kind": "quadratic", "dim": 5}),
        "conditions": lambda: content.update(conditions={"links": 0.9, "biased": True}),
        "fewer iterations": lambda: content.update(iterations=3),
        "weights": lambda: content.update(weights={"kind": "lazy", "stay": 0.4}),
    }
    what = rng.choice(list(changes))
    case.tell(f"{name}: resumed with another {what}")
    changes[what]()
    path.write_text(controls.toml(content))
    verdict = case.judge(case.d3gd("run", path, "--out", "out", "--resume"))
    if verdict == RIGHT:
        silent("accepted")
    if _contents(Path("out")) != before:
        silent("refused, but it changed the folder")
    path.write_text(controls.toml(controls.experiment(name)))
    return _require_resumed(case, controls.result(name), Outcome(0, "", ""))


def _refused_before(case: Case) -> str:
    """A mistake, refused; its correction takes the same folder."""
    rng = case.rng
    name = rng.choice(_NAMES)
    path = controls.write(name, case.folder)
    mistakes: dict[str, dict[str, object]] = {
        "a negative step": {"algorithm": {"kind": "D3GD", "step_size": -1.0}},
        "too few agents": {"graph": {"kind": "ring", "n": 0}},
        "no such metric": {"metrics": ["lose"]},
        "an unknown target": {"target": {"lose": 1.0}},
        "a metric that the method has not": {"metrics": ["perron_error"], "algorithm": {"kind": "PushPull", "step_size": 0.01}},
        "a metric that the problem has not": {"metrics": ["accuracy"], "problem": {"kind": "quadratic", "dim": 2}},
        "conditions that bias": {"conditions": {"loss": 0.5}, "algorithm": {"kind": "DIGing", "step_size": 0.01}},
        "one-way links": {"algorithm": {"kind": "DGD", "step_size": 0.01}, "weights": {"kind": "uniform"}},
        "a file that is not there": {"problem": {"kind": "softmax", "file": "nowhere.csv"}},
    }  # fmt: skip
    what = rng.choice(list(mistakes))
    case.tell(f"{name}: {what}, then the correction")
    path.write_text(controls.toml(controls.experiment(name) | mistakes[what]))
    if case.judge(case.d3gd("run", path, "--out", "out")) == RIGHT:
        return RIGHT  # no mistake in this experiment
    path.write_text(controls.toml(controls.experiment(name)))
    outcome = case.d3gd("run", path, "--out", "out")
    if case.judge(outcome) != RIGHT:
        silent(f"the correction is refused: {outcome.err}")
    _require_same(case, Path("out"), name)
    return RIGHT


def _moved(case: Case) -> str:
    """Stopped, taken elsewhere, and taken up again from its own copy of the experiment."""
    rng = case.rng
    name = rng.choice(_NAMES)
    control = _long(case, name)
    case.tell(f"{name}: interrupted, moved, and resumed from its own copy")
    child = case.start("run", "experiment.toml", "--out", "first")
    _wait_for(child, lambda: any(Path("first").glob("checkpoints/*/*")))
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
