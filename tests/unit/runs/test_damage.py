"""Bit flips anywhere in a run's folder: reading gives the right result or an error."""

import shutil

import numpy as np
import pytest

import d3gd
from d3gd.config.experiment import load
from d3gd.errors import D3GDError
from tests.helpers.folders import dying_at, run, same

EXPERIMENT = """
iterations = 40
every = 5
checkpoint_every = 10
[graph]
kind = "edges"
file = "links.csv"
[problem]
kind = "quadratic"
dim = 2
[algorithm]
kind = "D3GD"
step_size = 0.05
"""


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A finished run, an interrupted one, and one of a settings file, which brings the files it names."""
    home = tmp_path_factory.mktemp("folders")
    run(home / "finished", 40)
    with pytest.raises(RuntimeError):
        run(home / "interrupted", 40, callbacks=[dying_at(35)])
    (home / "links.csv").write_text("source,target\nA,B\nB,C\nC,A\nA,C\n")
    (home / "experiment.toml").write_text(EXPERIMENT)
    load(home / "experiment.toml").run(home / "repeatable")
    return home


def flipped(folder, rng):
    """Flip one bit of a folder, each of its files as likely as another, and tell which."""
    path = rng.choice(sorted(path for path in folder.rglob("*") if path.is_file()))
    data = bytearray(path.read_bytes())
    place = int(rng.integers(8 * len(data)))
    data[place // 8] ^= 1 << place % 8
    path.write_bytes(data)
    return f"bit {place} of {path}"


def attacked(folders, name, tmp_path, flips, action):
    """Flip bits, one at a time; return what was said of those that were refused. The others gave the right result."""
    rng, refused = np.random.default_rng(sum(name.encode())), []
    right = d3gd.Result.load(folders / ("repeatable" if name == "repeatable" else "finished"))
    for i in range(flips):
        copy = tmp_path / str(i)
        shutil.copytree(folders / name, copy)
        told = flipped(copy, rng)
        try:
            same(action(copy), right)
        except D3GDError as error:
            refused.append(str(error))
        except Exception as error:
            raise AssertionError(told) from error
    assert not any("\n" in text for text in refused)
    return refused


def test_a_damaged_result_is_right_or_refused(folders, tmp_path):
    assert attacked(folders, "finished", tmp_path, 60, d3gd.Result.load)


@pytest.mark.parametrize("name", ["finished", "interrupted"])
def test_a_damaged_run_goes_on_to_the_right_result(folders, name, tmp_path):
    refused = attacked(folders, name, tmp_path, 20, lambda folder: run(folder, 40, resume=True))
    assert not refused  # one checkpoint of two is whole, and all else can be written again


def test_a_damaged_experiment_is_repeated_right_or_refused(folders, tmp_path):
    def repeat(folder):
        return load(folder / "experiment.toml").run(folder / "again")

    assert attacked(folders, "repeatable", tmp_path, 20, repeat)


@pytest.mark.parametrize("file", ["experiment.toml", "inputs/graph.csv"])
def test_a_run_s_copy_of_its_experiment_is_changed_elsewhere(folders, file, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(folders / "repeatable", copy)
    (copy / file).write_text((copy / file).read_text().replace("every = 5", "every = 4").replace("A,C\n", ""))
    with pytest.raises(D3GDError, match="not what the run wrote"):
        load(copy / "experiment.toml")
    shutil.copytree(copy / "inputs", tmp_path / "inputs")
    shutil.copy(copy / "experiment.toml", tmp_path)
    assert load(tmp_path / "experiment.toml").run(tmp_path / "changed").status == "completed"
