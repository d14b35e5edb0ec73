"""Weights that stay as they are, known to all from the set-up."""

from typing import NamedTuple

from d3gd.arrays import Floats
from d3gd.network import Network
from d3gd.rules.base import MARGIN, Rule, Use, gain
from d3gd.spectrum import perron, spectral_gap
from d3gd.state import Common, Scalar


class Known(NamedTuple):
    """What everyone knows of weights that everyone knows."""

    a: Common  # (all edges,)
    pi: Common  # (n,)  their Perron vector
    shrinks: Scalar  # |lambda_2|: what a round of mixing leaves of a deviation

    def use(self, net: Network) -> Use:
        """Return this block's part of it."""
        return Use(net.block(self.a), net.precise(self.pi[net.agents, None]), gain(self.shrinks, MARGIN))


def known(net: Network, a: Floats) -> Known:
    """Work out what everyone knows, from weights over all edges of the network."""
    A = net.graph.matrix(a)
    return Known(a=a, pi=perron(A), shrinks=1 - spectral_gap(A))


class Fixed(Rule):
    """The initial weights for ever, with their exact Perron vector: the control for all that moves weights."""

    def init(self, net: Network, x0: Floats) -> Known:
        """Work out once what everyone knows."""
        return known(net, net.everywhere_a0)

    def use(self, net: Network, s: Known) -> Use:
        """Return the weights."""
        return s.use(net)
