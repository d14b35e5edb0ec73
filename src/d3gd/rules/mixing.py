"""Weights planned for fast mixing, from the network alone."""

import numpy as np

from d3gd.arrays import Floats
from d3gd.digraph import Digraph
from d3gd.steady.planner import Planner

_HEARD = 0.95  # lower bound of n pi_i: with tracking, agents of little influence become unstable first
_EVALUATIONS = 150  # done once, before the first iteration, so accuracy is affordable


def planned_for_mixing(graph: Digraph, a: Floats) -> Floats:
    """Return weights over all edges for unknown gradients, modelled as white noise of equal variance at all agents.

    Tracking removes the deviations that other plans minimize, so the weights only have to mix fast and give all agents
    influence. Agents that know the same network compute the same weights, in O(n^3) operations.

    Args:
        graph: The network.
        a: The initial weights over all its edges.
    """
    planner = Planner(graph.n, graph.targets, graph.sources, a, least=_HEARD)
    nothing, white = np.zeros((graph.n, 1)), np.ones(graph.n)
    return planner.plan(a, nothing, white, 1.0, evaluations=_EVALUATIONS)
