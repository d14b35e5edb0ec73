import stat

import numpy as np
import pytest

import d3gd
from d3gd.errors import SettingsError
from d3gd.privacy.ledger import _AHEAD, Ledger

PRIVACY = d3gd.Privacy(clip=1.0, noise=2.0)


def problem():
    return d3gd.problems.mixture_classification(agents=1, samples=20, features=3, classes=2, batch=5, test_samples=0)


def evaluated(path, times, privacy=PRIVACY, *, resume=False, ends=True):
    ledger = Ledger(path, privacy, resume=resume)
    private = ledger.private(problem())
    found = [private.gradients(np.zeros((1, 6)), k) for k in range(times)]
    if ends:
        ledger.__exit__(None, None, None)
    return ledger, np.array(found)


def test_only_the_owner_can_read_it(tmp_path):
    evaluated(tmp_path / "privacy.json", 3)
    assert stat.S_IMODE((tmp_path / "privacy.json").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["privacy.json"]


def test_all_runs_on_the_data_are_counted(tmp_path):
    path = tmp_path / "privacy.json"
    evaluated(path, 3)
    ledger, _ = evaluated(path, 4)
    assert ledger.epsilon() == PRIVACY.epsilon(steps=7, sample=0.25)
    other = d3gd.Privacy(clip=1.0, noise=3.0)
    assert evaluated(path, 2, other)[0].epsilon() > PRIVACY.epsilon(steps=7, sample=0.25)


def test_a_crash_counts_too_much_never_too_little(tmp_path):
    path = tmp_path / "privacy.json"
    evaluated(path, _AHEAD + 5, ends=False)
    after, _ = evaluated(path, 0, resume=True)
    steps = 2 * _AHEAD + 2  # written twice: at the first evaluation, and at the first that was not yet in it
    assert after.epsilon() == PRIVACY.epsilon(steps=steps, sample=0.25)
    assert steps >= _AHEAD + 5


def test_noise_is_drawn_anew_by_a_new_run_and_repeated_by_one_that_resumes(tmp_path):
    path = tmp_path / "privacy.json"
    _, first = evaluated(path, 3)
    _, resumed = evaluated(path, 3, resume=True)
    _, new = evaluated(path, 3)
    evaluated(path, 0)  # a start that came to nothing
    assert np.array_equal(evaluated(path, 3, resume=True)[1], new)
    _, elsewhere = evaluated(tmp_path / "other.json", 3)
    assert np.array_equal(first, resumed)
    assert not np.isclose(first, new).any()
    assert not np.isclose(first, elsewhere).any()  # the public seed is the same


@pytest.mark.parametrize(
    "change", [("2.0", "-2.0"), ('"format": 1', '"format": 2'), ("[", ""), ('"secret": "', '"secret": "z')]
)
def test_a_damaged_file_is_refused(change, tmp_path):
    path = tmp_path / "privacy.json"
    evaluated(path, 1)
    path.write_text(path.read_text().replace(*change))
    with pytest.raises(SettingsError, match="no record of privacy"):
        Ledger(path, PRIVACY, resume=True)
