"""Where results go: folders that are taken, lost, full, shared or forbidden, and runs that are stopped in them."""

from pathlib import Path

from tests.fuzz import controls
from tests.fuzz.case import Case
from tests.fuzz.families.folders import again, stopped, taken

SECONDS = 20.0

_WAYS = {
    taken.odd_name: 20,
    taken.someone_elses: 12,
    taken.here: 6,
    stopped.signalled: 20,
    stopped.full: 12,
    stopped.deleted: 6,
    stopped.moved: 4,
    again.two_at_once: 8,
    again.other_settings: 10,
    again.refused_before: 8,
}


def prepare(home: Path) -> None:
    for name in controls.EXPERIMENTS:
        controls.result(name)


def case(case: Case) -> str:
    return case.rng.choices(list(_WAYS), list(_WAYS.values()))[0](case)
