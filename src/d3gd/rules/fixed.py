"""Weights that stay as they are, known to all from the set-up."""

from dataclasses import dataclass
from typing import NamedTuple

from d3gd.arrays import Floats
from d3gd.network import Network
from d3gd.rules.base import Rule, Use, gain_under
from d3gd.spectrum import perron
from d3gd.state import Common, Scalar


class Known(NamedTuple):
    """What everyone knows of weights that everyone knows."""

    a: Common  # (all edges,)
    pi: Common  # (n,)  their Perron vector
    gain: Scalar  # of a correction under them

    def use(self, net: Network) -> Use:
        """Return this block's part of it."""
        return Use(net.block(self.a), self.pi[net.agents, None], self.gain)


def known(net: Network, a: Floats, *, corrected: bool = True) -> Known:
    """Work out what everyone knows, from weights over all edges of the network."""
    A = net.graph.matrix(a)
    return Known(a=a, pi=perron(A), gain=gain_under(A) if corrected else 0.0)


@dataclass(frozen=True)
class Fixed(Rule):
    """The initial weights for ever, with their exact Perron vector: the control for all that moves weights."""

    corrected: bool

    def init(self, net: Network, x0: Floats) -> Known:
        """Work out once what everyone knows."""
        return known(net, net.everywhere_a0, corrected=self.corrected)

    def use(self, net: Network, s: Known) -> Use:
        """Return the weights."""
        return s.use(net)
