"""The scripts of the documentation, as modules."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def script():
    """A script of docs/scripts, by its name."""
    return lambda name: runpy.run_path(str(ROOT / f"docs/scripts/{name}.py"))
