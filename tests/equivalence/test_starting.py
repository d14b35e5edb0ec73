"""How ranks connect, and how long they wait."""

import math

import pytest

import d3gd
from tests.helpers.launching import ROOT, launch, require

SCRIPT = ROOT / "tests/equivalence/starting.py"
LATE = "no message from rank 2 for 2 s"
launches = pytest.mark.xdist_group("launches")


def errors(err):
    return [line for line in err.splitlines() if line.startswith("error: ")]


@pytest.mark.parametrize("seconds", [math.nan, 0.0, -1.0, -math.inf, "60", None])
def test_a_timeout_is_a_positive_number(seconds):
    with pytest.raises(d3gd.errors.SettingsError, match="timeout"):
        d3gd.transports.connect("alone", timeout=seconds)


@launches
@pytest.mark.parametrize("seconds", ["inf", "1e308"])
def test_any_positive_number_is_a_timeout(seconds, tmp_path):
    require("mpi")
    code, out, err = launch("mpi", 2, SCRIPT, "nobody", seconds, cwd=tmp_path)
    assert code == 0, err
    assert sorted(out.split()) == ["0/2", "1/2"]


@launches
@pytest.mark.parametrize(
    ("launcher", "who", "message"),
    [
        ("mpi", 0, "rank 1: MPI did not start within 2 s"),
        ("mpi", 2, "rank 0: MPI did not start within 2 s"),
        ("torch", 0, "rank 1: rank 0 did not start within 2 s"),
    ],
)
def test_a_rank_that_leaves_before_the_start_ends_all_with_one_message(launcher, who, message, tmp_path):
    require(launcher)
    code, _, err = launch(launcher, 3, SCRIPT, who, 2, cwd=tmp_path)
    assert code != 0
    assert [message in line for line in errors(err)] == [True], err


@launches
def test_a_process_group_that_is_there_is_used_and_late_ranks_find_each_other(tmp_path):
    require("torch")
    code, out, err = launch("fork", 3, SCRIPT, "own group", 2, cwd=tmp_path)
    assert code != 0
    assert sorted(out.split()) == ["0/3", "1/3", "2/3"]
    assert [LATE in line for line in errors(err)] == [True], err


@launches
def test_a_broken_connection_is_named_also_where_the_process_group_has_no_address(tmp_path):
    """There is no store in which ranks could ask who is left, so each names the connection that broke for it first."""
    require("torch", "mpi")  # whose launcher numbers the ranks, and starts faster
    code, _, err = launch("mpi", 3, SCRIPT, "group by file", 2, tmp_path / "meeting", cwd=tmp_path)
    assert code != 0
    found = errors(err)
    assert found, err
    assert all("the connection to rank " in line and " broke" in line for line in found), err
