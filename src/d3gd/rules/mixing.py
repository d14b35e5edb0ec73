"""Weights planned for mixing alone, from the network alone."""

import numpy as np

from d3gd.arrays import Floats
from d3gd.network import Network
from d3gd.steady.planner import PLANNED_UP_TO, Planner

_HEARD = 0.95  # the least n pi_i: with tracking, an agent that is little heard is the first to become unstable
_EVALUATIONS = 150  # once, before the first iteration: worth doing well


def planned_for_mixing(net: Network, *, lazy: bool) -> Floats:
    """Return weights over all edges for gradients of which nothing is known: equal noise everywhere, in all directions.

    Tracking removes the deviations that other plans are made against, so all that its weights can do is to mix fast and
    to let everyone be heard. The network is known to all from the set-up, so all agents plan the same weights. A
    plan takes n^3 work; above 300 agents the initial weights stay.

    Args:
        net: The network.
        lazy: Whether half of every weight stays at home: where agents combine before their step, tracking needs the
            damping.
    """
    a = net.everywhere_a0
    if net.n <= PLANNED_UP_TO:
        planner = Planner(net.n, net.graph.targets, net.graph.sources, a, least=_HEARD)
        nothing, white = np.zeros((net.n, 1)), np.ones(net.n)
        a = planner.plan(a, nothing, white, 1.0, evaluations=_EVALUATIONS)
    return (a + (net.graph.sources == net.graph.targets)) / 2 if lazy else a
