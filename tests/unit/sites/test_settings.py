import math

import numpy as np
import pytest

from d3gd.errors import D3GDError, GraphError, SettingsError
from d3gd.sites import keys
from d3gd.sites.doctor import examine
from d3gd.sites.init import read_keys, read_links, write_sites
from d3gd.sites.run import run
from d3gd.sites.session import require_survivor
from d3gd.sites.settings import load
from tests.helpers.sites import COMMON, RING, folders


def changed(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return path


def test_a_file_comes_back_as_it_was_written(tmp_path):
    files = folders(tmp_path, more="patience = 2.5")
    plan = load(files["b"])
    assert plan.settings.name == "b"
    assert (plan.waiting.patience, plan.waiting.forget, plan.waiting.exact) == (2.5, 60, False)
    assert [contact.name for contact in plan.neighbours.sources] == ["a"]
    assert [contact.name for contact in plan.neighbours.listeners] == ["c"]
    assert plan.neighbours.listeners[0].key == load(files["c"]).keys().public


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "b"\nsession', 'name = "../b"\nsession', "use up to 64 letters"),
        ("patience = inf", "patience = -1", "patience"),
        ("patience = inf", 'pace = "fast"', 'one of "rounds", "free"'),
        ("patience = inf", "patiense = 3", "did you mean 'patience'"),
        ('address = "tcp://127.0.0.1', 'address = "127.0.0.1', "write it as tcp://HOST:PORT"),
        ('name = "c"', 'name = "b"', "this site itself"),
        ("[[heard_by]]", "[[hears]]", "[[heard_by]] is missing"),
        ("bind", "# bind", "has to dial this site, which has no bind"),
        ('kind = "sigmoid_classification"', 'kind = "sigmoid_class"', "did you mean 'sigmoid_classification'"),
        ("[algorithm]", "[algoritm]", "algoritm"),
    ],
)
def test_what_is_wrong_in_a_file_is_said(old, new, message, tmp_path):
    path = changed(folders(tmp_path)["b"], old, new)
    with pytest.raises(D3GDError) as error:
        load(path)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_methods_that_need_every_message_are_refused_unless_it_is_waited_for(tmp_path):
    fragile = 'kind = "DiDGD"\nstep_size = 0.1'
    plan = load(folders(tmp_path, algorithm=fragile, more="patience = inf")["a"])
    require_survivor(plan.algorithm(), plan.waiting)
    other = tmp_path / "other"
    other.mkdir()
    plan = load(folders(other, algorithm=fragile, more="patience = 60")["a"])
    with pytest.raises(SettingsError, match=r"DiDGD does not survive loss and pauses .* patience = inf"):
        require_survivor(plan.algorithm(), plan.waiting)


def test_either_end_dials_as_the_list_says(tmp_path):
    files = folders(tmp_path, dials={("a", "b"): "source"})
    a, b, c = (load(files[name]).neighbours for name in "abc")
    assert {contact.name: contact.address is not None for contact in a.contacts()} == {"c": True, "b": True}
    assert {contact.name: contact.address is not None for contact in b.contacts()} == {"a": False, "c": False}
    assert {contact.name: contact.address is not None for contact in c.contacts()} == {"b": True, "a": False}


LINKS = "source,target,address\na,b,hosta:7000\nb,c,tcp://hostb:7001\nc,a,hostc:7002\n"


def write(tmp_path, links=LINKS, common=None):
    (tmp_path / "links.csv").write_text(links)
    (tmp_path / "common.toml").write_text(common or COMMON.format(iterations=5, algorithm='kind = "DGD"', more=""))
    return read_links(tmp_path / "links.csv"), tmp_path / "common.toml"


def test_sites_that_made_their_own_keys_hand_in_the_public_ones(tmp_path):
    links, common = write(tmp_path)
    pairs = {name: keys.generate() for name in "abc"}
    table = "name,key\n" + "".join(f'{name},"{pair.public}"\n' for name, pair in pairs.items())
    (tmp_path / "keys.csv").write_text(table)
    made = write_sites(links, common, tmp_path / "out", session="s", public=read_keys(tmp_path / "keys.csv"))
    assert [path.name for path in made] == ["a", "b", "c"]
    assert not list((tmp_path / "out").rglob("*.secret"))
    assert load(tmp_path / "out/a/site.toml").neighbours.sources[0].key == pairs["c"].public
    assert load(tmp_path / "out/b/site.toml").neighbours.sources[0].address == "tcp://hosta:7000"


@pytest.mark.parametrize(
    ("links", "message"),
    [
        ("source,target\na,b\n", "no column 'address'"),
        ("source,target,address\na,b,hosta\n", "tcp://HOST:PORT"),
        ("source,target,address\na,b,h:1\n", "not strongly connected"),
        ("source,target,address\na,b,\nb,a,\n", "has no address"),
        ("source,target,address,dials\na,b,h:1,both\nb,a,h:2,\n", "write source or target"),
        ("source,target,address\na,b,h:1\na,c,h:2\nb,a,i:1\nc,a,j:1\n", "a site has one port"),
        ("source,target,address\n", "no links"),
    ],
)
def test_what_is_wrong_in_a_list_of_links_is_said(links, message, tmp_path):
    with pytest.raises((GraphError, SettingsError), match=message):
        write_sites(*write(tmp_path, links), tmp_path / "out", session="s")
    assert not (tmp_path / "out").exists()


def test_infinity_survives_the_file(tmp_path):
    assert math.isinf(load(folders(tmp_path)["a"]).settings.patience)


def test_folders_are_never_overwritten(tmp_path):
    links, common = write(tmp_path)
    write_sites(links, common, tmp_path / "out", session="s")
    with pytest.raises(D3GDError, match="not empty"):
        write_sites(links, common, tmp_path / "out", session="s")


def test_every_edge_of_the_ring_is_in_two_files(tmp_path):
    files = folders(tmp_path)
    for source, target in RING:
        assert source in [contact.name for contact in load(files[target]).neighbours.sources]
        assert target in [contact.name for contact in load(files[source]).neighbours.listeners]


def test_a_site_without_its_own_table_says_so_before_it_connects(tmp_path):
    path = folders(tmp_path)["b"]
    table = 'kind = "own_table"\nfile = "patients.csv"\nclasses = 2\n'
    head, rest = path.read_text().split("[problem]\n")
    path.write_text(f"{head}[problem]\n{table}\n[algorithm]{rest.partition('[algorithm]')[2]}")
    with pytest.raises(D3GDError, match=r"patients\.csv"):
        run(load(path))
    [finding] = examine(load(path), seconds=0.1)
    assert not finding.sound
    assert "patients.csv" in finding.text
    (path.parent / "patients.csv").write_text("age,label\n1,0\n2,1\n")
    load(path).require_data()
    problem = load(path).problem(np.array([1]), 3)
    assert (problem.agents, problem.dim) == (1, 2)  # a number for each class and feature
