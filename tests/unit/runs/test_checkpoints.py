"""Checkpoints: a run resumes from the newest valid one, bit for bit, or from the one before it."""

import hashlib
import json
from shutil import copy, copytree

import pytest

import d3gd
from d3gd.errors import RecordError
from d3gd.runs import files
from tests.helpers.folders import checkpoints, contents, dying_at, run, same


def stopped_at_45(folder):
    with pytest.raises(RuntimeError):
        run(folder, callbacks=[dying_at(45)])
    assert [path.name for path in checkpoints(folder)] == [f"{30:012d}", f"{40:012d}"]


def flip_a_byte(newest):
    path = newest / "state.npz"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def older(newest):
    return newest.parent / f"{30:012d}"


def edit(newest, change, *, seal=False):
    """Change a manifest; with ``seal``, as somebody would who knows the format."""
    path = newest / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    if seal:
        del manifest["sha256"]
        manifest["sha256"] = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
    path.write_text(json.dumps(manifest))


DAMAGE = {
    "manifest missing": lambda newest: (newest / "manifest.json").unlink(),
    "manifest cut": lambda newest: (newest / "manifest.json").write_text('{"iteration": 40, "exp'),
    "manifest empty": lambda newest: (newest / "manifest.json").write_text("{}"),
    "manifest of another iteration": lambda newest: copy(older(newest) / "manifest.json", newest / "manifest.json"),
    "checkpoint of another iteration": lambda newest: copytree(older(newest), newest, dirs_exist_ok=True),
    "key missing": lambda newest: edit(newest, lambda manifest: manifest.pop("rows")),
    "key missing, digest right": lambda newest: edit(newest, lambda manifest: manifest.pop("rows"), seal=True),
    "other format": lambda newest: edit(newest, lambda manifest: manifest.update(format=1)),
    "other format, digest right": lambda newest: edit(newest, lambda manifest: manifest.update(format=99), seal=True),
    "iteration changed": lambda newest: edit(newest, lambda manifest: manifest.update(iteration=41)),
    "state missing": lambda newest: (newest / "state.npz").unlink(),
    "state cut": lambda newest: (newest / "state.npz").write_bytes((newest / "state.npz").read_bytes()[:100]),
    "state flipped": flip_a_byte,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_checkpoint_falls_back_to_the_one_before(tmp_path, damage):
    straight = run(None)
    stopped_at_45(tmp_path)
    damage(checkpoints(tmp_path)[-1])
    seen = []
    resumed = run(tmp_path, resume=True, callbacks=[lambda s: seen.append(s.k)])
    assert 30 <= seen[0] <= 35  # the first record from the checkpoint of iteration 30 on
    same(resumed, straight)


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_checkpoint_is_replaced_when_its_iteration_comes_again(tmp_path, damage):
    stopped_at_45(tmp_path)
    damage(checkpoints(tmp_path)[-1])
    with pytest.raises(RuntimeError):
        run(tmp_path, resume=True, callbacks=[dying_at(45)])
    seen = []
    run(tmp_path, resume=True, callbacks=[lambda s: seen.append(s.k)])
    assert 40 <= seen[0] <= 45


def test_only_the_newest_checkpoints_are_kept(tmp_path):
    run(tmp_path)
    assert [int(path.name) for path in checkpoints(tmp_path)] == [50, 60]


def test_interrupt_leaves_a_checkpoint_of_the_last_whole_iteration(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, callbacks=[dying_at(45, KeyboardInterrupt)])
    assert int(checkpoints(tmp_path)[-1].name) == 45


def test_what_cannot_be_read_back_replaces_nothing(tmp_path, monkeypatch):
    """A disk that loses what is written to it, from the second checkpoint on."""
    write = files.write_atomically

    def lose(path, content):
        write(path, content[:-1] if path.name == "state.npz" and f"{10:012d}" not in str(path) else content)

    monkeypatch.setattr(files, "write_atomically", lose)
    with pytest.raises(RecordError, match=r"state\.npz"):
        run(tmp_path)
    monkeypatch.undo()
    seen = []
    same(run(tmp_path, resume=True, callbacks=[lambda s: seen.append(s.k)]), run(None))
    assert seen[0] == 10


def test_checkpoints_of_an_earlier_version_are_left_as_they_are(tmp_path):
    stopped_at_45(tmp_path)
    for path in checkpoints(tmp_path):
        manifest = json.loads((path / "manifest.json").read_text())
        del manifest["format"], manifest["files"]
        manifest["sha256"] = hashlib.sha256((path / "state.npz").read_bytes()).hexdigest()
        (path / "manifest.json").write_text(json.dumps(manifest))
    before = contents(tmp_path)
    with pytest.raises(RecordError, match="older d3gd"):
        run(tmp_path, resume=True)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("damage", [b"", b"no arrays"])
def test_a_run_goes_on_although_its_start_is_damaged(tmp_path, damage):
    stopped_at_45(tmp_path)
    (tmp_path / "start.npz").write_bytes(damage)
    same(run(tmp_path, resume=True), run(None))
    run(tmp_path / "other")
    assert (tmp_path / "start.npz").read_bytes() == (tmp_path / "other" / "start.npz").read_bytes()


def test_a_longer_run_leaves_the_result_readable_until_it_has_its_own(tmp_path):
    short = run(tmp_path, 40)
    with pytest.raises(RuntimeError):
        run(tmp_path, 60, resume=True, callbacks=[dying_at(55)])
    same(d3gd.Result.load(tmp_path), short)
    assert d3gd.Result.load(tmp_path).settings["iterations"] == 40
    run(tmp_path, 60, resume=True)
    assert d3gd.Result.load(tmp_path).settings["iterations"] == 60
