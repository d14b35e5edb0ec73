"""Directed decentralized gradient descent, the paper's eq. (strategy:1)."""

from dataclasses import dataclass
from typing import NamedTuple, get_args

from d3gd.algorithms.base import Algorithm, Gradient, Heading, Needs
from d3gd.arrays import Floats
from d3gd.conditions import Hardship
from d3gd.errors import SettingsError
from d3gd.network import Network
from d3gd.rules.base import Now
from d3gd.rules.scale import Perron, Scale, scale_by
from d3gd.rules.updates import mixed_descent
from d3gd.schedules import Schedule, at
from d3gd.state import PerAgent
from d3gd.validation import count, one_of, positive


class DiDGDState(NamedTuple):
    """The state of Di-DGD."""

    x: PerAgent  # (agents, d)  models
    Y: PerAgent  # (agents, n)  Perron trackers, row i is y_i; with known Perron weights, (agents, 1)


@dataclass(frozen=True, kw_only=True)
class DiDGD(Algorithm[DiDGDState]):
    r"""Directed decentralized gradient descent.

    .. math::
        x_i^{k+1} = \sum_j a_{ij} x_j^k - \frac{\gamma_k}{n\,[y_i^k]_i} \nabla f_i(x_i^k), \qquad
        y_i^{k+1} = \sum_j a_{ij} y_j^k, \quad y_i^0 = e_i.

    Since :math:`[y_i^k]_i \to \pi_i`, every agent eventually has weight 1/n in the objective although the weights are
    only row-stochastic. On long cycles :math:`[y_i]_i` first collapses (to :math:`2^{-(n-1)}` on a directed ring with
    weights 1/2), so that the steps explode, before it recovers; ``warmup`` lets it recover first.

    On unreliable networks (:mod:`d3gd.conditions`), y freezes at a value that depends on the first iterations.
    ``averaged`` adds a unit vector whenever the models receive a gradient,

    .. math::
        y_i^{k+1} = (1 - \beta_k) \sum_j a_{ij} y_j^k + \beta_k e_i, \qquad \beta_k = \frac{2}{k + 2},

    so that y undergoes whatever the models undergo: it tends to the share that each agent's gradients have in the
    models, under any conditions, and the method stays unbiased. On reliable networks y then converges more slowly, as
    1/k instead of geometrically, but never collapses. An agent must be heard: the share of one that nobody hears any
    more falls like 1/k, and its steps grow until it diverges. From within it cannot tell this from a small share; where
    graphs or absences of the conditions show it beforehand, there is an error or a warning.

    Args:
        step_size: :math:`\gamma_k`, a constant or a schedule.
        warmup: Number of initial iterations that mix y only and keep the models. The paper has none.
        perron: ``"tracked"`` as above; ``"known"`` replaces y by the Perron vector of the weights, computed once at
            set-up. It saves an n-vector per agent, which is too much memory with thousands of agents.
        averaged: Whether y averages over all products of weights, for unreliable networks.

    Example:
        >>> import d3gd
        >>> problem = d3gd.problems.quadratic(agents=5, dim=3)
        >>> d3gd.run(DiDGD(step_size=0.05), d3gd.graphs.ring(5), problem, iterations=100).status
        'completed'

    References:
        Du and Wai, *Decentralized learning with dynamically refined edge weights*, 2026, eq. (strategy:1);
        Xi, Mai, Xin, Abed and Khan, *Linear convergence in optimization over directed graphs with row-stochastic
        matrices*, IEEE Transactions on Automatic Control 63, 2018.
    """

    coordinatewise = True

    step_size: float | Schedule
    warmup: int = 0
    perron: Perron = "tracked"
    averaged: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("step_size", self.step_size)
        count("warmup", self.warmup, least=0)
        one_of("perron", self.perron, ("tracked", "known"))
        if self.perron == "known" and (self.warmup or self.averaged):
            raise SettingsError('warmup and averaged have no effect with perron = "known"; drop them, or use "tracked"')

    @property
    def needs(self) -> Needs:
        """The knowledge of agents: known Perron weights are computed from the weights of the whole network."""
        return "in-neighbours" if self.perron == "tracked" else "the network"

    @property
    def _scale(self) -> Scale:
        return scale_by(self.perron, averaged=self.averaged)

    @property
    def survives(self) -> frozenset[Hardship]:
        """All conditions if y is averaged; with known Perron weights, those that leave the weights unchanged."""
        if self.averaged:
            return frozenset(get_args(Hardship))
        return frozenset({"delay"}) if self.perron == "known" else frozenset()

    @property
    def relies_on(self) -> str:
        """The source of the Perron weights."""
        if self.perron == "known":
            return "the Perron vector of the initial weights"
        return "y, a single product of weights, which freezes at the weights of the first iterations"

    def init(self, net: Network, x0: Floats) -> DiDGDState:
        """Start from ``x0`` and the unit vectors."""
        if self.averaged:
            net.require_heard()
        return DiDGDState(x=x0, Y=self._scale.init(net, x0))

    def step(self, net: Network, gradient: Gradient, s: DiDGDState, k: int) -> DiDGDState:
        """Mix, and step against the rescaled gradient."""
        scale, now = self._scale, Now(k=k, gamma=at(self.step_size, k), a=net.a0)
        Y, message = scale.message(net, s.Y, now)
        if k < self.warmup:
            return DiDGDState(x=s.x, Y=scale.end(net, Y, net.exchange(**message), now))
        sent = net.exchange(x=s.x, **message)
        g = gradient()  # while messages are in flight
        y = net.precise(scale.own(net, s.Y))
        x = mixed_descent(net, net.a0, sent.x, s.x, g, y, gamma=now.gamma, n=net.n)
        return DiDGDState(x=x, Y=scale.end(net, Y, sent, now))

    def heading(self, net: Network, s: DiDGDState, k: int) -> Heading:
        """Descend along the rescaled gradient."""
        return Heading(1 / (net.n * self._scale.own(net, s.Y)), 0.0)

    def scale(self, net: Network, s: DiDGDState) -> Floats:
        """Return :math:`[y_i]_i`."""
        return self._scale.own(net, s.Y)[:, 0]
