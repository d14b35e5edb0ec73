"""Every method at its own best step: comparisons (:mod:`d3gd.comparison`) in a few settings of the study.

Steps are tuned on other seeds than those that are reported, on a grid that grows until no best step is at its edge.
"""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from d3gd.comparison.compare import compare
from d3gd.comparison.result import Comparison
from d3gd.errors import RecordError
from d3gd.problems import Problem
from d3gd.runs import files
from studies.settings import (
    ALL,
    BASELINE,
    CENTRAL,
    DATA,
    DECAYING,
    DEFAULT,
    FROST_,
    HARDSHIPS,
    IDEAL,
    METHODS,
    PLANNED,
    PUSH_PULL,
    SURVIVORS,
    VICTIMS,
    network,
)

ITERATIONS, SEEDS = 1000, 5
LOSS = "loss 0.3"
_FIELD = (BASELINE, DECAYING, DEFAULT, PLANNED, FROST_, PUSH_PULL, "FRSD", CENTRAL)


class Setting(NamedTuple):
    """A data set, network, batch size and hardship."""

    data: str
    network: str
    batch: int | None
    hardship: str

    def __str__(self) -> str:
        batch = "full batch" if self.batch is None else f"batch {self.batch}"
        return f"{self.data}, {self.network}, {batch}" + ("" if self.hardship == IDEAL else f", {self.hardship}")


_PLACES = (
    ("digits", "Erdos-Renyi 0.2 (20)", IDEAL),
    ("digits", "one-way ring (10)", IDEAL),
    ("digits", "bridge (16)", IDEAL),
    ("cancer", "torus (16)", IDEAL),
    ("gaussian", "regular, degree 3 (30)", IDEAL),
    ("sigmoid", "geometric (24)", IDEAL),
    ("digits", "Erdos-Renyi 0.3 (20)", LOSS),
    ("digits", "Erdos-Renyi 0.3 (20)", ALL),
)
SETTINGS = tuple(Setting(data, network, batch, hard) for data, network, hard in _PLACES for batch in (None, 16))
SHOWN = Setting("digits", "Erdos-Renyi 0.3 (20)", None, LOSS)  # in the figure of methods under loss
QUICK = (Setting("gaussian", "regular, degree 3 (30)", None, IDEAL), SHOWN)


def comparisons(
    wanted: Sequence[Setting], *, seeds: int, out: Path, jobs: int | None = None, progress: bool | None = None
) -> dict[Setting, Comparison]:
    """Compare the methods in each setting; runs that ``out/tuned`` holds are not repeated."""
    found = {}
    for number, setting in enumerate(wanted, start=1):
        print(f"tuned steps, {number} of {len(wanted)}: {setting}", flush=True)
        names = _methods(setting)
        found[setting] = compare(
            partial(network, setting.network),
            partial(_problem, setting),
            conditions=HARDSHIPS[setting.hardship],
            methods={name: METHODS[name].make for name in names},
            only=names,
            iterations=ITERATIONS,
            seeds=seeds,
            quick=True,  # a grid of seven steps, which grows as needed, and two seeds for tuning
            out=_folder(setting, out),
            jobs=jobs,
            progress=progress,
        )
    return found


def finished(wanted: Sequence[Setting], out: Path) -> list[Setting]:
    """Return the settings in which ``out`` holds the comparison of all methods."""
    found = []
    for setting in wanted:
        with suppress(RecordError):
            content = files.read_json(_folder(setting, out) / "compare.json")
            found += [setting] if {row["method"] for row in content["rows"]} >= set(_methods(setting)) else []
    return found


def _methods(setting: Setting) -> tuple[str, ...]:
    return _FIELD if setting.hardship == IDEAL else (*SURVIVORS, *VICTIMS)


def _folder(setting: Setting, out: Path) -> Path:
    return out / "tuned" / "-".join("".join(c for c in str(setting) if c not in ",()").split())


def _problem(setting: Setting, seed: int) -> Problem:
    return DATA[setting.data](network(setting.network, seed).n, seed, setting.batch)
