"""Directed decentralized gradient descent, the paper's eq. (strategy:1)."""

from dataclasses import dataclass
from typing import NamedTuple, get_args

from d3gd.algorithms.base import Algorithm, Gradient, Needs
from d3gd.arrays import Floats
from d3gd.conditions import Hardship
from d3gd.errors import SettingsError
from d3gd.network import Network
from d3gd.rules.base import Now
from d3gd.rules.scale import Perron, Scale, scale_by
from d3gd.rules.updates import descended
from d3gd.schedules import Schedule, at
from d3gd.state import PerAgent
from d3gd.validation import one_of, positive, within


class DiDGDState(NamedTuple):
    """The memory of Di-DGD."""

    x: PerAgent  # (agents, d)  models
    Y: PerAgent  # (agents, n)  Perron trackers, row i is y_i; with known Perron weights, (agents, 1)


@dataclass(frozen=True, kw_only=True)
class DiDGD(Algorithm[DiDGDState]):
    r"""Directed decentralized gradient descent.

    .. math::
        x_i^{k+1} = \sum_j a_{ij} x_j^k - \frac{\gamma_k}{n\,[y_i^k]_i} \nabla f_i(x_i^k), \qquad
        y_i^{k+1} = \sum_j a_{ij} y_j^k, \quad y_i^0 = e_i.

    Since :math:`[y_i^k]_i \to \pi_i`, every agent ends with the weight 1/n in the objective although the weights are
    only row-stochastic. On long cycles :math:`[y_i]_i` first collapses (to :math:`2^{-(n-1)}` on a one-way ring with
    half weights) before it recovers, and the step explodes; ``warmup`` lets it recover first.

    On a network that changes, loses or delays messages, or whose agents pause (:mod:`d3gd.conditions`), y freezes at
    what happened first. ``averaged`` feeds it with a unit wherever the models take in a gradient,

    .. math::
        y_i^{k+1} = (1 - \beta_k) \sum_j a_{ij} y_j^k + \beta_k e_i, \qquad \beta_k = \frac{2}{k + 2},

    so that it goes through all that they go through: it tends to the share that each agent's gradients have in the
    models, whatever makes it, and the method stays unbiased. Where nothing is amiss y then needs longer, 1/k instead of
    geometrically, but never collapses.

    Args:
        step_size: :math:`\gamma_k`, a number or a function of the iteration.
        warmup: How many iterations mix only y, before the models move. The paper has none.
        perron: ``"tracked"`` as above; ``"known"`` takes the Perron vector of the weights, worked out once from the
            set-up, for y. It spares an n-vector per agent, which nothing can hold from some thousand agents on.
        averaged: Whether y averages over all products of weights, for networks that change, lose, delay or pause.

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

    step_size: float | Schedule
    warmup: int = 0
    perron: Perron = "tracked"
    averaged: bool = False

    def __post_init__(self) -> None:
        positive("step_size", self.step_size)
        within("warmup", self.warmup, 0, float("inf"))
        one_of("perron", self.perron, ("tracked", "known"))
        if self.perron == "known" and (self.warmup or self.averaged):
            raise SettingsError('perron = "known" tracks nothing; leave out warmup and averaged, or track it')

    @property
    def needs(self) -> Needs:
        """Known Perron weights come from the whole network's weights."""
        return "in-neighbours" if self.perron == "tracked" else "the network"

    @property
    def _scale(self) -> Scale:
        return scale_by(self.perron, averaged=self.averaged)

    @property
    def survives(self) -> frozenset[Hardship]:
        """Averaged, y measures what any network makes of the gradients; known, it is right where weights stay."""
        if self.averaged:
            return frozenset(get_args(Hardship))
        return frozenset({"delay"}) if self.perron == "known" else frozenset()

    @property
    def relies_on(self) -> str:
        """Where the Perron weight comes from."""
        if self.perron == "known":
            return "the Perron vector of the weights as they were set up"
        return "one product of weights to follow, y, which freezes at what the network did first"

    def init(self, net: Network, x0: Floats) -> DiDGDState:
        """Start from ``x0`` and the unit vectors."""
        return DiDGDState(x=x0, Y=self._scale.init(net, x0))

    def step(self, net: Network, gradient: Gradient, s: DiDGDState, k: int) -> DiDGDState:
        """Mix, and step against the rescaled gradient."""
        scale, now = self._scale, Now(k=k, gamma=at(self.step_size, k), a=net.a0)
        Y, message = scale.message(net, s.Y, now)
        if k < self.warmup:
            return DiDGDState(x=s.x, Y=scale.end(net, Y, net.exchange(**message), now))
        sent = net.exchange(x=s.x, **message)
        g = gradient()  # while messages are on their way
        y = net.precise(scale.own(net, s.Y))
        x = descended(net, net.mix(net.a0, sent.x), g, y, gamma=now.gamma, n=net.n)
        return DiDGDState(x=x, Y=scale.end(net, Y, sent, now))

    def scale(self, net: Network, s: DiDGDState) -> Floats:
        """Return :math:`[y_i]_i`."""
        return self._scale.own(net, s.Y)[:, 0]
