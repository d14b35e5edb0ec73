"""Mixing against a copy of equally many bytes on the same cores, and growth of time and memory with the network."""

import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from cases import Steps, fair, interleaved, quiet, regular

import d3gd
from d3gd.kernels.threads import cores
from d3gd.state import flatten


def bandwidth(n, d, quick):
    """The time of a copy over that of mixing (edges + n) d numbers: at 1, mixing is as fast as copying."""
    graph = d3gd.graphs.regular(n, 10, seed=0)
    net = d3gd.network.Network(graph, d3gd.weights.metropolis(graph))
    x = np.random.default_rng(0).normal(size=(n, d))
    numbers = (graph.link_count + n) * d
    source, target = np.ones(numbers), np.ones(numbers)
    cuts = np.linspace(0, numbers, cores() + 1).astype(int)
    with ThreadPoolExecutor(cores()) as pool:

        def copy():
            list(pool.map(lambda a, b: np.copyto(target[a:b], source[a:b]), cuts[:-1], cuts[1:]))

        sent = net.exchange(x=x).x
        taken = interleaved({"mix": lambda: net.mix(net.a0, sent), "copy": copy}, times=1, repeats=7 if quick else 25)
    return float(np.median(taken["copy"] / taken["mix"])), 8 * numbers / float(np.median(taken["mix"]))


def step_memory(make):
    """Peak memory of steps, including old and new state and gradients, and the size of the state.

    Memory held by the network and the method's set-up is not counted.
    """
    tracemalloc.start()
    try:
        steps = make()
        state = sum(array.nbytes for array in flatten(steps.state).values())
        before = tracemalloc.get_traced_memory()[0] - state
        tracemalloc.reset_peak()
        for _ in range(3):
            steps()
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    return peak, state


def growth(quick):
    """Seconds and peak memory per iteration of Di-DGD over n = 10 ... 100,000 at degree 10 (9 for n = 10), d = 64."""
    rows = []
    for n in (10, 100, 1000, 10_000, 100_000):
        case = regular(n, 8, 8, 10)

        def make(n=n):  # a new problem, since its buffers for gradients count
            return Steps(regular(n, 8, 8, 10), d3gd.DiDGD(step_size=0.1, perron="known"))

        with quiet():
            times = max(1, 20_000 // n)
            steps = Steps(case, d3gd.DiDGD(step_size=0.1, perron="known"))
            taken = interleaved({"step": steps}, times=times, repeats=3 if quick else 7)["step"]
            peak, state = step_memory(make)
        edges = case.graph.link_count
        rows.append((n, edges, float(np.median(taken)) / edges, peak / edges, peak / state))
    return rows


if __name__ == "__main__":
    fair()
    print(bandwidth(100_000, 64, True))
    for row in growth(True):
        print(row)
    case = regular(100_000, 8, 8, 10)
    with quiet():
        print(step_memory(lambda: Steps(case, d3gd.PerronD3GD(step_size=0.1, rule="fixed", perron="known"))))
