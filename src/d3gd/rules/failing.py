r"""Weights on an unreliable network: agents measure their influence, and corrections leak.

Messages are lost or late, links and agents come and go. Each row is then renormalized over what arrived, so that the
weights in effect, and their Perron vector, differ from those that were set up. The share of an agent in the models is
measured instead, by averaged trackers (:class:`d3gd.rules.scale.Averaged`); it counts as at least a quarter of what it
is where every message arrives, so that an agent whom nobody hears any more keeps a finite step. Nor is the weighted
sum of corrections conserved: it becomes a random walk, which would bias the limit for good. Corrections therefore leak:

.. math::
    \hat v_i^k &= (1 - \epsilon_{i,k})\, v_i^k, \qquad
    \epsilon_{i,k} = \max\Big( \frac{2}{k + 2},\; 0.02\, z_i^k \Big), \\
    v_i^{k+1} &= \hat v_i^k + \frac{\beta}{\gamma_k} \sum_j a_{ij}^k \big( m_i^{\kappa_{ij}} - m_j^{\kappa_{ij}} \big),

where :math:`\kappa_{ij}` is the iteration at which j sent what i reads (:meth:`d3gd.network.Network.echo`).

If links fail independently, the walk has mean zero. Its weight in the corrections then falls like
:math:`1/\sqrt k`, and the bias of the leak like 1/k. With noisy gradients the walk never stops, so neither may
the leak. Each agent estimates the share :math:`\phi_i` of noise in its gradients, in [0, 1], from how these change
between iterations. Corrections that leak at different rates would bias the limit, so agents average their shares:
:math:`z_i^{k+1} = 0.95 \sum_j a_{ij}^k z_j^k + 0.05\, \phi_i^k`, one more number per message.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from d3gd.arrays import Array, Floats
from d3gd.distributed.inbox import Inbox
from d3gd.network import Network
from d3gd.rules.base import Now, Rule, Use
from d3gd.rules.gain import Gain, gain_under, require_stable
from d3gd.rules.mixing import mixing_weights
from d3gd.rules.scale import Averaged
from d3gd.spectrum import perron
from d3gd.state import PerAgent, PerEdge, Scalar

_GAIN = 0.02  # at most: the larger, the wider the random walk
_SHARE = 0.5  # of the last gain where every message arrives: failures slow mixing down
_LEAST = 0.25  # of an agent's share where every message arrives: failures halve it at most, in our experience
_FORGETS = 2.0  # the numerator of epsilon
_FLOOR = 0.02  # of epsilon, where gradients are nothing but noise
_MEMORY = 0.99  # of the averages of an agent's gradients, per iteration
_OWN = 0.05  # weight of an agent's own share of noise in the average over agents


class FailingState(NamedTuple):
    """The state of :class:`Failing`."""

    a: PerEdge  # (edges,)      the weights where everything arrives
    Y: PerAgent  # (agents, n)  averaged trackers
    least: PerAgent  # (agents, 1)  the smallest share that an agent takes for its own
    gain: Scalar
    last: PerAgent  # (agents, d)   the last gradient
    change: PerAgent  # (agents, 1) average of half the squared changes of the gradient: its variance
    size: PerAgent  # (agents, 1)   average of its squared norm
    noise: PerAgent  # (agents, 1)  the average over agents of the share of noise


@dataclass(frozen=True)
class Failing(Rule):
    """Fixed weights with measured shares, and a correction that leaks.

    Attributes:
        mixing: Whether the weights are planned for mixing, from the graph alone, or the initial ones.
        corrected: Whether the method corrects.
        momentum: That of the models.
    """

    mixing: bool
    corrected: bool
    momentum: float = 0.0

    looks = True

    def init(self, net: Network, x0: Floats) -> FailingState:
        """Discover the network, choose weights, and begin to measure."""
        found = net.survey()
        a = mixing_weights(found.graph, self.momentum, _GAIN * self.corrected) if self.mixing else found.a0
        A = found.graph.matrix(a)
        gain = min(_GAIN, _SHARE * gain_under(A).last) if self.corrected else 0.0
        require_stable(A, Gain(gain, gain), self.momentum)
        nothing = np.zeros((len(net.agents), 1))
        return FailingState(
            a=net.block(a),
            Y=Averaged().init(net, x0),
            least=_LEAST * perron(A)[net.agents, None],
            gain=gain,
            last=np.zeros_like(x0),
            change=nothing,
            size=nothing,
            noise=nothing,
        )

    def use(self, net: Network, s: FailingState, k: int) -> Use:
        """Return the weights and the measured shares."""
        return Use(s.a, np.maximum(net.own(s.Y), s.least), s.gain)

    def carry(self, net: Network, old: FailingState, new: FailingState, now: Now) -> Floats:
        """Let the corrections leak."""
        kept: Floats = (1 - np.maximum(_FORGETS / (now.k + _FORGETS), _FLOOR * new.noise)) * now.v
        return kept

    def begin(self, net: Network, s: FailingState, now: Now) -> FailingState:
        """Average the gradient's size and changes."""
        g = now.g.astype(np.float64, copy=False)
        change, size = (np.einsum("id,id->i", u, u)[:, None] for u in (g - s.last, g))
        first = s.size == 0  # also of an agent that joins late
        return s._replace(
            last=now.g,
            change=np.where(first, 0.0, _MEMORY * s.change + (1 - _MEMORY) * 0.5 * change),
            size=np.where(first, size, _MEMORY * s.size + (1 - _MEMORY) * size),
        )

    def message(self, net: Network, s: FailingState, now: Now) -> tuple[FailingState, dict[str, Array]]:
        """Send the trackers and the share of noise."""
        return s, {**Averaged().message(net, s.Y, now)[1], "noise": s.noise}

    def end(self, net: Network, s: FailingState, sent: Inbox, now: Now) -> FailingState:
        """Mix both."""
        own = np.minimum(np.divide(s.change, s.size, out=np.zeros_like(s.size), where=s.size > 0), 1.0)
        noise = (1 - _OWN) * net.mix(now.a, sent.noise) + _OWN * own
        return s._replace(Y=Averaged().end(net, s.Y, sent, now), noise=noise)
