import re
import socket
import time
from types import SimpleNamespace

import numpy as np
import pytest

from d3gd.errors import TransportError
from d3gd.sites.conversation import Neighbours
from d3gd.sites.curve import CurveWire
from d3gd.sites.keys import generate, write_secret
from d3gd.sites.membership import Edition, closed
from d3gd.sites.messages import PROTOCOL, Data, describe, encode
from d3gd.sites.reload import reread
from d3gd.sites.settings import load
from d3gd.sites.wire import Contact, Event
from tests.helpers.sites import RING, SIX, folders, hubs

WAIT = 20


def of(hub, name):
    return next(peer for peer in hub.peers() if peer.name == name)


def met(hub):
    return hub.wait(lambda: all(peer.accepted and peer.greeted for peer in hub.peers()), WAIT)


@pytest.mark.parametrize("dials", [{}, {("a", "b"): "source"}, dict.fromkeys(RING, "source")])
def test_links_carry_data_one_way_whoever_dials(dials, tmp_path):
    with hubs(folders(tmp_path, dials=dials)) as sites:
        assert all(met(hub) for hub in sites.values())
        x = {"x": np.arange(3.0)[None]}
        sites["a"].post((0, 0), x)
        assert sites["b"].wait(lambda: (0, 0) in of(sites["b"], "a").box, WAIT)
        assert np.array_equal(of(sites["b"], "a").box[0, 0]["x"], x["x"])
        assert sites["a"].wait(lambda: not of(sites["a"], "b").under_way, WAIT)
        assert not of(sites["c"], "a").box  # c is heard by a, and does not hear it


def test_all_sites_discover_the_same_network(tmp_path):
    with hubs(folders(tmp_path, SIX)) as sites:
        graphs = []
        for name, hub in sites.items():
            assert hub.wait(lambda hub=hub: len(hub.rows) == 6 and not closed(hub.rows), WAIT)
            found = Edition(hub.rows, name)
            assert found.names[found.agent] == name
            graphs.append(found.graph)
        found = {(graphs[0].labels[a], graphs[0].labels[b]) for a, b in graphs[0].edges.tolist()}
        assert found == set(SIX)
        assert all(np.array_equal(graph.keys, graphs[0].keys) for graph in graphs)


def test_settings_that_differ_are_refused_in_words_at_both_ends(tmp_path, caplog):
    files = folders(tmp_path)
    with hubs({name: files[name] for name in "ab"}, b={"seed": "7"}) as sites:
        assert sites["a"].wait(lambda: of(sites["a"], "b").refusal != "", WAIT)
        assert sites["b"].wait(lambda: of(sites["b"], "a").refusal != "", WAIT)
        assert of(sites["a"], "b").refusal == "its seed is 7, here 0"
        assert of(sites["b"], "a").refusal == "its seed is 0, here 7"
        assert not of(sites["a"], "b").accepted
    assert caplog.text.count("b was refused: its seed is 7, here 0") == 1


def test_a_stranger_is_refused_at_either_end(tmp_path):
    files = folders(tmp_path)
    stranger, settings = generate(), load(files["b"]).settings
    port = settings.bind
    with hubs(files) as sites:
        wire = CurveWire(stranger, None, largest=1 << 20)
        wire.meet([Contact("b", load(files["b"]).keys().public, port)])
        found = until(wire, "refused")
        wire.close()
        assert "does not know this site's public key" in found.why
        assert sites["b"].wait(lambda: any(stranger.public in line for line in sites["b"].strangers), WAIT)
        assert {peer.name for peer in sites["b"].peers()} == {"a", "c"}
        wire = CurveWire(load(files["a"]).keys(), None, largest=1 << 20)  # a's key, but b is not who it should be
        wire.meet([Contact("b", stranger.public, port)])
        found = until(wire, "refused")
        wire.close()
        assert "another key" in found.why


def until(wire, what):
    deadline = time.monotonic() + WAIT
    while time.monotonic() < deadline:
        for found in wire.receive(0.1):
            if isinstance(found, Event) and found.what == what:
                return found
    raise AssertionError(f"it was never {what}")


@pytest.fixture
def impostor(tmp_path):
    """A site whose key is known, and whose messages are what the test makes of them."""
    files = folders(tmp_path)
    with hubs({"b": files["b"]}) as sites:
        wire = CurveWire(load(files["a"]).keys(), load(files["a"]).settings.bind, largest=1 << 26)
        wire.meet([Contact("b", load(files["b"]).keys().public)])
        yield sites["b"], wire
        wire.close()


def head(number, boot=5, **changes):
    return {"protocol": PROTOCOL, "session": "test", "sender": "a", "boot": boot, "number": number, **changes}


def greet(hub, wire):
    from d3gd.sites.messages import Hello, decode

    deadline = time.monotonic() + WAIT
    while time.monotonic() < deadline:
        arrived = [found for found in wire.receive(0.1) if not isinstance(found, Event)]
        if arrived:
            knows = decode(arrived[-1].frames[0]).boot
            facts = {"version": "1", "clock": time.time(), "settings": {"seed": "0"}}
            wire.send("b", [encode(Hello(**head(1, knows=knows), **facts))])
            assert hub.wait(lambda: of(hub, "a").accepted, WAIT)
            return
    raise AssertionError("b did not say hello")


def send(wire, number, arrays, k=0, **changes):
    content = Data(**head(number, **changes), iteration=k, turn=0, arrays=describe(arrays))
    assert wire.send("b", [encode(content), *[array.tobytes() for array in arrays.values()]])


GOOD = {"x": np.ones((1, 3))}


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("nan", "holds NaN"),
        ("absurd", "holds numbers up to 1e.30"),
        ("replay", "received before"),
        ("session", "session 'other'"),
        ("name", "in the name of c"),
        ("ended", "a process that has ended"),
        ("junk", "cannot be read"),
    ],
)
def test_what_is_not_sound_is_dropped_counted_and_told_once(what, told, impostor, caplog):
    hub, wire = impostor
    hub.limit(1e12)
    greet(hub, wire)
    for number in (2, 3):
        if what == "nan":
            send(wire, number, {"x": np.array([[1.0, np.nan, 2.0]])})
        elif what == "absurd":
            send(wire, number, {"x": np.array([[1.0, 1e30, 2.0]])})
        elif what == "replay":
            send(wire, 1, GOOD)
        elif what == "session":
            send(wire, number, GOOD, session="other")
        elif what == "name":
            send(wire, number, GOOD, sender="c")
        elif what == "ended":
            send(wire, number, GOOD, boot=4)
        else:
            wire.send("b", [b"junk", b"more"])
    assert hub.wait(lambda: of(hub, "a").counts["dropped"] == 2, WAIT)
    assert not any(of(hub, "a").box.values())
    send(wire, 9, GOOD, k=1)
    assert hub.wait(lambda: (1, 0) in of(hub, "a").box, WAIT)
    assert np.array_equal(hub.take(of(hub, "a"), (1, 0))["x"], GOOD["x"])
    lines = [record.getMessage() for record in caplog.records if "dropped" in record.getMessage()]
    assert len(lines) == 1
    assert lines[0].startswith("a: dropped")
    assert re.search(told, lines[0])


def test_ten_thousand_changed_frames_end_nothing_and_bring_nothing_unsound(impostor):
    hub, wire = impostor
    hub.limit(1e12)
    greet(hub, wire)
    rng = np.random.default_rng(0)
    content = encode(Data(**head(2), iteration=0, turn=0, arrays=describe(GOOD)))
    for number in range(10_000):
        frames = [bytearray(content), bytearray(GOOD["x"].tobytes())]
        for _ in range(rng.integers(1, 4)):
            frame = frames[rng.integers(2)]
            frame[rng.integers(len(frame))] = rng.integers(256)
        while not wire.send("b", [bytes(frame) for frame in frames[: rng.integers(1, 3)]]):
            wire.receive(0.01)
        if number % 50 == 0:
            wire.receive(0)
    seen = of(hub, "a")
    number = seen.seen + 1
    for _ in range(100):  # a changed number may have been a large one
        send(wire, number, GOOD, k=hub.at, boot=seen.boot)
        if hub.wait(lambda: (hub.at, 0) in seen.box, 0.2):
            break
        number = max(seen.seen, number) + 1
    for arrays in seen.box.values():
        assert all(np.abs(array).max() <= 1e12 for array in arrays.values() if array.dtype.kind == "f")
    assert seen.counts["dropped"] > 1000


def test_junk_on_the_port_ends_nothing(tmp_path):
    files = folders(tmp_path)
    with hubs(files) as sites:
        host, port = load(files["a"]).settings.bind.removeprefix("tcp://").split(":")
        rng = np.random.default_rng(0)
        for _ in range(100):
            with socket.create_connection((host, int(port)), timeout=5) as dialled:
                dialled.sendall(b"\xff" + b"\0" * 8 + b"\x7f" + rng.bytes(300))
        assert all(met(hub) for hub in sites.values())
        sites["a"].post((0, 0), GOOD)
        assert sites["b"].wait(lambda: (0, 0) in of(sites["b"], "a").box, WAIT)


def test_a_restarted_site_is_met_again_and_gets_what_it_missed(tmp_path):
    files = folders(tmp_path)
    with hubs({name: files[name] for name in "ac"}) as sites:
        with hubs({"b": files["b"]}) as other:
            assert met(other["b"])
        for k in range(5):
            sites["a"].begin(k)
            sites["a"].post((k, 0), {"x": np.full((1, 2), float(k))})
        with hubs({"b": files["b"]}) as other:
            b = other["b"]
            b.begin(2)
            assert b.wait(lambda: set(of(b, "a").box) == {(2, 0), (3, 0), (4, 0)}, WAIT)
            assert of(b, "a").box[3, 0]["x"][0, 0] == 3


def test_neighbours_may_change_while_it_runs(tmp_path):
    files = folders(tmp_path, [*RING, ("a", "c")])
    with hubs(files) as sites:
        assert all(met(hub) for hub in sites.values())
        whole = load(files["c"]).neighbours
        sites["c"].meet(Neighbours(tuple(c for c in whole.sources if c.name != "a"), whole.listeners))
        assert sites["b"].wait(lambda: "c" in sites["b"].rows and sites["b"].rows["c"].hears == ("b",), WAIT)


def test_a_port_in_use_is_said(tmp_path):
    files = folders(tmp_path)
    with hubs({"a": files["a"]}), pytest.raises(TransportError, match="cannot be bound"), hubs({"a": files["a"]}):
        pass


def test_a_neighbour_with_a_new_key_is_met_after_the_file_is_read_again(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr("d3gd.sites.curve._RETRY_MOST", 200)
    caplog.set_level("INFO", logger="d3gd.sites")
    files = folders(tmp_path)
    plan = load(files["a"])
    with hubs({"a": files["a"]}) as sites:
        a, pair = sites["a"], generate()
        secret = files["b"].parent / "site.secret"
        old = load(files["b"]).keys().public
        secret.unlink()
        write_secret(secret, pair)
        with hubs({"b": files["b"]}) as other:
            assert other["b"].wait(lambda: "public key" in of(other["b"], "a").refusal, WAIT)
            files["a"].write_text(files["a"].read_text().replace(old, pair.public))
            reread(plan, SimpleNamespace(hub=a))
            assert other["b"].wait(lambda: of(other["b"], "a").accepted, WAIT)
        files["a"].write_text(files["a"].read_text().replace('name = "b"', 'name = "z"'))
        reread(plan, SimpleNamespace(hub=a))
        assert {peer.name for peer in a.peers()} == {"b", "c"}
    assert "was read again" in caplog.text
    assert "names other neighbours" in caplog.text
