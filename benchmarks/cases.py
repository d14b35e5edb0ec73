"""The networks and problems that are measured, and how."""

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
    """Figure 1: 20 agents, Erdos-Renyi 0.6, models of 100 numbers."""
    return Case(
        d3gd.graphs.erdos_renyi(20, 0.6, seed=0), d3gd.problems.sigmoid_classification(agents=20, alpha=0.1, seed=0)
    )


def regular(n, classes, features, samples):
    """A random digraph in which everyone hears ten others; Gaussian features and labels at random."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, samples, features)), rng.integers(0, classes, (n, samples))
    degree = min(10, n - 1)
    return Case(d3gd.graphs.regular(n, degree, seed=0), SigmoidClassification(X, y, classes=classes))


def fair():
    """Load the compiled kernels, and free one large array: the C library then keeps what is freed later.

    Else temporary arrays, and those of the plain version are large, would cost a page fault per 4 KB.
    """
    import d3gd.kernels.compiled  # noqa: F401

    del_me = np.empty(31 << 17)
    del del_me


@contextmanager
def quiet():
    """What the engine does around its loop: BLAS on one thread, warnings off. For the plain version as well."""
    with threadpool_limits(1, "blas"), np.errstate(all="ignore"):
        yield


def seconds(work, times):
    """The time of one call of ``work``, averaged over a few."""
    began = time.perf_counter()
    for _ in range(times):
        work()
    return (time.perf_counter() - began) / times


def interleaved(works, *, times, repeats):
    """Measure every work in turn, again and again: what disturbs the machine then disturbs all of them alike.

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
    """An algorithm that goes on stepping, without the engine, from where it stands."""

    def __init__(self, case, algorithm):
        self.case, self.algorithm, self.net, self.k = case, algorithm, case.net(), 0
        self.state = algorithm.init(self.net, np.zeros((case.graph.n, case.problem.dim)))

    def __call__(self):
        x = self.algorithm.point(self.state)
        self.state = self.algorithm.step(self.net, lambda: self.case.problem.gradients(x, self.k), self.state, self.k)
        self.k += 1
