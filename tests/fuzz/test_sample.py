"""A few attacks of each family, always the same ones; and the fuzzer notices what it is there for."""

import inspect
import sys

import pytest

import d3gd
from tests.fuzz import report
from tests.fuzz.__main__ import SHARES, planned
from tests.fuzz.families.calls import calls
from tests.fuzz.families.decoys import DECOYS
from tests.fuzz.pool import Runner

pytestmark = [
    pytest.mark.xdist_group("fuzz"),
    pytest.mark.skipif(sys.platform != "linux", reason="attacks use Linux's limits, pipes and processes"),
]
CASES = {
    "toml": 50,
    "files": 50,
    "flips": 25,
    "comparisons": 6,
    "folders": 6,
    "cli": 40,
    "api": 80,
    "user": 100,
}


@pytest.fixture(scope="module")
def runner():
    with Runner() as runner:
        yield runner


@pytest.mark.parametrize("family", CASES)
def test_attacks_are_refused_in_words_or_change_nothing(runner, family):
    verdicts = [runner.run(family, seed) for seed in range(CASES[family])]
    failed = [report.line(verdict) for verdict in verdicts if verdict.kind not in report.PASSED]
    assert not failed, "\n".join(failed)


@pytest.mark.parametrize("name", DECOYS)
def test_the_fuzzer_notices(runner, name):
    verdict = runner.run("decoys", list(DECOYS).index(name))
    assert verdict.kind == name.split()[0], verdict
    assert verdict.attack == "a decoy"


def test_every_public_function_is_attacked():
    elsewhere = {"problems.from_functions", "problems.torch_module"}  # with users' own code; with the tests of PyTorch
    without_arguments = {"data.breast_cancer", "data.digits", "data.wine"}
    rooms = (d3gd.graphs, d3gd.weights, d3gd.problems, d3gd.data, d3gd.topologies, d3gd.theory)
    public = {
        f"{room.__name__.removeprefix('d3gd.')}.{name}"
        for room in rooms
        for name, value in vars(room).items()
        if inspect.isfunction(value) and name in getattr(room, "__all__", _own(room))
    }
    assert public - elsewhere - without_arguments <= set(calls())


def _own(room):
    """Names without an underscore that a module without ``__all__`` defines itself."""
    return {n for n, v in vars(room).items() if not n.startswith("_") and getattr(v, "__module__", "") == room.__name__}


def test_cases_are_known_from_the_seed_alone():
    assert planned(1000, 3) == planned(1000, 3)
    assert len(set(planned(1000, 3)) | set(planned(1000, 4))) == 2000
    assert {family for family, _ in planned(1000, 0)} == {*SHARES, "ranks"}
