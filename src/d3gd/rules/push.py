"""Pushing: senders split what they hold among those who hear them, so that sums over all agents stay what they are."""

from typing import NamedTuple

import numpy as np

from d3gd.arrays import Floats, Ints
from d3gd.distributed.received import Received
from d3gd.network import Network
from d3gd.state import PerAgent, PerEdge


def split(net: Network, held: Floats) -> Floats:
    """Return what each agent sends to each of its listeners, and keeps: an equal part of what it holds."""
    parts: Floats = held / _parts(net).astype(held.dtype)
    return parts


def remainder(net: Network, held: Floats, part: Floats) -> Floats | float:
    """Return what rounding the parts to the precision of messages has left with their sender."""
    return 0.0 if held.dtype == part.dtype else held - _parts(net) * part.astype(held.dtype)


def gather(net: Network, received: Received, *, double: bool = False) -> Floats:
    r"""Return the sum of the parts that arrived, :math:`\sum_j c_{ij} x_j` if senders sent :func:`split` of x."""
    return net.mix(np.ones_like(net.a0), received, double=double)


def _parts(net: Network) -> Ints:
    parts: Ints = net.graph.out_degrees[net.agents, None] + 1
    return parts


def shares(net: Network) -> Floats:
    r"""Return the column-stochastic weights over all edges, :math:`c_{ij} = 1 / (1 + \text{out-degree of } j)`."""
    graph = net.graph
    split_among: Floats = 1 / (graph.out_degrees + 1.0)[graph.sources]
    return split_among


class Mass(NamedTuple):
    r"""Push-sum's mass: pushed along with what is to be averaged, it says how much of it has gathered where.

    Dividing by it turns pushing into averaging: if :math:`u_i = w_i z_i`, then pushing u and w moves z by the
    row-stochastic weights :math:`c_{ij} w_j / w_i^+`, whose Perron vector tends to :math:`w / n`.
    """

    w: PerAgent  # (agents, 1)  sums to n
    a: PerEdge  # (edges,)      the weights on z that the last push amounted to; at the start, that the first will

    def share(self, u: Floats) -> Floats:
        """Return z = u / w, in the precision of u."""
        z: Floats = u / self.w.astype(u.dtype, copy=False)
        return z

    def pushed(self, net: Network, received: Received) -> "Mass":
        """Return the mass after a push, given the parts of w that arrived."""
        w = gather(net, received)
        return Mass(w=w, a=net.dot(np.ones_like(w), received) / net.spread(w[:, 0]))


def unit_mass(net: Network) -> Mass:
    """Return the mass at the start: one for every agent."""
    c = net.block(shares(net))
    return Mass(w=np.ones((len(net.agents), 1)), a=c / net.spread(net.reduce(c)))
