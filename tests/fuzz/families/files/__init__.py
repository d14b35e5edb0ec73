"""Files that an experiment names: links, weights and tables, damaged, crafted, endless, or no files at all."""

from pathlib import Path

from tests.fuzz import controls
from tests.fuzz.case import Case
from tests.fuzz.families.files import archives, links, special, tables, weights

SECONDS = 20.0

_WAYS = {
    special.special: 8,
    links.links: 20,
    links.weighted: 5,
    links.changing: 5,
    weights.sparse: 35,
    weights.dense: 10,
    tables.table: 20,
    tables.archive: 15,
}


def prepare(home: Path) -> None:
    controls.result("files")
    home.mkdir()
    archives.HOME.append(home)


def case(case: Case) -> str:
    return case.rng.choices(list(_WAYS), list(_WAYS.values()))[0](case)
