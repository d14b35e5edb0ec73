"""Weights for fast mixing at nearly equal shares, from the graph alone."""

import numpy as np

from d3gd.arrays import Floats
from d3gd.digraph import Digraph
from d3gd.spectrum import modes
from d3gd.steady.flows import flow_weights
from d3gd.steady.planner import PLANNED_UP_TO, Planner
from d3gd.weights import balanced

_EVALUATIONS = 150  # made once, before the first iteration
_INSTEAD = 'choose rule = "fixed", or metropolis weights'
_LOWEST = -0.6  # real part of a mode: lower ones, which alternate, would leave little room for a correction's gain


def fast_weights(graph: Digraph, *, least: float = 0.8) -> Floats:
    r"""Return weights over all edges for unknown gradients, modelled as white noise of equal variance at all agents.

    Doubly stochastic weights by Sinkhorn's iteration (:func:`d3gd.weights.balanced`) come first. A plan follows that
    gives up some balance for less noise: up to 300 agents by :mod:`d3gd.steady.planner`, above by
    :mod:`d3gd.steady.flows`. Where links are scarce (stars, bridges) the weights then mix several times faster. Agents
    that know the same graph compute the same weights.

    Args:
        graph: A strongly connected graph.
        least: The :math:`n \pi_i` that no agent should fall below.
    """
    a: Floats = balanced(graph).data
    if graph.n > PLANNED_UP_TO:
        return flow_weights(graph, a, least=least)
    planner = Planner(graph.n, graph.targets, graph.sources, a, least=least, instead=_INSTEAD)
    a = planner.plan(a, np.zeros((graph.n, 1)), np.ones(graph.n), 1.0, evaluations=_EVALUATIONS)
    lowest = float(modes(graph.matrix(a)).real.min(initial=0.0))
    stay = max(0.0, (_LOWEST - lowest) / (1 - lowest))
    lazier: Floats = (1 - stay) * a + stay * (graph.sources == graph.targets)
    return lazier
