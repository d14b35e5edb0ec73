"""Weights planned for fast mixing, from the network alone."""

import numpy as np

from d3gd.arrays import Floats
from d3gd.network import Network
from d3gd.steady.planner import PLANNED_UP_TO, Planner

_HEARD = 0.95  # lower bound of n pi_i: with tracking, agents of little influence become unstable first
_EVALUATIONS = 150  # done once, before the first iteration, so accuracy is affordable


def planned_for_mixing(net: Network, *, lazy: bool) -> Floats:
    """Return weights over all edges for unknown gradients, modelled as white noise of equal variance at all agents.

    Tracking removes the deviations that other plans minimize, so the weights only have to mix fast and give all agents
    influence. The network is known to all agents at set-up, so all compute the same weights. A plan takes O(n^3)
    operations; above 300 agents the initial weights are kept.

    Args:
        net: The network.
        lazy: Whether to average the weights with the identity: if agents combine before their step, tracking needs the
            damping.
    """
    a = net.everywhere_a0
    if net.n <= PLANNED_UP_TO:
        planner = Planner(net.n, net.graph.targets, net.graph.sources, a, least=_HEARD)
        nothing, white = np.zeros((net.n, 1)), np.ones(net.n)
        a = planner.plan(a, nothing, white, 1.0, evaluations=_EVALUATIONS)
    return (a + (net.graph.sources == net.graph.targets)) / 2 if lazy else a
