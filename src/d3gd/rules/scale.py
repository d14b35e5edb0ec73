r"""How agents know their Perron weight :math:`\pi_i`, by which Di-DGD, D3GD and FROST divide their steps."""

from typing import Literal, TypeAlias

from d3gd.arrays import Array, Floats
from d3gd.network import Inbox, Network
from d3gd.spectrum import perron

Perron: TypeAlias = Literal["tracked", "known"]


class Tracked:
    """The paper's trackers: an n-vector per agent, mixed like the models; it begins as a unit vector."""

    def init(self, net: Network, a: Floats) -> Floats:
        """Start from the unit vectors, (agents, n), whatever the weights over all edges are."""
        return net.eye()

    def own(self, net: Network, Y: Floats) -> Floats:
        """Return the agent's own entry, as a column."""
        return net.own(Y)

    def message(self, Y: Floats) -> dict[str, Array]:
        """Send the whole vector."""
        return {"Y": Y}

    def advance(self, net: Network, Y: Floats, a: Floats, sent: Inbox) -> Floats:
        """Mix."""
        return net.mix(a, sent.Y)


class Given:
    """The Perron weights of the weights to begin with, worked out once from the set-up: one number per agent."""

    def init(self, net: Network, a: Floats) -> Floats:
        """Work them out from the weights over all edges, (agents, 1)."""
        return perron(net.graph.matrix(a))[net.agents, None]

    def own(self, net: Network, Y: Floats) -> Floats:
        """Return them."""
        return net.precise(Y)

    def message(self, Y: Floats) -> dict[str, Array]:
        """There is nothing to send."""
        return {}

    def advance(self, net: Network, Y: Floats, a: Floats, sent: Inbox) -> Floats:
        """They stay."""
        return Y


def scale_by(perron: Perron) -> Tracked | Given:
    """Return the way that a setting names."""
    return Tracked() if perron == "tracked" else Given()
