"""Folders with odd names, with other things in them, or that may not be written."""

from pathlib import Path

from tests.fuzz import controls
from tests.fuzz.case import RIGHT, Case, Outcome, silent
from tests.fuzz.families.folders.running import NAMES, contents, require_same


def odd_name(case: Case) -> str:
    """Names of folders that file systems and shells do not like."""
    rng = case.rng
    name = rng.choice(NAMES)
    controls.write(name, case.folder)
    Path("file").write_text("precious")
    Path("loop").symlink_to("loop")
    Path("nowhere").symlink_to("not/there")
    Path("there").mkdir()
    Path("link").symlink_to("there")
    out = rng.choice([
        "", ".", "..", "file", "file/deeper", "loop", "loop/deeper", "nowhere", "link", "there", "there/", "a/b/c/d/e",
        "x" * 255, "x" * 256, "/".join(["x" * 200] * 30), "é中🙂", "--", "a\nb", "a\tb", "\x1b[31m", "a\x00b",
        "/dev/null", "/dev/full/x", "/proc/x", "/sys/x", "experiment.toml", "inputs", "~", "*", "[red]", "\udcff",
        "a'b", "links.csv/../there", "{}", "%s", "there/../there", "./there",
    ])  # fmt: skip
    case.tell(f"{name} --out {out!r}"[:120])
    before = contents(case.folder)
    verdict = case.judge(_shown(case.d3gd("run", "experiment.toml", "--out", out), out))
    after = contents(case.folder)
    if any(after.get(path) != content for path, content in before.items()):
        silent("a file that was there before has changed")
    if verdict == RIGHT:
        require_same(case, Path(out), name)
    elif set(after) - set(before):
        silent(f"refused, and yet it left {sorted(map(str, set(after) - set(before)))[:3]}")
    return verdict


def _shown(outcome: Outcome, name: str) -> Outcome:
    """What was printed, without a name that the user has typed: only what files hold must not reach the terminal."""
    return Outcome(outcome.code, *(text.replace(name, "OUT") if name else text for text in outcome[1:]))


def someone_elses(case: Case) -> str:
    """A folder that holds other things than a run, or may not be written."""
    rng = case.rng
    name = rng.choice(NAMES)
    controls.write(name, case.folder)
    out = Path("out")
    out.mkdir()
    kind = rng.choice([
        "metrics.csv", "experiment.toml", "checkpoints", "inputs/graph.csv", "thesis.tex", "result.json", "models.npz",
        "settings.json", "start.npz", "weights.npz", "read-only", "another's",
    ])  # fmt: skip
    case.tell(f"{name} into a folder with {kind}")
    closed = kind in ("read-only", "another's")
    if closed:
        out.chmod(0o500 if kind == "read-only" else 0o755)
    else:
        path = out / kind
        path.parent.mkdir(exist_ok=True)
        path.write_text("precious")
    before = contents(out)
    resume = rng.choice([[], ["--resume"]])
    outcome = case.start("run", "experiment.toml", "--out", out, *resume, rights=not closed).wait()
    verdict = case.judge(outcome)
    after = contents(out)
    if any(after.get(path) != content for path, content in before.items()):
        silent("a file that was there before has changed")
    if verdict == RIGHT:
        require_same(case, out, name)
    return verdict


def here(case: Case) -> str:
    """Results among the user's own files of the same names."""
    rng = case.rng
    name = rng.choice(NAMES)
    controls.write(name, case.folder)
    mine = rng.sample(["metrics.csv", "inputs/graph.csv", "models.npz", "notes.txt", "weights.npz"], rng.randrange(4))
    for file in mine:
        Path(file).parent.mkdir(exist_ok=True)
        Path(file).write_text("precious") if not Path(file).exists() else None
    out = rng.choice([".", "./", case.folder, "../case", ""])
    case.tell(f"{name} --out {str(out)[-9:]!r} beside {mine}")
    before = contents(case.folder)
    verdict = case.judge(case.d3gd("run", "experiment.toml", "--out", out, *rng.choice([[], ["--resume"]])))
    after = contents(case.folder)
    changed = [path.name for path, content in before.items() if after.get(path) != content]
    if changed:
        silent(f"overwrote {changed}")
    if verdict == RIGHT:
        require_same(case, case.folder, name)
    return verdict
