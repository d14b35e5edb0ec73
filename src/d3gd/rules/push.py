"""Pushing: senders split what they hold among their out-neighbours, which preserves sums over all agents."""

from typing import NamedTuple

import numpy as np

from d3gd.arrays import Floats
from d3gd.digraph import Digraph
from d3gd.distributed.coding import damped
from d3gd.distributed.received import Received
from d3gd.network import Network
from d3gd.state import PerAgent, PerEdge


def split(net: Network, held: Floats) -> Floats:
    """Return the equal part that each agent sends to each out-neighbour and keeps."""
    part: Floats = held / _parts(net).astype(held.dtype)
    return part


def remainder(net: Network, held: Floats, part: Floats) -> Floats | float:
    """Return the rounding errors of the parts in the precision of messages, which stay with their sender."""
    return 0.0 if held.dtype == part.dtype else held - _parts(net) * part.astype(held.dtype)


def gather(net: Network, received: Received, *, double: bool = False) -> Floats:
    r"""Return the sum of the received parts, :math:`\sum_j c_{ij} x_j` if senders sent :func:`split` of x."""
    return net.mix(_received(net), received, double=double, kept=_parts(net))


def _parts(net: Network) -> Floats:
    """Return how many parts each agent divides what it holds into; under damping it keeps more than one."""
    parts: Floats = (net.out_degrees[:, None] + 1) / net.damping
    return parts


def _received(net: Network) -> Floats:
    """Return how many parts come along each edge: one, and all that an agent keeps along its self-loop."""
    count = np.ones_like(net.a0)
    if net.damping < 1:
        count[net.loops] = (_parts(net) - net.out_degrees[:, None])[:, 0]
    return count


def shares(graph: Digraph, damping: float) -> Floats:
    r"""Return the column-stochastic weights over all edges, :math:`c_{ij} = 1 / (1 + \text{out-degree of } j)`."""
    split_among: Floats = 1 / (graph.out_degrees + 1.0)[graph.sources]
    return damped(split_among, graph.self_loops, damping)


class Mass(NamedTuple):
    r"""The mass of push-sum: it is pushed along with the values and measures how much each agent has received.

    Dividing by it turns pushing into averaging: if :math:`u_i = w_i z_i`, then pushing u and w mixes z with the
    row-stochastic weights :math:`c_{ij} w_j / w_i^+`, whose Perron vector tends to :math:`w / n`.
    """

    w: PerAgent  # (agents, 1)  sums to n
    a: PerEdge  # (edges,)      the weights on z equivalent to the last push; at the start, the initial ones

    def share(self, u: Floats) -> Floats:
        """Return z = u / w, in the precision of u."""
        z: Floats = u / self.w.astype(u.dtype, copy=False)
        return z

    def pushed(self, net: Network, received: Received) -> "Mass":
        """Return the mass after a push, given the received parts of w."""
        w = gather(net, received)
        return Mass(w=w, a=_received(net) * net.dot(np.ones_like(w), received) / net.spread(w[:, 0]))


def unit_mass(net: Network) -> Mass:
    """Return the initial mass: 1 for every agent."""
    return Mass(w=np.ones((len(net.agents), 1)), a=net.a0)


class RunningSum(NamedTuple):
    r"""Pushing without loss: agents send the sum of all parts so far, and receivers take what is new in it.

    The parts are rounded to the precision of messages; what rounding takes away stays with the sender, so that
    :math:`\sum_i z_i + \sum_{j \to i} (\rho_j - \tilde\rho_{ij})` is conserved, whatever arrives.
    """

    total: PerAgent  # (agents, d)  rho, the sum of what the agent has split off for each out-neighbour
    seen: PerEdge  # (edges, d)     what the last message along each edge said; zero along self-loops

    def split_off(self, net: Network, held: Floats) -> tuple[Floats, Floats]:
        """Return the new running sum, and what its sender keeps of what it held."""
        total = net.precise(self.total + split(net, held))
        given = np.subtract(total, self.total, dtype=held.dtype)
        return total, held - net.out_degrees[:, None] * given

    def read(self, net: Network, total: Floats, received: Received) -> tuple["RunningSum", Floats]:
        """Return the running sums after an exchange, and what each agent has gained by it."""
        news = (net.arrived() & ~net.loops)[:, None]
        seen: Floats = np.where(news, net.along(received), self.seen)
        return RunningSum(total, seen), net.reduce(np.subtract(seen, self.seen, dtype=np.float64))


def no_sum(net: Network, x0: Floats) -> RunningSum:
    """Return the running sums before the first push: zero."""
    return RunningSum(np.zeros_like(x0), np.zeros((len(net.a0), *x0.shape[1:]), dtype=x0.dtype))
