"""Ownership of folders: never a user's, one process at a time, and unchanged by a run that fails to start."""

import os
import shutil
import subprocess
import sys

import pytest

import d3gd
from d3gd.errors import D3GDError, RecordError, SettingsError
from tests.helpers.folders import GRAPH, PROBLEM, checkpoints, contents, dying_at, run, same

RUN = """
import resource, sys, time
from tests.helpers.folders import run

def wait(snapshot):
    if snapshot.k == 25:
        print("waiting", flush=True)
        time.sleep(60)

"""


def process(code, cwd):
    """A real second process, in this one's tree."""
    return subprocess.Popen(
        [sys.executable, "-c", RUN + code],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def other(tmp_path):
    """A process that is in the middle of a run into the folder ``run``."""
    begun = process("run('run', callbacks=[wait])", tmp_path)
    try:
        assert begun.stdout.readline() == "waiting\n", begun.communicate(timeout=10)
        yield begun
    finally:
        begun.kill()
        begun.communicate(timeout=10)


# Whose it is ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["experiment.toml", "metrics.csv", "settings.json", "start.npz", "inputs", "notes.md"])
@pytest.mark.parametrize("resume", [False, True])
def test_a_folder_with_anything_else_in_it_is_refused_and_left_as_it_was(tmp_path, name, resume):
    (tmp_path / name).mkdir() if name == "inputs" else (tmp_path / name).write_text("mine")
    (tmp_path / ".hidden").write_text("mine")
    before = contents(tmp_path)
    with pytest.raises(RecordError, match=f"'{name}' and no run"):
        run(tmp_path, resume=resume)
    assert contents(tmp_path) == before
    assert {path.name for path in tmp_path.iterdir()} == {name, ".hidden"}


def test_a_result_is_not_saved_over_what_is_not_one(tmp_path):
    result = run(None)
    (tmp_path / "metrics.csv").write_text("mine")
    with pytest.raises(RecordError, match=r"metrics\.csv"):
        result.save(tmp_path)
    assert contents(tmp_path) == {tmp_path / "metrics.csv": b"mine"}
    for _ in range(2):
        result.save(tmp_path / "own")
    same(d3gd.Result.load(tmp_path / "own"), result)


def test_a_folder_with_hidden_files_only_is_as_good_as_an_empty_one(tmp_path):
    (tmp_path / ".gitkeep").touch()
    same(run(tmp_path), run(None))
    assert (tmp_path / ".gitkeep").exists()


@pytest.mark.parametrize("exists", [False, True])
def test_a_refused_run_leaves_nothing_in_the_way_of_the_corrected_one(tmp_path, exists):
    folder = tmp_path / "run"
    if exists:
        folder.mkdir()
    with pytest.raises(SettingsError):
        d3gd.run(d3gd.PushPull(step_size=0.1), GRAPH, PROBLEM, iterations=60, out=folder, metrics=["perron_error"])
    assert folder.exists() == exists
    with pytest.raises(D3GDError):
        run(folder, callbacks=[dying_at(5, D3GDError)])
    assert folder.exists() == exists
    same(run(folder), run(None))


def test_a_run_that_fails_later_keeps_its_checkpoint(tmp_path):
    with pytest.raises(D3GDError):
        run(tmp_path / "run", callbacks=[dying_at(25, D3GDError)])
    assert [int(path.name) for path in checkpoints(tmp_path / "run")] == [10, 20]
    same(run(tmp_path / "run", resume=True), run(None))


# One process at a time --------------------------------------------------------------------------------------------


def test_a_folder_in_use_is_refused_by_the_process_that_has_it_until_that_ends(tmp_path, other):
    before = contents(tmp_path)
    for resume in (True, False):
        with pytest.raises(RecordError, match=f"in use by process {other.pid}"):
            run(tmp_path / "run", resume=resume)
    assert contents(tmp_path) == before
    other.kill()
    other.wait(timeout=10)
    same(run(tmp_path / "run", resume=True), run(None))


def test_two_that_begin_at_once_do_not_both_begin(tmp_path):
    begun = [process("run('run', callbacks=[wait])", tmp_path) for _ in range(2)]
    try:
        told = [each.stdout.readline() for each in begun]
        assert sorted(told) == ["", "waiting\n"]
    finally:
        for each in begun:
            each.kill()
            each.communicate(timeout=10)
    same(run(tmp_path / "run", resume=True), run(None))


def test_a_finished_folder_is_free_of_locks_and_temporary_files(tmp_path):
    run(tmp_path)
    assert not list(tmp_path.rglob(".*"))


def test_what_a_killed_process_left_half_written_is_removed(tmp_path):
    with pytest.raises(RuntimeError):
        run(tmp_path, callbacks=[dying_at(45)])
    left = [tmp_path, checkpoints(tmp_path)[-1], tmp_path / "inputs"]
    (tmp_path / "inputs").mkdir()
    for folder in left:
        (folder / ".state.npz.4711.tmp").write_bytes(b"half")
    (tmp_path / "mine.tmp").write_bytes(b"kept")
    run(tmp_path, resume=True)
    assert not list(tmp_path.rglob(".*.tmp"))
    assert (tmp_path / "mine.tmp").exists()


def test_a_process_killed_before_its_run_began_blocks_nobody(tmp_path):
    (tmp_path / ".d3gd.lock").write_text("4711 here\n")
    (tmp_path / "start.npz").write_bytes(b"half")
    (tmp_path / ".start.npz.4711.tmp").write_bytes(b"half")
    same(run(tmp_path), run(None))
    assert not list(tmp_path.glob(".*"))


# What may happen to it meanwhile ----------------------------------------------------------------------------------


@pytest.mark.parametrize("moment", [25, 60])
@pytest.mark.parametrize("how", ["deleted", "moved", "replaced"])
def test_a_folder_that_goes_away_does_not_come_back(tmp_path, how, moment):
    folder = tmp_path / "run"

    def away(snapshot):
        if snapshot.k == moment:
            folder.rename(tmp_path / "away") if how == "moved" else shutil.rmtree(folder)
            if how == "replaced":
                folder.mkdir()

    with pytest.raises(RecordError, match="deleted or moved") as caught:
        run(folder, callbacks=[away])
    assert "\n" not in str(caught.value)
    assert not folder.exists() or not list(folder.iterdir())


def test_a_full_disk_says_how_to_go_on(tmp_path):
    pytest.importorskip("resource")
    code = """
def fill(snapshot):
    if snapshot.k == 25:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))

run('run', callbacks=[fill])
"""
    full = process(code, tmp_path)
    _, err = full.communicate(timeout=60)
    assert full.returncode == 1
    assert "cannot be written" in err.splitlines()[-1]
    assert "--resume" in err.splitlines()[-1]
    assert [int(path.name) for path in checkpoints(tmp_path / "run") if list(path.iterdir())] == [10, 20]
    same(run(tmp_path / "run", resume=True), run(None))


def test_a_folder_that_cannot_be_written_is_told_in_one_line(tmp_path):
    for path in (tmp_path / "\0", tmp_path / ("long" * 100)):
        with pytest.raises(RecordError, match="cannot be created"):
            run(path)
