"""A round of exchange against the bare transport moving the same bytes, and what overlapping it with work brings.

mpiexec -n 2 python benchmarks/rounds.py
torchrun --nproc-per-node 2 benchmarks/rounds.py
"""

import time

import numpy as np

import d3gd
from d3gd.network import Network
from d3gd.transports.mpi import MPI

REPEATS = 15
SIZES = (1_000, 12_500, 125_000, 1_250_000)  # numbers of 8 bytes that an agent's model holds


def bare_mpi(lengths_out, lengths_in):
    """What a user of mpi4py would write: buffers made once, Irecv, Isend, Waitall."""
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
    """What a user of torch.distributed would write: tensors made once, batch_isend_irecv, wait."""
    import torch
    from torch import distributed

    sends = {peer: torch.ones(length, dtype=torch.uint8) for peer, length in lengths_out.items()}
    receives = {peer: torch.ones(length, dtype=torch.uint8) for peer, length in lengths_in.items()}

    def work():
        operations = [distributed.P2POp(distributed.irecv, tensor, peer) for peer, tensor in receives.items()]
        operations += [distributed.P2POp(distributed.isend, tensor, peer) for peer, tensor in sends.items()]
        for request in distributed.batch_isend_irecv(operations):
            request.wait()

    return work


def seconds(transport, works, rounds):
    """For each kind of work, the time of the slowest rank that nine rounds of ten exceed.

    Kinds alternate, to share the noise; and a low quantile is what a busy machine leaves of a quiet one.
    """
    times = [[] for _ in works]
    for _ in range(REPEATS):
        for work, measured in zip(works, times, strict=True):
            transport.any(False)  # all begin together
            for _ in range(rounds):
                began = time.perf_counter()
                work()
                measured.append(time.perf_counter() - began)
    return transport.each(np.quantile(times, 0.1, axis=1)).max(axis=0)


def rounds(transport):
    """Rounds of one array, of a model with its tracker, and of blocks of agents."""
    bare_of = bare_mpi if isinstance(transport, MPI) else bare_torch
    ranks = transport.ranks
    cases = [
        ("one agent a rank, x", d3gd.graphs.ring(ranks), 0),
        ("one agent a rank, x and Y", d3gd.graphs.ring(ranks), 20),
        ("8 agents a rank, x and Y", d3gd.graphs.exponential(8 * ranks), 20),
    ]
    for name, graph, trackers in cases:
        for numbers in SIZES if graph.n == ranks else SIZES[:-1]:
            net = Network(graph, d3gd.weights.metropolis(graph), transport=transport)
            block, own = net.halo.block, len(net.agents)
            arrays = {"x": np.ones((own, numbers))} | ({"Y": np.ones((own, trackers))} if trackers else {})
            row = 8 * (numbers + trackers)
            out = {peer: row * len(rows) for peer, rows in block.sends.items()}
            bare = bare_of(out, {peer: row * (places.stop - places.start) for peer, places in block.receives.items()})
            size = max(out.values())
            low, ours = seconds(
                transport, [bare, lambda net=net, a=arrays: net.exchange(**a).x], 50 if size < 1e6 else 10
            )
            if transport.rank == 0:
                times = f"bare {low * 1e6:9.1f} us  exchange {ours * 1e6:9.1f} us  ratio {ours / low:.2f}"
                print(f"{name:26}  {size:>11,} bytes a message  {times}", flush=True)


def overlap(transport):
    """A round before, and during, work that takes about as long as it."""
    graph = d3gd.graphs.ring(transport.ranks)
    net = Network(graph, d3gd.weights.metropolis(graph), transport=transport)
    rng = np.random.default_rng(0)
    data, theta = rng.normal(size=(400, 785)), rng.normal(size=(785, 10))

    def work():
        return data.T @ (data @ theta)

    for numbers in SIZES[1:]:
        x = np.ones((1, numbers))

        def after(x=x):
            _ = net.exchange(x=x).x
            work()

        def during(x=x):
            sent = net.exchange(x=x)
            work()
            _ = sent.x

        times = seconds(transport, [work, lambda x=x: net.exchange(x=x).x, after, during], 10)
        if transport.rank == 0:
            labels = ("work", "round", "one after the other", "overlapped")
            shown = "  ".join(f"{label} {t * 1e6:.0f} us" for label, t in zip(labels, times, strict=True))
            print(f"{8 * numbers:>11,} bytes: {shown}", flush=True)


with d3gd.transports.connect() as transport:
    rounds(transport)
    overlap(transport)
