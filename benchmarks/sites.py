"""A round between two sites against bare pyzmq sockets with CURVE that move the same bytes both ways.

python benchmarks/sites.py [--quick]

Two processes on the loopback interface; every line printed is JSON.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import zmq

from d3gd.sites.conversation import Neighbours
from d3gd.sites.curve import CurveWire
from d3gd.sites.hub import Hub
from d3gd.sites.keys import KeyPair, generate
from d3gd.sites.rounds import Rounds, Waiting
from d3gd.sites.wire import Contact

SIZES = (12_500, 125_000, 1_250_000, 12_500_000)  # numbers of 8 bytes
LARGEST = 1 << 27


def measure(quick):
    """Return the measurements: per size, seconds of a round between sites and of a bare one."""
    done = subprocess.run(
        [sys.executable, __file__, *(["--quick"] if quick else [])],
        capture_output=True,
        text=True,
        timeout=1200,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def bare(own, other, address, binds):
    """A user's own sockets: a PAIR with CURVE, messages without a copy."""
    socket = zmq.Context.instance().socket(zmq.PAIR)
    socket.curve_publickey, socket.curve_secretkey = own.public.encode(), own.secret.encode()
    socket.linger = 0
    if binds:
        socket.curve_server = True
        socket.bind(address)
    else:
        socket.curve_serverkey = other.encode()
        socket.connect(address)

    def work(array):
        socket.send(array, copy=False)
        return np.frombuffer(socket.recv(copy=False).buffer, dtype=array.dtype)

    return work


def between_sites(own, other, address, binds):
    """A round of d3gd's."""
    names = ("a", "b") if binds else ("b", "a")
    contact = Contact(names[1], other, None if binds else address)
    wire = CurveWire(own, address if binds else None, largest=LARGEST)
    hub = Hub(names[0], "bench", {}, wire, Neighbours((contact,), (contact,)))
    hub.wait(lambda: len(hub.rows) == 2 and all(peer.accepted and peer.greeted for peer in hub.peers()), 60)
    rounds, place = Rounds(hub, Waiting()), iter(range(10**9))

    def work(array):
        rounds.begin(next(place))
        return rounds.swap({"x": array})()[names[1]]["x"]

    return work, hub


def process(binds, own, other, addresses, counts):
    """One end: the same rounds at both."""
    plain = bare(own, other, addresses[0], binds)
    ours, hub = between_sites(own, other, addresses[1], binds)
    for size, (times, repeats) in zip(SIZES, counts, strict=True):
        array = np.random.default_rng(0).normal(size=(1, size))
        taken = {"bare": [], "round": []}
        for _ in range(repeats):
            for name, work in (("bare", plain), ("round", ours)):
                work(array)
                began = time.perf_counter()
                for _ in range(times):
                    work(array)
                taken[name].append((time.perf_counter() - began) / times)
        if binds:
            row = {"bytes": array.nbytes, **{name: float(np.median(values)) for name, values in taken.items()}}
            print(json.dumps(row), flush=True)
    hub.finish("completed")
    hub.wait(lambda: all(peer.ended for peer in hub.peers()), 10)
    hub.close()


def main():
    quick = "--quick" in sys.argv
    counts = [(20, 3), (10, 3), (3, 2), (1, 1)] if quick else [(100, 9), (30, 9), (6, 7), (1, 5)]
    if "other" in sys.argv:
        given = json.loads(sys.argv[-1])
        process(False, KeyPair(*given["own"]), given["other"], given["addresses"], counts)
        return
    one, two = generate(), generate()
    with zmq.Context() as context, context.socket(zmq.PULL) as first, context.socket(zmq.PULL) as second:
        addresses = [f"tcp://127.0.0.1:{each.bind_to_random_port('tcp://127.0.0.1')}" for each in (first, second)]
    given = json.dumps({"own": two, "other": one.public, "addresses": addresses})
    words = [sys.executable, str(Path(__file__)), *(["--quick"] if quick else []), "other", given]
    other = subprocess.Popen(words)
    try:
        process(True, one, two.public, addresses, counts)
        other.wait(60)
    finally:
        other.kill()


if __name__ == "__main__":
    main()
