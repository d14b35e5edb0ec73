"""Settings files that are out of proportion."""

import resource

import pytest

from d3gd.config.toml import read_toml, value_of
from d3gd.errors import SettingsError

MANY = 20_000
DEEP = {
    "dotted": ".".join("a" * MANY) + " = 1",
    "spaced": " . ".join("a" * MANY) + " = 1",
    "quoted": ".".join(['"a b"'] * MANY) + " = 1",
    "escaped": ".".join([r'"\""'] * MANY) + " = 1",
    "literal": ".".join(["'a b'"] * MANY) + " = 1",
    "header": "[" + ".".join("a" * MANY) + "]",
    "inline": "a = {" + ".".join("a" * MANY) + " = 1}",
    "by turns": "a = " + "[{a = " * MANY + "1" + "}]" * MANY,
}


@pytest.mark.parametrize("name", DEEP)
def test_nesting_is_refused_before_it_takes_memory(tmp_path, name):
    path = tmp_path / "experiment.toml"
    path.write_text(DEEP[name])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(SettingsError, match=r"nested|recursion"):
        read_toml(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kB


@pytest.mark.parametrize("text", ["[" + ", ".join(["0.5"] * MANY) + "]", '"' + "One. " * 90 + '"'])
def test_long_values_are_not_taken_for_keys(text):
    assert value_of(text) != text
