"""D3GD: Di-DGD with weights that adapt to the data, as in the paper."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from d3gd.algorithms.base import Algorithm, Gradient, Heading, Needs
from d3gd.arrays import Floats
from d3gd.distributed.received import Received
from d3gd.network import Network
from d3gd.rules.base import Now
from d3gd.rules.exact import closest_combination
from d3gd.rules.scale import Perron, Scale, scale_by
from d3gd.rules.sums import Summing, Sums, TrackedSums, TrueSums
from d3gd.rules.updates import descended, design_residual
from d3gd.schedules import Schedule, at
from d3gd.state import PerAgent, PerEdge
from d3gd.validation import one_of, positive, within

Rule = Literal["decentralized", "global", "exact"]


class D3GDState(NamedTuple):
    """The state of D3GD."""

    x: PerAgent  # (agents, d)  models
    Y: PerAgent  # (agents, n)  Perron trackers; with known Perron weights, (agents, 1)
    abar: PerEdge  # (edges,)   the weights before anchoring
    sums: Any  # the state of the estimates of the two sums over all agents


@dataclass(frozen=True, kw_only=True)
class D3GD(Algorithm[D3GDState]):
    r"""Dynamic directed decentralized gradient descent.

    Each iteration takes a Di-DGD step with :math:`A^k = (1-\delta) \bar A^k + \delta A^0`, then updates every row of
    :math:`\bar A` by a projected gradient step on the design function

    .. math::
        J_k(A) = \|(A - 1\pi^\top) X\|_F^2
                 - \tfrac{2\gamma}{n} \langle (A - 1\pi^\top) X, (I - 1\pi^\top) \tilde Y^{-1} G \rangle,
        \qquad \bar a_i^{k+1} = P_\Delta \big( \bar a_i^k - \eta_k\, 2 \langle x_j, v_i \rangle_{j \in N_i} \big),

    .. math::
        v_i = (A X)_i - \hat x - \tfrac{\gamma (1-\delta)}{n} \big( g_i / [y_i]_i - \hat g \big), \qquad
        \hat x = \textstyle\sum_l \pi_l x_l, \quad \hat g = \sum_l (\pi_l / [y_l]_l)\, g_l .

    Args:
        step_size: :math:`\gamma_k`, a constant or a schedule.
        refine_step: :math:`\eta_k`, the step size of the weights.
        anchor: :math:`\delta`, the fixed share of the initial weights.
        rule: ``"decentralized"`` is Algorithm 1, with trackers in place of the two sums; ``"global"`` is eq. (pgd) with
            the true sums, the plain D3GD of the paper's figures; ``"exact"`` is eq. (naivedecay), which minimizes the
            design function before the step (with ``anchor=0`` as printed there).
        chain_rule: The paper's gradient has the factor :math:`1-\delta` in its second term only, which is the default;
            True puts it in both: the gradient of :math:`\bar J_k(\bar A) = J_k((1-\delta)\bar A + \delta A^0)`.
        participation: The probability that an agent updates its row in an iteration; 1 in the paper's experiments.
        perron: ``"tracked"`` mixes y as Di-DGD does; ``"known"`` uses the Perron vector of the *initial* weights,
            near which the trackers freeze. It saves an n-vector per agent, for networks of thousands.

    Example:
        >>> import d3gd
        >>> graph, problem = d3gd.graphs.ring(4), d3gd.problems.quadratic(agents=4, dim=3)
        >>> result = d3gd.run(D3GD(step_size=0.02), graph, problem, iterations=50)
        >>> bool((result.weights.sum(axis=1) - 1 < 1e-12).all())
        True

    References:
        Du and Wai, *Decentralized learning with dynamically refined edge weights*, 2026, section 3.
    """

    step_size: float | Schedule
    refine_step: float | Schedule = 1.0
    anchor: float = 0.2
    rule: Rule = "decentralized"
    chain_rule: bool = False
    participation: float = 1.0
    perron: Perron = "tracked"

    relies_on = "y, a single product of weights, which freezes at the weights of the first iterations"

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("step_size", self.step_size)
        positive("refine_step", self.refine_step)
        within("anchor", self.anchor, 0, 1)
        within("participation", self.participation, 0, 1, closed="(]")
        one_of("perron", self.perron, ("tracked", "known"))
        one_of("rule", self.rule, ("decentralized", "global", "exact"))

    @property
    def needs(self) -> Needs:
        """The knowledge of agents: only Algorithm 1 uses nothing but what arrives along the edges."""
        if self.rule != "decentralized":
            return "all agents"
        return "in-neighbours" if self.perron == "tracked" else "the network"

    @property
    def _scale(self) -> Scale:
        return scale_by(self.perron)

    @property
    def _sums(self) -> Summing:
        return TrackedSums() if self.rule == "decentralized" else TrueSums()

    def init(self, net: Network, x0: Floats) -> D3GDState:
        r"""Start from ``x0``, the unit vectors and :math:`\bar A^0 = A^0`."""
        return D3GDState(x=x0, Y=self._scale.init(net, x0), abar=net.a0, sums=self._sums.init(net, x0))

    def heading(self, net: Network, s: D3GDState, k: int) -> Heading:
        """Descend along the rescaled gradient."""
        return Heading(1 / (net.n * self._scale.own(net, s.Y)), 0.0)

    def weights(self, net: Network, s: D3GDState) -> Floats:
        r"""Return :math:`A = (1-\delta) \bar A + \delta A^0`."""
        return (1 - self.anchor) * s.abar + self.anchor * net.a0

    def scale(self, net: Network, s: D3GDState) -> Floats:
        """Return :math:`[y_i]_i`; when tracked, it freezes while the weights change."""
        return self._scale.own(net, s.Y)[:, 0]

    def step(self, net: Network, gradient: Gradient, s: D3GDState, k: int) -> D3GDState:
        """Take a Di-DGD step and refine the weights, the exact rule before the step and the others after it."""
        scale, summing, n = self._scale, self._sums, net.n
        gamma, y, a = at(self.step_size, k), net.precise(scale.own(net, s.Y)), self.weights(net, s)
        now = Now(k=k, gamma=gamma, a=a, x=s.x, g=gradient(), y=y)
        Y, trackers = scale.message(net, s.Y, now)
        sums, message = summing.message(net, s.sums, now)
        sent = net.exchange(x=s.x, **trackers, **message)
        hat = summing.look(net, sums, now)
        if self.rule == "exact":
            push = gamma / n * (now.g / y - hat.g)
            abar = self._moved(net, s.abar, self._minimizer(net, s, sent.x, hat.x, push), k)
            now = now._replace(a=self.weights(net, s._replace(abar=abar)))
            mixed = net.mix(now.a, sent.x)
        else:
            mixed = net.mix(a, sent.x)
            slope = self._slope(net, now, mixed, hat, sent.x)
            abar = self._moved(net, s.abar, net.project(s.abar - at(self.refine_step, k) * slope), k)
        x = descended(net, mixed, now.g, y, gamma=gamma, n=n)
        now = now._replace(new=x)
        return D3GDState(x=x, Y=scale.end(net, Y, sent, now), abar=abar, sums=summing.end(net, sums, sent, now))

    def _slope(self, net: Network, now: Now, mixed: Floats, hat: Sums, received: Received) -> Floats:
        r"""Return the gradient of the design function along every edge, :math:`2 \langle x_j - \hat x, v_i \rangle`."""
        second = 1 - self.anchor
        first = second if self.chain_rule else 1.0
        factors = {"gamma": now.gamma, "n": net.n, "first": first, "second": second}
        v = design_residual(net, mixed, hat.x, now.g, hat.g, now.y, **factors)
        return 2 * net.dot(v, received, origin=hat.x)

    def _minimizer(self, net: Network, s: D3GDState, received: Received, hat: Floats, push: Floats) -> Floats:
        r"""Return :math:`\arg\min_{\bar A} J_k((1-\delta)\bar A + \delta A^0)`.

        Up to a constant, row i of :math:`J_k(A)` is :math:`\|a_i X - \hat x - \frac{\gamma}{n}(g_i/y_i - \hat g)\|^2`.
        """
        delta = self.anchor
        wanted = (hat + push - delta * net.mix(net.a0, received)) / (1 - delta)
        return closest_combination(net, s.abar, received, wanted)

    def _moved(self, net: Network, old: Floats, new: Floats, k: int) -> Floats:
        """Return new rows for the agents that participate in iteration k, old rows for the others."""
        if self.participation == 1:
            return new
        return np.where(net.spread(net.draw(k) < self.participation), new, old)
