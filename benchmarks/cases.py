"""The measured networks and problems, and how to time them."""

import time
from contextlib import contextmanager

import numpy as np
from threadpoolctl import threadpool_limits

import d3gd
from d3gd.network import Network
from d3gd.problems import SigmoidClassification


class Case:
    """A network with Figure 1's loss on it."""

    def __init__(self, graph, problem):
        self.graph, self.problem = graph, problem
        self.weights = d3gd.weights.metropolis(graph)
        self.onehot = np.eye(problem.classes)[problem.y]

    def net(self):
        return Network(self.graph, self.weights)


def figure1():
    """Figure 1: 20 agents, Erdős-Rényi 0.6, models of 100 numbers."""
    return Case(
        d3gd.graphs.erdos_renyi(20, 0.6, seed=0), d3gd.problems.sigmoid_classification(agents=20, alpha=0.1, seed=0)
    )


def regular(n, classes, features, samples):
    """A random digraph in which every agent hears ten others; Gaussian features and random labels."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, samples, features)), rng.integers(0, classes, (n, samples))
    degree = min(10, n - 1)
    return Case(d3gd.graphs.regular(n, degree, seed=0), SigmoidClassification(X, y, classes=classes))


def fair():
    """Load the compiled kernels, and free one large array: the C library then retains freed memory.

    Otherwise large temporary arrays, as in the plain version, would cost a page fault per 4 KB.
    """
    import d3gd.kernels.compiled  # noqa: F401

    del_me = np.empty(31 << 17)
    del del_me


@contextmanager
def quiet():
    """The environment of the engine's loop, also for the plain version: BLAS on one thread, warnings off."""
    with threadpool_limits(1, "blas"), np.errstate(all="ignore"):
        yield


def seconds(work, times):
    """The time of one call of ``work``, averaged over a few."""
    began = time.perf_counter()
    for _ in range(times):
        work()
    return (time.perf_counter() - began) / times


def interleaved(works, *, times, repeats):
    """Measure all functions in turn, repeatedly, so that disturbances of the machine affect all of them equally.

    Returns:
        One array of seconds per name, one entry per repeat.
    """
    for work in works.values():
        work()
    taken = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            taken[name].append(seconds(work, times))
    return {name: np.array(values) for name, values in taken.items()}


class Steps:
    """An algorithm that steps on from its state at each call, without the engine."""

    def __init__(self, case, algorithm):
        self.case, self.algorithm, self.net, self.k = case, algorithm, case.net(), 0
        self.state = algorithm.init(self.net, np.zeros((case.graph.n, case.problem.dim)))

    def __call__(self):
        x = self.algorithm.point(self.state)
        self.state = self.algorithm.step(self.net, lambda: self.case.problem.gradients(x, self.k), self.state, self.k)
        self.k += 1
