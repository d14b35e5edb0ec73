"""`make` installs the same everywhere: all versions are pinned."""

import sys
from importlib.metadata import distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
OURS = {"d3gd", "pip"}  # the package itself, and what comes with an interpreter
LINES = [line.partition("#")[0].strip() for line in (ROOT / "constraints.txt").read_text().splitlines()]
PINS = {canonicalize_name(pin.name): pin for pin in map(Requirement, filter(None, LINES))}
INSTALLED = {
    canonicalize_name(found.metadata["Name"]): found.version
    for found in distributions()
    if Path(str(found.locate_file("."))).is_relative_to(sys.prefix)
}


def test_everything_installed_is_pinned_to_its_version():
    assert {name: version for name, version in INSTALLED.items() if name not in OURS and name not in PINS} == {}
    other = {name for name, pin in PINS.items() if name in INSTALLED and INSTALLED[name] not in pin.specifier}
    assert other == set()


def test_each_pin_names_one_version():
    operators = [[specifier.operator for specifier in pin.specifier] for pin in PINS.values()]
    assert operators == [["=="]] * len(PINS)
