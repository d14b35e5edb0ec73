r"""How agents know their Perron weight :math:`\pi_i`, by which Di-DGD, D3GD and FROST divide their steps."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from d3gd.arrays import Array, Floats
from d3gd.distributed.inbox import Inbox
from d3gd.network import Network
from d3gd.rules.base import Now, Part
from d3gd.spectrum import perron

Perron: TypeAlias = Literal["tracked", "known"]


class Scale(Part):
    """A part that knows each agent's Perron weight."""

    def own(self, net: Network, Y: Floats) -> Floats:
        """Return the Perron weights in use, as a column."""
        raise NotImplementedError


class Tracked(Scale):
    r"""The paper's trackers: :math:`y_i^{k+1} = \sum_j a_{ij} y_j^k`, :math:`y_i^0 = e_i`, an n-vector per agent."""

    def init(self, net: Network, x0: Floats) -> Floats:
        """Start from the unit vectors, (agents, n)."""
        return net.eye()

    def own(self, net: Network, Y: Floats) -> Floats:
        """Return each agent's own entry."""
        return net.own(Y)

    def message(self, net: Network, Y: Floats, now: Now) -> tuple[Floats, dict[str, Array]]:
        """Send the whole vector."""
        return Y, {"Y": Y}

    def end(self, net: Network, Y: Floats, sent: Inbox, now: Now) -> Floats:
        """Mix."""
        return net.mix(now.a, sent.Y)


class Averaged(Tracked):
    r"""Trackers that average over all products of weights: a unit enters wherever the models take in a gradient.

    .. math::
        y_i^{k+1} = (1 - \beta_k) \sum_j a_{ij} y_j^k + \beta_k e_i, \qquad \beta_k = \frac{2}{k + 2}.
    """

    def end(self, net: Network, Y: Floats, sent: Inbox, now: Now) -> Floats:
        """Mix, and add a unit."""
        beta = 2 / (now.k + 2)
        return (1 - beta) * net.mix(now.a, sent.Y) + beta * net.eye()


@dataclass(frozen=True)
class Given(Scale):
    """The Perron vector of fixed weights, computed once by agents that know the network or discover it.

    Attributes:
        a: The weights over all edges of the network; by default the initial ones.
    """

    a: Floats | None = None

    def init(self, net: Network, x0: Floats) -> Floats:
        """Compute it, (agents, 1)."""
        found = net.survey()
        return perron(found.graph.matrix(found.a0 if self.a is None else self.a))[net.agents, None]

    def own(self, net: Network, Y: Floats) -> Floats:
        """Return it."""
        return Y


def scale_by(perron: Perron | Literal["discovered"], *, averaged: bool = False) -> Scale:
    """Return the part that a setting names."""
    return Given() if perron != "tracked" else Averaged() if averaged else Tracked()
