"""The catalogue finds every module of the package, and all lists of methods use it."""

from dataclasses import dataclass

import pytest

import d3gd
from d3gd.algorithms import base, catalogue
from d3gd.config import experiment
from d3gd.errors import D3GDError


def test_every_method_is_exported_under_its_name_and_nothing_else_is():
    around = {"Algorithm", "Compressed", "Local", "Momentum", "AdamW"}  # what methods derive from or are given to
    homes = {name for name, home in d3gd._HOMES.items() if home.startswith("algorithms.")} - around
    assert homes == set(catalogue.methods())
    assert all(getattr(d3gd, name) is method for name, method in catalogue.methods().items())
    assert homes < set(d3gd.__all__)


def test_settings_files_can_name_every_method():
    assert experiment.KINDS["algorithm"] == catalogue.methods()


def test_variants_are_all_combinations_with_the_defaults_first():
    found = catalogue.variants(d3gd.FROST)
    assert len(found) == len({tuple(words.values()) for words in found}) == 12
    assert d3gd.FROST(step_size=0.1, **found[0]) == d3gd.FROST(step_size=0.1)
    assert catalogue.variants(d3gd.EXTRA) == [{}]


def test_a_class_that_lacks_a_name_is_not_left_out_silently(monkeypatch):
    @dataclass(frozen=True)
    class Half:
        step_size: float

    monkeypatch.setattr(Half, "__module__", base.__name__)
    monkeypatch.setattr(base, "Half", Half, raising=False)
    with pytest.raises(D3GDError, match=r"base\.Half has a step size but no 'exact'"):
        catalogue.methods.__wrapped__()
