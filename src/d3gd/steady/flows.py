r"""Weights for mixing on large networks, by sparse products alone.

The *flow* of weights A along an edge is :math:`f_{ij} = \pi_i a_{ij}`. What flows into an agent also leaves it: the
flows along its in-edges and those along its out-edges both sum to :math:`\pi_i`. Over flows, Perron weights are
explicit and balance is linear, so that neither takes a solve. A plan minimizes

.. math::
    \log \sum_{k=1}^{K} \| J A^k C z \|^2, \qquad C = \mathrm{diag}\Big(\frac{1}{n \pi_i}\Big), \quad
    J = I - \tfrac1n 1 1^T, \qquad \text{subject to} \quad n \pi_i \ge \kappa,

where z are random signs: in the mean, the first terms of the noise N of :mod:`d3gd.steady.planner`. Each round draws
new signs, multiplies the flows by the exponential of the derivative, which the adjoint recursion gives, and scales rows
and columns until the flows balance: mirror descent with Sinkhorn's iteration as its projection.
"""

import numpy as np

from d3gd.arrays import CSR, Floats
from d3gd.digraph import Digraph
from d3gd.random import keyed_uniform
from d3gd.spectrum import perron, second_within

_FAST = 0.7  # a second eigenvalue below which balanced weights mix so fast that a plan brings nothing
_TERMS, _SIGNS = 20, 4  # K, and the columns of z
_LONG = 200  # terms by which a plan is judged in the end
_WORK = 3e8  # about how many products per edge all rounds may take: a few seconds
_FEWEST, _MOST = 10, 40  # rounds
_RATE, _MEMORY = 0.2, 0.8  # of the descent: the first step, and the weight of earlier derivatives
_STRIDE = 1.0  # a flow's logarithm changes at most by this in a round
_SWEEPS, _LAST_SWEEPS = 100, 2000  # of the scaling, in a round and in the end
_BALANCED = 1e-9
_NEARLY = 0.9  # of the least share: what a plan may fall short of it
_ANCHOR = 0.05  # share of the initial flows that stays, so that the graph stays connected
_STREAM = 7  # of the random signs, distinct from those of agents and links


def flow_weights(graph: Digraph, a: Floats, *, least: float) -> Floats:
    r"""Return weights over all edges that let less noise pass than ``a``, or ``a`` where there are none.

    Args:
        graph: A strongly connected graph.
        a: Doubly stochastic weights, or nearly so.
        least: :math:`\kappa`, the least :math:`n \pi_i`.
    """
    n = graph.n
    if second_within(graph.matrix(a), _FAST):
        return a
    flow, pi = a / n, np.full(n, 1 / n)
    rounds = int(np.clip(_WORK / (len(a) * _TERMS * _SIGNS), _FEWEST, _MOST))
    slope = np.zeros_like(a)
    for r in range(rounds):
        memory = _MEMORY if r else 0.0
        slope = memory * slope + (1 - memory) * _slope(graph, flow, pi, r)
        flow = flow * np.exp(np.clip(-_RATE * (1 - r / rounds) * slope, -_STRIDE, _STRIDE))
        flow, pi = _balanced(graph, flow, least, _SWEEPS if r < rounds - 1 else _LAST_SWEEPS)
    planned = (1 - _ANCHOR) * flow + _ANCHOR * a / n
    shares = _by_row(graph, planned)
    weights: Floats = planned / shares[graph.targets]
    if n * perron(graph.matrix(weights)).min() < _NEARLY * least:
        return a  # the scaling was stopped far from balance
    signs = _signs(n, rounds)
    before, after = _passed(graph.matrix(a), signs), _passed(graph.matrix(weights), signs / (n * shares)[:, None])
    return weights if after < before else a


def _signs(n: int, draw: int) -> Floats:
    return np.where(keyed_uniform(0, np.arange(n), draw, _SIGNS, _STREAM) < 0.5, -1.0, 1.0)


def _passed(A: CSR, models: Floats) -> float:
    """Return the sum of squared deviations over many rounds of mixing."""
    total = 0.0
    for _ in range(_LONG):
        models = A @ models
        away = models - models.mean(axis=0)
        total += float(np.einsum("is,is->", away, away))
    return total


def _slope(graph: Digraph, flow: Floats, pi: Floats, draw: int) -> Floats:
    """Return the derivative of the cost by the flows, under one draw of signs."""
    n, rows, columns = graph.n, graph.targets, graph.sources
    A = graph.matrix(flow / pi[rows])
    transposed: CSR = A.T.tocsr()
    models = [_signs(n, draw) / (n * pi)[:, None]]
    for _ in range(_TERMS):
        models.append(A @ models[-1])
    away = [x - x.mean(axis=0) for x in models]
    total = float(sum(np.einsum("is,is->", x, x) for x in away[1:]))
    adjoint, by_weight = np.zeros_like(models[0]), np.zeros_like(flow)
    for x, before in zip(away[:0:-1], models[-2::-1], strict=True):
        adjoint = transposed @ adjoint + 2 * x
        by_weight += np.einsum("es,es->e", adjoint[rows], before[columns])
    by_share = -np.einsum("is,is->i", models[0], transposed @ adjoint) / pi  # through the steps, which are 1 / (n pi)
    by_row = _by_row(graph, by_weight * A.data)
    slope: Floats = (by_weight - by_row[rows]) / pi[rows] + (by_share[rows] + by_share[columns]) / 2
    return slope / total


def _balanced(graph: Digraph, flow: Floats, least: float, sweeps: int) -> tuple[Floats, Floats]:
    """Return flows that balance, or nearly so, scaled from others, and the shares of agents."""
    n, rows, columns = graph.n, graph.targets, graph.sources
    wanted = np.sqrt(_by_row(graph, flow) * np.bincount(columns, flow, minlength=n))
    spare = np.maximum(wanted / wanted.sum() - least / n, 0)
    pi = least / n + (1 - least) * spare / spare.sum()
    pattern = graph.matrix(flow)
    transposed = pattern.T.tocsr()
    left = np.ones(n)
    for _ in range(sweeps):
        right = pi / (transposed @ left)
        sums = pattern @ right
        if float(np.abs(left * sums / pi - 1).max()) <= _BALANCED:
            break
        left = pi / sums
    scaled: Floats = left[rows] * flow * right[columns]
    return scaled, _by_row(graph, scaled)


def _by_row(graph: Digraph, edges: Floats) -> Floats:
    sums: Floats = np.add.reduceat(edges, graph.indptr[:-1])
    return sums
