"""Damage in a comparison's folder: what is compared again is what was compared before, or it is refused."""

import shutil
from pathlib import Path

import d3gd
from d3gd.comparison import figure
from tests.fuzz.case import REFUSED, RIGHT, Case, silent
from tests.fuzz.families.calls import GRAPH, PROBLEM
from tests.fuzz.families.damage import damage

SECONDS = 20.0

_TIMES = {"pace", "cost", "seconds"}
_WHOLE: dict[Path, dict[str, str]] = {}  # the comparison that nobody damaged, and what it found


def prepare(home: Path) -> None:
    figure.draw = lambda comparison, suffixes: dict.fromkeys(suffixes, b"")  # it takes longer than all else
    _WHOLE[home] = _compared(home)


def case(case: Case) -> str:
    rng = case.rng
    ((whole, control),) = _WHOLE.items()
    shutil.copytree(whole, "comparison")
    told = [damage(rng, Path("comparison")) for _ in range(rng.choice([1, 1, 1, 4]))]
    case.tell(", ".join(told))
    verdict, found = case.attempt(_compared, Path("comparison"))
    if verdict == REFUSED:
        return REFUSED
    different = [name for name in control if control[name] != found.get(name)]
    if different:
        silent(f"another result: {', '.join(different[:3])}")
    return RIGHT


def _compared(folder: Path) -> dict[str, str]:
    """What a small comparison finds in numbers, those that are times aside."""
    found = d3gd.compare(
        GRAPH,
        PROBLEM,
        only=["DiDGD", "PushPull"],
        iterations=10,
        seeds=2,
        steps=[0.1, 0.2],
        target=0.5,
        out=folder,
        jobs=1,
        progress=False,
    )
    rows = {(row.method, key): value for row in found.rows for key, value in vars(row).items()}
    curves = {
        (name, run.seed, key): curve.tolist()
        for name, runs in found.runs.items()
        for run in runs
        for key, curve in run.curves.items()
    }
    return {str(name): repr(value) for name, value in {**rows, **curves}.items() if not _TIMES & set(name)}
