"""Methods, networks and problems of the battery, and runs to their fixed points."""

from dataclasses import replace
from functools import cache

import networkx as nx
import numpy as np

import d3gd
from tests.battery import theory
from tests.helpers.methods import advance, every_method
from tests.helpers.stepping import network

GRAPHS = {
    "ring": d3gd.graphs.ring(4),
    "erdos-renyi": d3gd.graphs.erdos_renyi(6, 0.4, seed=0),
    "exponential": d3gd.graphs.exponential(6),
    "grid": d3gd.graphs.grid(2, 3),
    "star": d3gd.graphs.star(5),
    "undirected erdos-renyi": d3gd.Digraph.from_networkx(nx.erdos_renyi_graph(6, 0.5, seed=0)),
}
STEP = 0.15


def fading(k):
    """A step for the weights that lets them come to rest; with constant ones they may circle for ever."""
    return 0.9**k


def _settling(algorithm):
    if isinstance(algorithm, d3gd.QGAdam):
        return replace(algorithm, step_size=0.03, second=0.9)  # scales that come to rest soon
    if not isinstance(algorithm, d3gd.D3GD):
        return algorithm
    # The exact rule takes no steps that could fade: it may jump to and fro, unless held by the initial weights.
    return replace(algorithm, anchor=0.5) if algorithm.rule == "exact" else replace(algorithm, refine_step=fading)


# The exact rule takes no gradient of the weights, so that its chain rule changes nothing. Averaged Perron weights come
# to rest like 1/k only, too slowly to see where; the textbook and the tests of conditions have them. So does PULM-DGD
# with growing rounds.
_LEFT_OUT = ("D3GD exact known chain_rule=True", "DiDGD tracked averaged=True", "PULMDGD")
METHODS = {name: _settling(made) for name, made in every_method(STEP).items() if name not in _LEFT_OUT}


def name_of(algorithm):
    return type(algorithm).__name__


def admissible(algorithm):
    """The graphs that a method can run on."""
    return {
        name: graph for name, graph in GRAPHS.items() if algorithm.needs != "undirected links" or graph.is_undirected
    }


@cache
def problem(kind, agents):
    """Small problems whose agents disagree; all of them are smooth with a constant of about one."""
    rng = np.random.default_rng(agents)
    if kind == "quadratic":
        return d3gd.problems.quadratic(agents=agents, dim=2, seed=1, conditioning=3)
    if kind == "softmax":
        X, y = rng.normal(size=(agents, 6, 2)), rng.integers(0, 3, size=(agents, 6))
        return d3gd.problems.softmax_regression(list(zip(X, y, strict=True)), regularization=0.4, classes=3)
    return d3gd.problems.sigmoid_classification(
        agents=agents, classes=3, features=2, samples=6, regularization=0.4, test_samples=0, seed=1
    )


PROBLEMS = ["quadratic", "softmax", "sigmoid"]


def settle(algorithm, graph, objective, most=6000, still=1e-12):
    """Step until models hardly move; return the network and the last state."""
    net = network(algorithm, graph, d3gd.weights.metropolis(graph))
    s = algorithm.init(net, np.zeros((graph.n, objective.dim)))
    once = graph.n if name_of(algorithm) == "PULMDGD" else 1  # iterations in which models move once
    for k in range(most):
        if k % once == 0:
            x = algorithm.point(s)
        s = advance(algorithm, net, objective, s, k)
        if k > 20 and (k + 1) % (20 * once) == 0 and np.abs(algorithm.point(s) - x).max() < still:
            return net, s
    raise AssertionError(f"the models still move by {np.abs(algorithm.point(s) - x).max():.1e} after {most} iterations")


def initial_weights(algorithm, graph, s, given=None):
    """The dense weights a method starts with: its own choice if it makes one, or the given ones, or Metropolis."""
    if name_of(algorithm) == "FROST":
        return graph.matrix(s.a).toarray()
    if name_of(algorithm) in ("PerronD3GD", "QGAdam", "QGMomentum") and algorithm.perron != "tracked":
        return graph.matrix(getattr(s.rule, "now", s.rule).a).toarray()
    return (d3gd.weights.metropolis(graph) if given is None else given).toarray()


def rest(algorithm, graph, net, s, objective):
    """Where theory says the models are at rest: the optimum, or a known distance from it."""
    from scipy.optimize import root

    n, d = graph.n, objective.dim
    zero = root(lambda x: objective.gradients(np.tile(x, (n, 1))).mean(axis=0), np.zeros(d), tol=1e-14).x
    optimum = np.tile(zero, (n, 1))
    if algorithm.exact:
        return optimum
    if name_of(algorithm) in theory.BALANCE:
        A, balance = initial_weights(algorithm, graph, s), theory.BALANCE[name_of(algorithm)]
        found = root(lambda x: balance(algorithm, A, x, objective.gradients(np.tile(x, (n, 1)))), zero, tol=1e-14)
        return np.tile(found.x, (n, 1))
    find = theory.REST[name_of(algorithm)]
    moves = name_of(algorithm) in ("D3GD", "PerronD3GD")
    A = graph.matrix(algorithm.weights(net, s)).toarray() if moves else initial_weights(algorithm, graph, s)
    B, D = find(algorithm, A, algorithm.scale(net, s))
    if isinstance(objective, d3gd.problems.Quadratic):
        return theory.rest_of_quadratic(B, D, objective)

    def unrest(x):
        X = x.reshape(n, d)
        return ((np.eye(n) - B) @ X + D @ objective.gradients(X)).ravel()

    return root(unrest, optimum.ravel(), tol=1e-14).x.reshape(n, d)
