"""Small random networks, and algorithms stepped by hand."""

import numpy as np

import d3gd
from d3gd.network import Network
from tests.helpers.methods import advance


def random_network(seed, n=6, p=0.2):
    """A strongly connected digraph, and weights on it that favour nobody in particular."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(n)
    cycle = np.column_stack([order, np.roll(order, -1)])
    graph = d3gd.Digraph.from_edges(n, np.concatenate([cycle, np.argwhere(rng.random((n, n)) < p)]))
    values = rng.uniform(0.2, 1.0, graph.sources.size)
    return graph, graph.matrix(values / np.add.reduceat(values, graph.indptr[:-1])[graph.targets])


def hears(graph):
    """For every agent the list of those it hears, itself included."""
    return [list(graph.sources[graph.indptr[i] : graph.indptr[i + 1]]) for i in range(graph.n)]


def network(algorithm, graph, weights, seed=0, dtype=np.float64):
    """The network that `d3gd.run` would hand to this algorithm."""
    return Network(graph, weights, seed=seed, needs=algorithm.needs, dtype=dtype)


def seven_agents(key=0, **options):
    """A drawn graph of seven agents, and the network on it with Metropolis weights."""
    graph = d3gd.graphs.erdos_renyi(7, 0.4, seed=key)
    return graph, Network(graph, d3gd.weights.metropolis(graph), **options)


def states(algorithm, graph, weights, problem, iterations, x0=None, seed=0, dtype=np.float64):
    """Every state of an algorithm, stepped by hand."""
    net = network(algorithm, graph, weights, seed, dtype)
    s = algorithm.init(net, np.zeros((graph.n, problem.dim), dtype=dtype) if x0 is None else x0)
    path = [s]
    for k in range(iterations):
        s = advance(algorithm, net, problem, s, k)
        path.append(s)
    return path
