"""Weights that stay the same, on a network where every message arrives."""

from dataclasses import dataclass
from typing import NamedTuple

from d3gd.arrays import Floats
from d3gd.digraph import Digraph
from d3gd.distributed.coding import damped
from d3gd.network import Network
from d3gd.rules.base import Rule, Use
from d3gd.rules.gain import Gain, gain_under, require_stable
from d3gd.rules.mixing import mixing_weights
from d3gd.spectrum import perron
from d3gd.state import Common

MOST_ROUNDS = 100  # of mixing in an iteration: more would take all of the time


class Known(NamedTuple):
    """Weights, and what follows from them, known to all agents."""

    a: Common  # (all edges,)
    pi: Common  # (n,)  their Perron vector
    gain: Gain  # of a correction under them

    def use(self, net: Network, k: int) -> Use:
        """Return this block's part of it."""
        return Use(net.block(self.a), self.pi[net.agents, None], self.gain.at(k))


def known(
    graph: Digraph,
    a: Floats,
    *,
    corrected: bool = True,
    damping: float = 1.0,
    momentum: float = 0.0,
    rounds: int = 1,
) -> Known:
    """Return what follows from weights over all edges, damped if messages are compressed."""
    a = damped(a, graph.self_loops, damping)
    A = graph.matrix(a)
    gain = gain_under(A, momentum, rounds).under(damping, momentum) if corrected else Gain(0.0, 0.0)
    require_stable(A, gain, momentum, damping, rounds)
    return Known(a=a, pi=perron(A), gain=gain)


@dataclass(frozen=True)
class Fixed(Rule):
    """Fixed weights with their exact Perron vector, which the agents compute once they know the network.

    Attributes:
        mixing: Whether the weights are planned for mixing, from the graph alone, or the initial ones.
        corrected: Whether the method corrects.
        momentum: That of the models.
        rounds: The number of rounds of mixing per iteration.
    """

    mixing: bool
    corrected: bool
    momentum: float = 0.0
    rounds: int = 1

    def init(self, net: Network, x0: Floats) -> Known:
        """Discover the network, and choose weights for it."""
        found = net.survey()
        most = Gain(1.0, 1.0).under(net.damping, self.momentum).first if self.corrected else 0.0
        a = mixing_weights(found.graph, self.momentum, most, net.damping, self.rounds) if self.mixing else found.a0
        return known(
            found.graph,
            a,
            corrected=self.corrected,
            damping=net.damping,
            momentum=self.momentum,
            rounds=self.rounds,
        )

    def use(self, net: Network, s: Known, k: int) -> Use:
        """Return the weights."""
        return s.use(net, k)
