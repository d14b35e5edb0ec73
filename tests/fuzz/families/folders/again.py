"""A second run in the same folder: at the same time, with other settings, or after a mistake."""

import time
from collections.abc import Callable
from pathlib import Path

from d3gd.result import Result
from tests.fuzz import controls
from tests.fuzz.case import RIGHT, Case, Outcome, silent
from tests.fuzz.families.folders.running import NAMES, contents, require_resumed, require_same


def two_at_once(case: Case) -> str:
    """Two runs into one folder: one of them wins, whole."""
    rng = case.rng
    name = rng.choice(NAMES)
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


def other_settings(case: Case) -> str:
    """Resumed with settings that are not those it was started with."""
    rng = case.rng
    name = rng.choice(NAMES)
    path = controls.write(name, case.folder)
    content = controls.experiment(name)
    assert case.judge(case.d3gd("run", path, "--out", "out")) == RIGHT
    before = contents(Path("out"))
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
    if contents(Path("out")) != before:
        silent("refused, but it changed the folder")
    path.write_text(controls.toml(controls.experiment(name)))
    return require_resumed(case, controls.result(name), Outcome(0, "", ""))


def refused_before(case: Case) -> str:
    """A mistake, refused; its correction takes the same folder."""
    rng = case.rng
    name = rng.choice(NAMES)
    path = controls.write(name, case.folder)
    mistakes: dict[str, dict[str, object]] = {
        "a negative step": {"algorithm": {"kind": "D3GD", "step_size": -1.0}},
        "too few agents": {"graph": {"kind": "ring", "n": 0}},
        "no such metric": {"metrics": ["lose"]},
        "an unknown target": {"target": {"lose": 1.0}},
        "a metric of other methods": {"metrics": ["design"], "algorithm": {"kind": "PushPull", "step_size": 0.1}},
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
    require_same(case, Path("out"), name)
    return RIGHT
