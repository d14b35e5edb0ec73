"""The study's parts and their trials.

A *trial* is one method on one network, data set, batch size, hardship, step size and seed; its curves are stored in one
file (:mod:`d3gd.runs.trials`). A *part* is every combination of some of these; parts may share trials. Steps are tuned
elsewhere: :mod:`studies.tuned`.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from d3gd import __version__, engine
from d3gd.algorithms.identity import describe
from d3gd.digest import digest
from d3gd.runs import files
from d3gd.runs.trials import run_missing, stored
from studies.settings import (
    BASELINE,
    CENTRAL,
    DATA,
    DEFAULT,
    FIELD,
    FROST_,
    HARDSHIPS,
    IDEAL,
    METHODS,
    NETWORKS,
    PLANNED,
    PUSH_PULL,
    SINGLE,
    SINGLES,
    SURVIVORS,
    VICTIMS,
    WEIGHTS,
)

RECORDS = 20  # of each run, besides the first
BATCHES = (None, 16)
_DIGITS = tuple(("digits", network) for network in list(NETWORKS)[:10])
_SMALL = tuple(("quadratic", network) for network in list(NETWORKS)[-5:])


@dataclass(frozen=True)
class Trial:
    """One run."""

    data: str
    network: str
    batch: int | None
    hardship: str
    step: float
    method: str
    seed: int
    iterations: int

    def run(self) -> dict[str, Any]:
        """Run it; return its settings, status and curves, ready for JSON."""
        graph = NETWORKS[self.network](self.seed)
        problem = DATA[self.data](graph.n, self.seed, self.batch)
        method = METHODS[self.method]
        result = engine.run(
            method.make(self.step),
            graph,
            problem,
            weights=None if method.weights is None else method.weights(graph),
            iterations=self.iterations,
            every=max(1, self.iterations // RECORDS),
            seed=self.seed,
            conditions=HARDSHIPS[self.hardship],
            metrics=("stationarity", "disagreement", "bytes"),
            dtype=method.dtype,
            progress=False,
        )
        curves = {"iterations": result.iterations, **result.metrics}
        lists = {name: values.tolist() for name, values in curves.items()}
        return {"trial": asdict(self), "dim": problem.dim, "status": result.status, **lists}

    @property
    def key(self) -> str:
        """What tells it from trials with other settings, and of another version."""
        return digest(asdict(self), describe(METHODS[self.method].make(self.step)), RECORDS, __version__)

    @property
    def file(self) -> str:
        """The name of its file."""
        where = f"{self.data} {self.network} {self.batch or 'all'} {self.hardship} {self.iterations}"
        words = f"{self.method} {where} step {self.step:g} seed {self.seed}"
        return "-".join("".join(c if c.isalnum() or c == "." else " " for c in words).split()) + ".json"


@dataclass(frozen=True)
class Part:
    """Every combination of what it lists, on seeds 0, 1, ..."""

    places: tuple[tuple[str, str], ...]  # data set, network
    methods: tuple[str, ...]
    steps: tuple[float, ...]
    seeds: int
    batches: tuple[int | None, ...] = BATCHES
    hardships: tuple[str, ...] = (IDEAL,)
    iterations: int = 1000

    @property
    def trials(self) -> list[Trial]:
        """Its trials."""
        return [
            Trial(*place, batch, hardship, step, method, seed, self.iterations)
            for place in self.places
            for batch in self.batches
            for hardship in self.hardships
            for step in self.steps
            for method in self.methods
            for seed in range(self.seeds)
        ]


# The rules were developed on the digits on the first five networks.
DEVELOPED = _DIGITS[:5]
HELD_OUT = (
    *_DIGITS[5:],
    ("cancer", "Erdos-Renyi 0.2 (20)"),
    ("cancer", "torus (16)"),
    ("wine", "one-way ring (10)"),
    ("gaussian", "Erdos-Renyi 0.2 (20)"),
    ("gaussian", "regular, degree 3 (30)"),
    ("sigmoid", "Erdos-Renyi 0.6 (20)"),
    ("sigmoid", "geometric (24)"),
)
BOTTLENECKS = (("digits", "bridge (16)"), ("digits", "two-way path (20)"), ("digits", "star (30)"))
LARGE = (
    ("digits", "Erdos-Renyi 0.05 (100)"),
    ("gaussian", "exponential (100)"),
    ("gaussian", "geometric (300)"),
    ("sigmoid", "regular, degree 4 (300)"),
)
GROUPS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "developed": DEVELOPED,
    "held out": HELD_OUT,
    "bottlenecks": BOTTLENECKS,
    "large": LARGE,
}
_HARD = tuple(name for name in HARDSHIPS if name != IDEAL)
PARTS: Mapping[str, Part] = {
    "equal steps": Part((*DEVELOPED, *HELD_OUT), FIELD, (0.03, 0.1, 0.5), 3),
    "first version": Part((*DEVELOPED, *HELD_OUT), (BASELINE, DEFAULT), (0.03, 0.1, 0.5), 5),
    "bottlenecks": Part(BOTTLENECKS, FIELD, (0.1, 0.5), 3),
    "large": Part(LARGE, (BASELINE, DEFAULT, FROST_, PUSH_PULL, "FRSD", CENTRAL), (0.1,), 2),
    "weights": Part(_DIGITS, (BASELINE, DEFAULT, PLANNED, *WEIGHTS, DEFAULT + SINGLE), (0.1, 0.5), 3),
    "hardships": Part(_SMALL, (*SURVIVORS, *VICTIMS), (0.1,), 3, (None,), _HARD, 4000),
    "hardships, batches": Part(
        (("digits", "Erdos-Renyi 0.2 (20)"), ("digits", "star (12)"), ("digits", "torus (16)")),
        SURVIVORS,
        (0.1, 0.5),
        2,
        (8,),
        _HARD,
        2000,
    ),
    "precision": Part(_SMALL, SINGLES, (0.1,), 1, (None,), iterations=100_000),
}
_FEW = (DEVELOPED[1], DEVELOPED[2], HELD_OUT[0], ("sigmoid", "Erdos-Renyi 0.6 (20)"))
_QUICK = {  # places of each part
    "equal steps": _FEW,
    "first version": _FEW,
    "large": LARGE[:1],
    "weights": DEVELOPED[1:3],
    "hardships": _SMALL[:2],
    "hardships, batches": (("digits", "star (12)"),),
    "precision": _SMALL[:1],
}


def parts(*, quick: bool) -> dict[str, Part]:
    """Return the parts of a study; a quick one has fewer places, and one seed."""
    if not quick:
        return dict(PARTS)
    return {name: replace(part, places=_QUICK.get(name, part.places), seeds=1) for name, part in PARTS.items()}


def finished(parts: Mapping[str, Part], out: Path) -> dict[str, Part]:
    """Return the parts as far as ``out`` holds them: on fewer seeds, or, on one seed, in fewer places."""

    def there(part: Part) -> bool:
        return all((out / "trials" / trial.file).exists() for trial in part.trials)

    found: dict[str, Part] = {}
    for name, part in parts.items():
        fewer = (replace(part, seeds=seeds) for seeds in range(part.seeds, 0, -1))
        once = replace(part, seeds=1)
        places = tuple(place for place in part.places if there(replace(once, places=(place,))))
        some = next((part for part in fewer if there(part)), replace(once, places=places))
        found |= {name: some} if some.places else {}
    return found


def run_trials(
    parts: Mapping[str, Part], *, out: Path, jobs: int | None = None, progress: bool | None = None
) -> dict[Trial, dict[str, Any]]:
    """Run the trials that ``out/trials`` does not hold yet, first seeds first, and return the results of all.

    Args:
        parts: The parts of the study.
        out: The folder.
        jobs: Number of processes; by default one per core.
        progress: Show progress, as a bar on a terminal and in lines elsewhere; by default only on a terminal.
    """
    wanted = sorted({trial: None for part in parts.values() for trial in part.trials}, key=lambda trial: trial.seed)
    folder = files.make_folder(out / "trials")
    paths = {folder / trial.file: trial for trial in wanted}
    kept = {file: content for file in paths if (content := stored(file)) is not None}
    there = {file: content for file, content in kept.items() if content.get("key") == paths[file].key}
    print(f"{len(wanted)} trials" + (f", {len(there)} of them already in {out}" if there else ""), flush=True)
    found = run_missing(paths, _run, there=there, jobs=jobs, progress=progress)
    return {paths[file]: content for file, content in found.items()}


def _run(trial: Trial) -> dict[str, Any]:
    return {"key": trial.key, **trial.run()}
