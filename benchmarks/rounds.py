"""A round of exchange against the bare transport of the same bytes, and the gain of overlapping it with work.

mpiexec -n 2 python benchmarks/rounds.py [--quick]
torchrun --nproc-per-node 2 benchmarks/rounds.py [--quick]

`measure` starts both; every line that rank 0 prints is JSON.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import d3gd
from d3gd.network import Network
from d3gd.transports.mpi import MPI

LAUNCHERS = {"MPI": ["mpiexec", "-n", "2", "python"], "gloo": ["torchrun", "--nproc-per-node", "2"]}
SIZES = (12_500, 50_000, 125_000, 1_250_000)  # model sizes, in numbers of 8 bytes
PAUSE = 2e-3  # seconds of work elsewhere


def measure(quick):
    """Return the measurements under both launchers.

    Returns:
        Rows of `rounds` and of `overlaps`, each with its transport.
    """
    found = {"rounds": [], "overlaps": []}
    for name, (launcher, *options) in LAUNCHERS.items():
        command = [str(Path(sys.executable).parent / launcher), *options, __file__, *(["--quick"] if quick else [])]
        command = [sys.executable if word == "python" else word for word in command]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=True)
        for line in done.stdout.splitlines():
            row = json.loads(line)
            found[row.pop("table")].append({"transport": name, **row})
    return found


def bare_mpi(lengths_out, lengths_in):
    """A user's mpi4py code: preallocated buffers, Irecv, Isend, Waitall."""
    from mpi4py import MPI as mpi  # noqa: N811

    world = mpi.COMM_WORLD
    sends = {peer: np.ones(length, dtype=np.uint8) for peer, length in lengths_out.items()}
    receives = {peer: np.ones(length, dtype=np.uint8) for peer, length in lengths_in.items()}

    def work():
        requests = [world.Irecv([array, mpi.BYTE], source=peer) for peer, array in receives.items()]
        requests += [world.Isend([array, mpi.BYTE], dest=peer) for peer, array in sends.items()]
        mpi.Request.Waitall(requests)

    return work


def bare_torch(lengths_out, lengths_in):
    """A user's torch.distributed code: preallocated tensors, irecv, isend (faster than a batch), wait."""
    import torch
    from torch import distributed

    sends = {peer: torch.ones(length, dtype=torch.uint8) for peer, length in lengths_out.items()}
    receives = {peer: torch.ones(length, dtype=torch.uint8) for peer, length in lengths_in.items()}

    def work():
        requests = [distributed.irecv(tensor, peer) for peer, tensor in receives.items()]
        requests += [distributed.isend(tensor, peer) for peer, tensor in sends.items()]
        for request in requests:
            request.wait()

    return work


def seconds(transport, works, times, repeats):
    """For each kind of work, the first decile of the slowest rank's times.

    Kinds alternate, to share the noise; a low quantile approximates an idle machine.
    """
    taken = [[] for _ in works]
    for _ in range(repeats):
        for work, measured in zip(works, taken, strict=True):
            transport.any(False)  # all start together
            for _ in range(times):
                began = time.perf_counter()
                work()
                measured.append(time.perf_counter() - began)
    return transport.each(np.quantile(taken, 0.1, axis=1)).max(axis=0)


def rounds(transport, repeats):
    """Rounds of one array, of a model with its tracker, and of blocks of agents."""
    bare_of = bare_mpi if isinstance(transport, MPI) else bare_torch
    ranks = transport.ranks
    cases = [
        ("x of one agent", d3gd.graphs.ring(ranks), 0),
        ("x and Y of one agent", d3gd.graphs.ring(ranks), 20),
        ("x and Y of 7 of 8 agents", d3gd.graphs.exponential(8 * ranks), 20),
    ]
    for name, graph, trackers in cases:
        for numbers in SIZES if graph.n == ranks else SIZES[:3:2]:
            net = Network(graph, d3gd.weights.metropolis(graph), transport=transport)
            block, own = net.halo.block, len(net.agents)
            arrays = {"x": np.ones((own, numbers))} | ({"Y": np.ones((own, trackers))} if trackers else {})
            row = 8 * (numbers + trackers)
            out = {peer: row * len(rows) for peer, rows in block.sends.items()}
            bare = bare_of(out, {peer: row * (places.stop - places.start) for peer, places in block.receives.items()})
            size = max(out.values())
            low, ours = seconds(
                transport, [bare, lambda net=net, a=arrays: net.exchange(**a).x], 50 if size < 1e6 else 10, repeats
            )
            if transport.rank == 0:
                print(json.dumps({"table": "rounds", "what": name, "bytes": size, "bare": low, "round": ours}))


def overlaps(transport, repeats):
    """A round before work, and a round during work: on the ranks' cores, and elsewhere."""
    graph = d3gd.graphs.ring(transport.ranks)
    net = Network(graph, d3gd.weights.metropolis(graph), transport=transport)
    rng = np.random.default_rng(0)
    data, theta = rng.normal(size=(800, 785)), rng.normal(size=(785, 10))
    works = {"on these cores": lambda: data.T @ (data @ theta), "elsewhere": lambda: time.sleep(PAUSE)}
    for numbers in SIZES[2:]:
        x = np.ones((1, numbers))
        for name, work in works.items():

            def after(x=x, work=work):
                _ = net.exchange(x=x).x
                work()

            def during(x=x, work=work):
                sent = net.exchange(x=x)
                work()
                _ = sent.x

            alone, apart, together = seconds(transport, [work, after, during], 10, repeats)
            if transport.rank == 0:
                row = {"table": "overlaps", "work": name, "bytes": 8 * numbers, "alone": alone}
                print(json.dumps({**row, "after": apart, "during": together}))


if __name__ == "__main__":
    often = 8 if "--quick" in sys.argv else 25
    with threadpool_limits(1, "blas"), d3gd.transports.connect() as ranks:
        rounds(ranks, often)
        overlaps(ranks, often)
