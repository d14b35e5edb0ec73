"""Every method passes the checks for users' methods."""

import pytest

import d3gd
from tests.helpers.methods import every_method

METHODS = every_method(0.05)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_passes(name):
    report = d3gd.check_method(METHODS[name], show=False)
    assert report.passed, report
