"""The commands of sites."""

import json
import stat
import threading
from pathlib import Path

import pytest

from d3gd.sites import doctor
from d3gd.sites.keys import generate
from d3gd.sites.settings import load
from tests.helpers.ports import ports
from tests.helpers.sites import folders, hubs

LINKS = "source,target,address\na,b,127.0.0.1:{}\nb,a,127.0.0.1:{}\n"
COMMON = """
iterations = 20
patience = inf
connect = 60
[problem]
kind = "quadratic"
dim = 3
[algorithm]
kind = "DiDGD"
step_size = 0.1
"""


def test_a_key_is_made_once(d3gd, tmp_path):
    path = tmp_path / "here" / "site.secret"
    made = d3gd("site", "keygen", str(path))
    assert made.code == 0
    assert len(made.out.strip()) == 40
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert d3gd("site", "keygen", str(path)).code == 2


def test_sites_are_made_run_and_collected(d3gd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("links.csv").write_text(LINKS.format(*ports(2)))
    Path("common.toml").write_text(COMMON)
    made = d3gd("site", "init", "links.csv", "common.toml")
    assert made.code == 0, made
    assert "wrote sites/a" in made.out
    from d3gd.sites.run import run

    thread = threading.Thread(target=lambda: run(load("sites/b/site.toml")))
    thread.start()
    found = d3gd("site", "run", "sites/a/site.toml")
    thread.join(60)
    assert found.code == 0, found
    assert "completed at iteration 20" in found.out
    assert "one of 2 sites with 2 links" in found.err
    told = d3gd("site", "status", "sites/a/site.toml")
    assert told.out.startswith("a: iteration 20 of 20, 2 sites")
    assert "b (heard and hears it): iteration 20" in told.out
    again = d3gd("site", "run", "sites/a/site.toml")
    assert again.code == 2
    assert "already holds a run" in again.err
    whole = d3gd("site", "collect", "sites/a/run", "sites/b/run", "--out", "whole")
    assert whole.code == 0, whole
    assert json.loads(Path("whole/result.json").read_text())["status"] == "completed"


def findings(path, seconds=5.0):
    return [finding.text for finding in doctor.examine(load(path), seconds) if not finding.sound]


@pytest.fixture
def quick(monkeypatch):
    from d3gd.sites import hub

    monkeypatch.setattr(hub, "BEAT", 0.05)


def test_the_doctor_finds_nothing_wrong_with_sound_links(d3gd, quick, tmp_path):
    files = folders(tmp_path)
    settings = load(files["a"]).agreed()
    with hubs({name: files[name] for name in "bc"}, b=settings, c=settings) as _:
        outcome = d3gd("site", "check", str(files["a"]), "--seconds", "20")
    assert outcome.code == 0, outcome
    assert [line.split()[0] for line in outcome.out.splitlines()] == ["ok"] * 3


def test_the_doctor_says_what_is_wrong_and_at_whose_end(quick, tmp_path):
    files = folders(tmp_path)
    c_to_a, a_to_b = sorted(findings(files["a"], 0.3), reverse=True)
    assert c_to_a.startswith("c -> a: nobody listens at tcp://127.0.0.1:")
    assert "start c, or correct its address here" in c_to_a
    assert a_to_b.startswith("a -> b: b has not dialled this site")

    settings = load(files["c"]).agreed()
    with hubs({"c": files["c"]}, c={**settings, "seed": "5"}):
        (told,) = [line for line in findings(files["a"], 1.0) if line.startswith("c -> a")]
    assert told == "c -> a: its seed is 5, here 0; make the files of a and c agree"

    own = files["c"]
    right = own.read_text()
    own.write_text(right.replace(load(files["a"]).keys().public, generate().public))
    with hubs({"c": own}, c=settings):
        (told,) = [line for line in findings(files["a"], 1.0) if line.startswith("c -> a")]
    assert told == "c -> a: c refuses this site's key: the file at c has another one for a"

    own.write_text(right)
    here = files["a"]
    here.write_text(here.read_text().replace(load(own).keys().public, generate().public))
    with hubs({"c": own}, c=settings):
        (told,) = [line for line in findings(here, 1.0) if line.startswith("c -> a")]
    assert "has not the key that this file gives for c: correct it here" in told

    (here.parent / "site.secret").chmod(0o644)
    (told,) = findings(here)
    assert "chmod 600" in told


def test_an_unknown_host_is_named(quick, tmp_path):
    files = folders(tmp_path)
    text = files["a"].read_text()
    files["a"].write_text(text.replace('address = "tcp://127.0.0.1', 'address = "tcp://nowhere.invalid'))
    told = [line for line in findings(files["a"], 0.3) if line.startswith("c -> a")]
    assert "nowhere.invalid is not known" in told[0]
