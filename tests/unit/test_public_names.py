"""What a user finds in the package."""

import subprocess
import sys
from types import ModuleType

import pytest

import d3gd


def public():
    return {name for name in dir(d3gd) if not name.startswith("__")}


def test_everything_that_is_listed_is_there_and_is_ours():
    for name in public() - {"torch"}:  # which needs PyTorch
        value = getattr(d3gd, name)
        home = value.__name__ if isinstance(value, ModuleType) else value.__module__
        assert home.partition(".")[0] == "d3gd", name


def test_importing_all_names_brings_what_is_listed_but_does_not_replace_pytorch():
    scope = {}
    exec("from d3gd import *", scope)
    assert scope.keys() - {"__builtins__"} == set(d3gd.__all__) == public() - {"torch"}


def test_plots_and_all_others_need_no_import_of_their_own():
    names = sorted(public() - {"torch"})
    code = "import d3gd\n" + "\n".join(f"d3gd.{name}" for name in names)
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'DGD2'"):
        d3gd.DGD2  # noqa: B018
