"""Ranks that do not do the same are told at once, or wait for each other."""

import numpy as np
import pytest

from tests.helpers.launching import ROOT, launch
from tests.pytorch import unlike

pytestmark = pytest.mark.xdist_group("launches")

SCRIPT = ROOT / "tests/pytorch/unlike.py"


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unlike")
    code, out, err = launch("fork", len(unlike.BATCHES), SCRIPT, folder / "numbers.npz", cwd=folder)
    assert code == 0, out + err
    with np.load(folder / "numbers.npz") as file:
        return dict(file)


@pytest.mark.parametrize("name", unlike.ALGORITHMS)
def test_a_rank_out_of_data_goes_on_with_gradients_of_zero(name, numbers):
    assert np.array_equal(numbers[f"{name} joined"], numbers[f"{name} by_hand"])
    steps = 2 * max(unlike.BATCHES)
    assert numbers[f"{name} joined iteration"].tolist() == [steps] * len(unlike.BATCHES)


def test_a_step_that_one_rank_must_skip_is_skipped_by_all(numbers):
    assert np.array_equal(numbers["skipped"], numbers["fewer"])
    assert numbers["skipped counts"].tolist() == [[4, 1]] * 3
    assert numbers["fewer counts"].tolist() == [[3, 0]] * 3


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("lr at once", "SettingsError: rank 1 has lr 0.05 and rank 0 has 0.1"),
        ("lr later", "neither by a rank's own loss nor over its own number of batches"),
        ("iteration", "SettingsError: rank 1 is at iteration 2 and rank 0 at 1"),
        ("version", "TransportError: rank 1 has a state of a version of d3gd other than rank 0"),
        ("file", "SettingsError: rank 1 takes a step while rank 0 loads a state; is the file of rank 1 missing?"),
        ("scheduler", "must be given to join(scheduler)"),
    ],
)
def test_differences_are_told_on_all_ranks(name, message, numbers):
    first, *others = numbers[f"told {name}"].tolist()
    assert message in first
    assert all(text.startswith("ToldElsewhereError: rank 0") for text in others)


def test_a_nan_ends_all_before_it_is_sent(tmp_path):
    code, _, err = launch("fork", 3, SCRIPT, cwd=tmp_path)
    assert code != 0
    assert err.strip().splitlines() == [err.strip()]
    assert "rank 1: this step would make the model NaN or infinite" in err
