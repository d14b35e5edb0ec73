"""A round of exchange against the bare transport moving the same bytes.

mpiexec -n 2 python benchmarks/rounds.py
torchrun --nproc-per-node 2 benchmarks/rounds.py
"""

import time

import numpy as np

import d3gd
from d3gd.network import Network

ROUNDS, REPEATS = 50, 7


def seconds(transport, work):
    """The median over repeats of the slowest rank's time for a round."""
    times = []
    for _ in range(REPEATS):
        transport.any(False)  # all begin together
        began = time.perf_counter()
        for _ in range(ROUNDS):
            work()
        times.append(float(transport.each(np.array(time.perf_counter() - began)).max()) / ROUNDS)
    return float(np.median(times))


with d3gd.transports.connect() as transport:
    graph = d3gd.graphs.ring(transport.ranks)
    for numbers in (1_000, 12_500, 125_000, 1_250_000):
        net = Network(graph, d3gd.weights.metropolis(graph), transport=transport)
        x = np.ones((1, numbers))
        sends = {peer: np.ones(numbers) for peer in net.halo.block.sends}
        receives = {peer: np.ones(numbers) for peer in net.halo.block.receives}
        bare = seconds(transport, lambda s=sends, r=receives: transport.swap(s, r, "bare"))
        whole = seconds(transport, lambda net=net, x=x: net.exchange(x=x))
        if transport.rank == 0:
            times = f"bare {bare * 1e6:9.1f} us  exchange {whole * 1e6:9.1f} us"
            print(f"{8 * numbers:>10,} bytes  {times}  ratio {whole / bare:.2f}")
