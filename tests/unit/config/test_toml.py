"""Settings files that are out of proportion."""

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
}


@pytest.mark.parametrize("name", DEEP)
def test_keys_of_many_parts_are_refused_before_they_are_parsed(tmp_path, monkeypatch, name):
    path = tmp_path / "experiment.toml"
    path.write_text(DEEP[name])
    monkeypatch.setattr("tomllib.loads", lambda text: pytest.fail("memory grows with the square of the parts"))
    with pytest.raises(SettingsError, match="nested"):
        read_toml(path)


def test_nesting_without_end_is_refused(tmp_path):
    path = tmp_path / "experiment.toml"
    path.write_text("a = " + "[{a = " * MANY + "1" + "}]" * MANY)
    with pytest.raises(SettingsError, match="not valid TOML"):
        read_toml(path)


@pytest.mark.parametrize("text", ["[" + ", ".join(["0.5"] * MANY) + "]", '"' + "One. " * 90 + '"'])
def test_long_values_are_not_taken_for_keys(text):
    assert value_of(text) != text
