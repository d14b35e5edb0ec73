"""Local weights: each agent learns from its in-neighbours what listening to them does, also to the Perron vector."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from d3gd.arrays import Array, Floats
from d3gd.network import Inbox, Network
from d3gd.rules.base import MARGIN, Now, Rule, Use, gain
from d3gd.rules.sketch import Sketch
from d3gd.spectrum import perron, spectral_gap
from d3gd.state import Count, PerAgent, PerEdge, Scalar

SKETCH = 32  # numbers in a sketch
_ANCHOR = 0.2  # the share of the initial weights that always remains
_ETA = 0.3  # the weights' step in the first epoch; it falls like 1 / (1 + _DECAY epoch)
_DECAY = 0.3
_DISCOUNT = 0.95  # of prices, per hop
_STARVED = 0.7  # n y_i below which an agent asks to be heard,
_URGENCY = 4  # the louder the further below
_RISE = 4.0  # how far above its last value y_i may begin the second epoch; less and less in later ones
_MIXED = 8.0  # an epoch's length, in units of 1 / gap
_SHORTEST = 10  # iterations in an epoch
_MARGIN = 0.2  # of the correction's gain: nobody knows how fast the new weights mix, only how fast the first ones did
_BUDGET = 400  # iterations for refining, and
_MOST = 8  # epochs at most: then the weights stand still, and the correction has time to work


class LocalState(NamedTuple):
    """The memory of local weights. Sums run over the second half of the epoch."""

    abar: PerEdge  # (edges,)  weights before anchoring
    Y: PerAgent  # (agents, n)  Perron trackers, restarted with every epoch
    y: PerAgent  # (agents, 1)  the Perron weight in use
    last: PerAgent  # (agents, 1)  the Perron weight of the last epoch
    z: PerAgent  # (agents, s)  tracks the sketched mean model
    t: PerAgent  # (agents, 1)  prices: what more weight on an agent would do
    P: PerAgent  # (agents, n)  what listeners make of everyone's gradient, mixed like Y
    p: PerAgent  # (agents, n)  what each agent itself put into P
    D: PerAgent  # (agents, s)  sum of sketched deviations
    m: PerAgent  # (agents, s)  sum of sketched messages, less z
    g: PerAgent  # (agents, s)  sum of sketched gradients
    age: Count  # iterations since the epoch began
    epoch: Count
    epochs: Count  # after which the weights stand still
    length: Count  # iterations in an epoch
    shrinks: Scalar  # |lambda_2| of the initial weights

    @property
    def refining(self) -> bool:
        """Whether the weights still move."""
        return self.epoch < self.epochs

    @property
    def lap(self) -> int:
        """Iterations into the second half of the epoch, this one included; zero or less in the first half."""
        return self.age - (self.length + 1) // 2 + 1

    @property
    def ends(self) -> bool:
        """Whether this is the last iteration of the epoch."""
        return self.age + 1 == self.length


@dataclass(frozen=True)
class Local(Rule):
    r"""Weights that move against the derivative of the steady deviation, estimated where it is needed.

    The weights stand still for an epoch, so that every tracker is exact for them. In its second half, when the Perron
    tracker has mixed under the new weights, agent i follows sketches of its deviation :math:`D_i` from the weighted
    mean, of what it sends, :math:`m_i`, and of its gradient, averages each, and learns every in-neighbour's price

    .. math::
        h_{ij} = 2 \langle D_i, m_j \rangle + y_i t_j, \qquad
        t_i^+ = s_i + \beta \sum_j a_{ij} t_j, \qquad s_i = \frac{2 \gamma}{n y_i^2} \langle l_i, g_i \rangle:

    how j's message cancels i's deviation, and what more weight on j does to the Perron weights. Where agents
    combine before their step, :math:`l_i = D_i`. Where they combine after it, i's gradient acts through those who hear
    it, :math:`l_i = \sum_j a_{ji} D_j`; no message goes backwards for that: each listener knows
    :math:`p_{ji} = a_{ji} \langle D_j, g_i \rangle`, and the n-vectors :math:`p_j / y_j`, mixed like the Perron
    trackers, bring every agent its own entry. An agent with :math:`n y_i < \kappa` is starved and asks to be heard,
    whatever the sign of its price.

    At the end of the epoch each row takes a projected step against h, centred and divided by its largest entry. Once
    the epochs' iterations are used up, the weights stand still, and the correction removes what deviation they left.
    """

    after: bool

    def init(self, net: Network, x0: Floats) -> LocalState:
        """Start with the initial weights, whose gap and Perron vector are known from the set-up."""
        A = net.graph.matrix(net.everywhere_a0)
        pi, shrinks = perron(A), 1 - spectral_gap(A)
        length = max(_SHORTEST, math.ceil(_MIXED / (1 - shrinks)))
        agents, y = len(net.agents), pi[net.agents, None]
        sketches, vectors = np.zeros((agents, Sketch(x0.shape[1], SKETCH).length)), net.vectors()
        return LocalState(
            abar=net.a0,
            Y=np.tile(pi, (agents, 1)),
            y=y,
            last=y,
            z=sketches,
            t=np.zeros_like(y),
            P=vectors,
            p=vectors,
            D=sketches,
            m=sketches,
            g=sketches,
            age=0,
            epoch=0,
            epochs=min(_MOST, _BUDGET // length),
            length=length,
            shrinks=shrinks,
        )

    def use(self, net: Network, s: LocalState) -> Use:
        """Return the anchored weights."""
        a = (1 - _ANCHOR) * s.abar + _ANCHOR * net.a0
        settled = not s.refining and (s.lap > 0 or s.epoch == 0)
        margin = _MARGIN if s.epochs > 0 else MARGIN
        return Use(a, s.y, gain(s.shrinks, margin) if settled else 0.0)

    def begin(self, net: Network, s: LocalState, now: Now) -> LocalState:
        """Choose the Perron weight to go by."""
        y = net.own(s.Y)
        if s.lap <= 0 and s.epoch > 0:
            # Restarted at 1, y falls towards the new Perron weight; until it has mixed it is kept near the last one.
            y = np.clip(y, s.last, s.last * (1 + (_RISE - 1) / (1 + _DECAY * (s.epoch - 1))))
        return s._replace(y=y)

    def carry(self, old: LocalState, new: LocalState, w: Floats) -> Floats:
        r"""Keep :math:`w_i / y_i`.

        Corrections begin once the weights stand still, so that :math:`\sum_i \pi_i (w_i / y_i) = 0` for good, whatever
        is still wrong with :math:`y_i`; with :math:`y_i \to \pi_i` the corrections themselves then sum to zero.
        """
        return w * (new.y / old.y)

    def message(self, net: Network, s: LocalState, now: Now) -> tuple[LocalState, dict[str, Array]]:
        """Add to the sums, and send what others track."""
        if not (s.refining and s.lap > 0):
            return s, {"rule_Y": s.Y}
        sketch = Sketch(now.x.shape[1], SKETCH)
        if s.lap == 1:
            zero, nothing = np.zeros_like(s.z), np.zeros_like(s.P)
            s = s._replace(z=sketch(now.x), t=np.zeros_like(s.t), P=nothing, p=nothing, D=zero, m=zero, g=zero)
        s = s._replace(m=s.m + sketch(now.m) - s.z, g=s.g + sketch(now.g))
        message = {"Y": s.Y, "z": s.z, "t": s.t}
        if self.after:
            message |= {"g": s.g / s.lap, "P": s.P}
        if s.ends:
            message["m"] = s.m / s.lap
        return s, {f"rule_{name}": values for name, values in message.items()}

    def end(self, net: Network, s: LocalState, sent: Inbox, now: Now) -> LocalState:
        """Follow the trackers; at the end of an epoch, move the weights."""
        a = self.use(net, s).a
        Y = net.mix(a, sent.rule_Y)
        if not (s.refining and s.lap > 0):
            return s._replace(Y=Y, age=s.age + 1)
        sketch = Sketch(now.x.shape[1], SKETCH)
        z = net.mix(a, sent.rule_z) + sketch(now.new - now.x)
        s = s._replace(Y=Y, z=z, D=s.D + sketch(now.new) - z, age=s.age + 1)
        D = s.D / (s.lap - 1)
        if self.after:
            p = net.scatter(a * net.dot(D, sent.rule_g) / net.spread(s.y[:, 0]))
            s = s._replace(P=net.mix(a, sent.rule_P) + p - s.p, p=p)
            reach = net.own(s.P)
        else:
            reach = np.einsum("is,is->i", D, s.g / (s.lap - 1))[:, None]
        price = 2 * now.gamma / net.n * reach / s.y**2
        heard = net.n * s.y / _STARVED
        price = np.where(heard < 1, -np.abs(price) * heard**-_URGENCY, price)
        s = s._replace(t=price + _DISCOUNT * net.mix(a, sent.rule_t))
        return self._moved(net, s, D, sent) if s.age == s.length else s

    def _moved(self, net: Network, s: LocalState, D: Floats, sent: Inbox) -> LocalState:
        """Take one step of the weights and begin a new epoch."""
        prices = net.dot(net.own(s.Y), sent.rule_t)
        h = 2 * net.dot(D, sent.rule_m) + prices
        h -= net.spread(net.reduce(h) / net.reduce(np.ones_like(h)))
        largest = net.reduce(np.abs(h), np.maximum)
        h /= net.spread(np.where(largest > 0, largest, 1.0))
        abar = net.project(s.abar - _ETA / (1 + _DECAY * s.epoch) * h)
        return s._replace(abar=abar, Y=net.eye(), last=s.y, age=0, epoch=s.epoch + 1)
