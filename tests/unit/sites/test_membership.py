"""Sites that come and go while others train."""

import time
from contextlib import contextmanager

import numpy as np
import pytest

import d3gd
from d3gd.sites.collect import collected
from d3gd.sites.curve import CurveWire
from d3gd.sites.membership import Edition
from d3gd.sites.messages import Row
from d3gd.sites.network import SiteNetwork
from d3gd.sites.reload import reread
from d3gd.sites.rounds import Rounds
from d3gd.sites.run import run
from d3gd.sites.settings import load
from tests.helpers.launching import require
from tests.helpers.sites import folders, together, without

PAIRS = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "c"), ("a", "d")]
LINKS = [*PAIRS, *[pair[::-1] for pair in PAIRS]]
PERRON = 'kind = "PerronD3GD"\nstep_size = 0.2'


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr("d3gd.sites.run._FAREWELL", 5.0)
    for module in ("hub", "rounds"):
        monkeypatch.setattr(f"d3gd.sites.{module}.BEAT", 0.1)


@pytest.fixture
def sessions(monkeypatch):
    """The sites that run, by name."""
    from d3gd.sites import run as running

    found, joined = {}, running.joined

    @contextmanager
    def noted(file, algorithm=None):
        with joined(file, algorithm) as session:
            found[file.settings.name] = session
            yield session

    monkeypatch.setattr(running, "joined", noted)
    return found


def sites(tmp_path, iterations, more):
    files = folders(tmp_path, LINKS, iterations=iterations, algorithm=PERRON, more=more)
    for path in files.values():
        head, _, tail = path.read_text().partition("[problem]")
        path.write_text(f'{head}[problem]\nkind = "quadratic"\ndim = 3\n[algorithm]{tail.partition("[algorithm]")[2]}')
    return files


def optimum(agents):
    return d3gd.problems.quadratic(agents=agents, dim=3).optimum


def until(true):
    deadline = time.monotonic() + 30
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_new_site_starts_from_its_neighbours_models_and_counts_in_the_limit(tmp_path, sessions, caplog, monkeypatch):
    caplog.set_level("INFO", logger="d3gd.sites")
    files = sites(tmp_path, 900, "patience = 0.5")
    whole = {name: files[name].read_text() for name in "ac"}
    for name in "ac":
        files[name].write_text(without(whole[name], "d"))

    starts, listened, begin = [], SiteNetwork._listened, Rounds.begin

    def held(rounds, k):
        if rounds.hub.name != "d" and k == 210:
            until(lambda: "d" in sessions)  # so that it comes in time, however busy the machine
        return begin(rounds, k)

    monkeypatch.setattr(Rounds, "begin", held)

    def noted(net, algorithm, state, k):
        starts.append(algorithm.point(listened(net, algorithm, state, k)))
        return algorithm.init(net, starts[-1])

    monkeypatch.setattr(SiteNetwork.__mro__[1], "_listened", noted)

    def late():
        until(lambda: "a" in sessions and sessions["a"].hub.at >= 200)
        for name in "ac":
            files[name].write_text(whole[name])
            reread(load(files[name]), sessions[name])
        until(lambda: all("d" in {peer.name for peer in sessions[name].hub.peers()} for name in "ac"))
        return run(load(files["d"]))

    found = together({**{name: lambda path=files[name]: run(load(path)) for name in "abc"}, "d": late})
    assert [result.status for result in found.values()] == ["completed"] * 4, found
    assert found["d"].iterations[0] >= 200  # it began where the others were
    assert np.abs(starts[-1] - optimum(3)).max() < 0.1 * np.abs(optimum(3)).max()  # where they had come to
    away = max(np.abs(result.x - optimum(4)).max() for result in found.values())
    assert away < 0.25 * np.abs(optimum(4) - optimum(3)).max()
    assert "d joined; now 4 sites with 10 links: a, b, c, d" in caplog.text
    together_ = collected([path.parent / "run" for path in files.values()])
    assert together_.settings["graph"]["labels"] == ["a", "b", "c", "d"]
    assert np.allclose(together_.weights.sum(axis=1), 1)


def test_a_split_network_goes_on_in_both_halves_and_becomes_one_again(tmp_path, sessions, caplog, monkeypatch):
    caplog.set_level("INFO", logger="d3gd.sites")
    files = sites(tmp_path, 900, "patience = 0.3")
    split, send = [False], CurveWire.send
    halves = {load(path).keys().public: name in "ab" for name, path in files.items()}

    def cut(wire, to, frames):
        across = halves[wire._keys.public] != (to in "ab")
        return False if split[0] and across else send(wire, to, frames)

    monkeypatch.setattr(CurveWire, "send", cut)
    n = {}

    def divide():
        until(lambda: len(sessions) == 4 and min(session.hub.at for session in sessions.values()) > 50)
        split[0] = True
        until(lambda: all(len(session.rounds.edition.names) == 2 for session in sessions.values()))
        n.update({name: session.rounds.edition.names for name, session in sessions.items()})
        there = {name: session.hub.at for name, session in sessions.items()}
        until(lambda: all(session.hub.at > there[name] + 20 for name, session in sessions.items()))
        split[0] = False

    work = {name: lambda path=path: run(load(path, forget=0.6)) for name, path in files.items()}
    found = together({**work, "divide": divide})
    assert found.pop("divide") is None, found
    assert n == {"a": ("a", "b"), "b": ("a", "b"), "c": ("c", "d"), "d": ("c", "d")}
    assert [result.status for result in found.values()] == ["completed"] * 4, found
    assert max(np.abs(result.x - optimum(4)).max() for result in found.values()) < 0.1
    for line in (
        "c: no sign of life for 0.6 s: dropped until it is back",
        "a and b left; now 2 sites",
        "c and d joined",
    ):
        assert line in caplog.text


def test_an_edition_is_the_strongly_connected_part_around_a_site():
    rows = {"a": Row(1, ("b",)), "b": Row(1, ("a", "c")), "c": Row(1, ("d",), 0, 7), "d": Row(1, ("c",))}
    assert [Edition(rows, name).names for name in "abcd"] == [("a", "b"), ("a", "b"), ("c", "d"), ("c", "d")]
    assert [Edition(rows, name).since for name in "ac"] == [0, 7]
    assert Edition(rows, "a").key == Edition(rows, "b").key != Edition(rows, "c").key
    again = {name: Row(2, row.hears, row.samples, row.changed) for name, row in rows.items()}
    assert Edition(again, "a").key == Edition(rows, "a").key  # restarts of processes do not matter


def test_an_optimizer_follows_the_network(tmp_path, sessions, monkeypatch):
    require("torch")
    import torch

    from d3gd.sites import run as running
    from d3gd.torch import DecentralizedOptimizer

    monkeypatch.setattr(running, "_FAREWELL", 1.0)
    monkeypatch.setattr("d3gd.sites.session.joined", running.joined)  # which notes the sessions
    files = sites(tmp_path, 200, "patience = 0.3")
    whole = files["a"].read_text()
    for name in "ac":
        files[name].write_text(without(files[name].read_text(), "d"))
    method = d3gd.PerronD3GD(step_size=0.05)

    def train(name):
        begun = []
        with d3gd.sites.connect(files[name], algorithm=method) as network:
            model = torch.nn.Linear(2, 1, bias=False, dtype=torch.float64)
            with torch.no_grad():
                model.weight.fill_(9.0 if name == "d" else 1.0)
            opt = DecentralizedOptimizer(model.parameters(), method, network)
            while opt.iteration < 200:
                if name != "d" and opt.iteration == 30:
                    until(lambda: "d" in sessions)
                opt.zero_grad()
                (model.weight - ord(name)).square().sum().backward()
                opt.step()
                begun.append((opt.iteration, float(model.weight[0, 0].detach())))
        return begun, network.n

    def late():
        until(lambda: "a" in sessions and sessions["a"].hub.at >= 20)
        files["a"].write_text(whole)
        reread(load(files["a"]), sessions["a"])
        until(lambda: "d" in {peer.name for peer in sessions["a"].hub.peers()})
        files["d"].write_text(without(files["d"].read_text(), "c"))
        return train("d")

    found = together({**{name: lambda name=name: train(name) for name in "abc"}, "d": late})
    assert all(isinstance(each, tuple) for each in found.values()), found
    assert [n for _, n in found.values()] == [4] * 4
    begun = found["d"][0]
    assert begun[0][0] > 20
    model = next(model for k, model in begun if model != 9.0)
    assert 60 < model < ord("d")  # where the others had come to, not where it was made
    mean = sum(map(ord, "abcd")) / 4
    assert all(abs(begun[-1][1] - mean) < 0.3 for begun, _ in found.values())
