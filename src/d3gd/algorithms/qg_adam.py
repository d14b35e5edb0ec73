"""Quasi-global Adam on directed graphs."""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from d3gd.algorithms.base import Gradient, Heading
from d3gd.algorithms.quasi_global import QuasiGlobal
from d3gd.arrays import Floats
from d3gd.network import Network
from d3gd.rules.fixed import MOST_ROUNDS, Fixed, Known
from d3gd.rules.updates import advanced, decayed, mixed_correction, observed, remembered, scaled, scaled_direction
from d3gd.schedules import Schedule, at
from d3gd.state import PerAgent
from d3gd.validation import count, within


class QGAdamState(NamedTuple):
    """The state of QGAdam."""

    x: PerAgent  # (agents, d)  models
    v: PerAgent  # (agents, d)  corrections per unit of the step size, in double precision; sum_i pi_i v_i = 0
    q: PerAgent  # (agents, d)  quasi-global momentum, per unit of the step size
    r: PerAgent  # (agents, d)  scales: roots of second moments
    rule: Known


@dataclass(frozen=True, kw_only=True)
class QGAdam(QuasiGlobal[QGAdamState]):
    r"""Adam whose agents agree on its moments: the first from the movement of models, the second by mixing, corrected.

    .. math::
        (\hat r_i^k)^2 &= \beta_2 (r_i^k)^2 + (1 - \beta_2) \Big( \frac{g_i^k}{n \pi_i} \Big)^2, \qquad
        p_i^k = \Big( \hat r_i^k / \sqrt{1 - \beta_2^{k+1}} + \epsilon \Big)^{-1}, \\
        d_i^k &= (1 - \mu) \Big( \frac{p_i^k g_i^k}{n \pi_i} + \lambda x_i^k \Big) + \mu q_i^k, \qquad
        m_i^k = x_i^k - \gamma_k (d_i^k + v_i^k), \\
        x_i^{k+1} &= \sum_j a_{ij} m_j^k, \qquad r_i^{k+1} = \sum_j a_{ij} \hat r_j^k, \\
        v_i^{k+1} &= v_i^k + \frac{\beta_k}{\gamma_k} \Big( m_i^k - x_i^{k+1} \Big), \qquad
        q_i^{k+1} = \frac12 \Big( q_i^k + \frac{x_i^k - x_i^{k+1}}{\gamma_k} \Big)

    Squares, roots and quotients are entry by entry; v, q and r are zero at first. Correction, gain and momentum are
    those of :class:`d3gd.PerronD3GD`. The factor :math:`1 - \mu` makes step size and weight decay comparable with those
    of AdamW.

    Adam at every agent divides by the scale of that agent's gradients, and where data differ, the quotients sum to
    zero elsewhere than the gradients do. Here scales are mixed like models. They differ between agents only by the
    latest gradients, with a weight of :math:`1 - \beta_2`, so that the distance of the limit from a stationary point is
    of that order: small, and not zero. It sends 2 d numbers per link and iteration, or d and the scales now and then.
    Scales travel as roots: squares span more orders of magnitude than a byte can tell.

    **Local steps** (:class:`d3gd.Local`) make a direction of every local gradient, and a scale of all of them. Where
    agents disagree, gradients are large and steps small, so that agents drift less than under
    :class:`d3gd.PerronD3GD`. For networks on skewed data use ``steered=False``: the momentum steers, which is the same
    for all, and the correction acts with the exchange. Weight decay is that of the models of the last exchange.

    The quasi-global Adam of Lin and others takes both moments from the movement of models, which is free, but
    movement has been divided by the very scale that it would tell.

    Args:
        step_size: :math:`\gamma`, a constant or a schedule; Adam's.
        momentum: :math:`\mu`. Movements are remembered by a factor of :math:`(1 + \mu) / 2` per iteration: 0.8 is for
            :math:`\beta_1 = 0.9`.
        second: :math:`\beta_2`.
        eps: :math:`\epsilon`.
        weight_decay: :math:`\lambda`, decoupled as in AdamW, for all parameters.
        scales_every: The number of exchanges per exchange of scales. Between two of those
            :math:`r_i^{k+1} = \hat r_i^k`; with 5, messages are 1.2 times as long as those of models alone.
        rounds: The number of rounds of mixing per iteration, as in :class:`d3gd.PerronD3GD`; scales take part in the
            first.
        rule: ``"mixing"``: weights planned for fast mixing, from the graph alone; ``"fixed"``: the initial weights.
        perron: ``"discovered"``: agents discover the network by flooding; ``"known"`` takes it as known beforehand, as
            it must be in simulations of more than 2,000 agents.

    Example:
        >>> import d3gd
        >>> graph = d3gd.graphs.exponential(8)
        >>> problem = d3gd.problems.digits_classification(agents=8, alpha=0.1)
        >>> own = d3gd.Local(method=d3gd.PerronD3GD(step_size=0.003), optimizer=d3gd.AdamW(weight_decay=0))
        >>> ends = [d3gd.run(m, graph, problem, iterations=600) for m in (own, QGAdam(step_size=0.003))]
        >>> own, quasi_global = (result.metrics["stationarity"][-1] for result in ends)
        >>> bool(quasi_global < 0.1 * own)
        True

    References:
        Lin, Karimireddy, Stich and Jaggi, *Quasi-global momentum: accelerating decentralized deep learning on
        heterogeneous data*, International Conference on Machine Learning, 2021.
        Chen, Karimi, Zhao and Li, *On the convergence of decentralized adaptive gradient methods*, Asian Conference on
        Machine Learning, 2022: that scales must agree.
    """

    step_size: float | Schedule
    momentum: float = 0.8
    second: float = 0.999
    eps: float = 1e-8
    weight_decay: float = 0.0
    scales_every: int = 1
    rounds: int = 1
    rule: Literal["mixing", "fixed"] = "mixing"
    perron: Literal["discovered", "known"] = "discovered"

    def __post_init__(self) -> None:
        super().__post_init__()
        within("second", self.second, 0, 1)
        within("eps", self.eps, 0, np.inf, closed="()")
        within("weight_decay", self.weight_decay, 0, np.inf)
        count("scales_every", self.scales_every, least=1)
        count("rounds", self.rounds, least=1, most=MOST_ROUNDS)

    @property
    def _rule(self) -> Fixed:
        return Fixed(self.rule == "mixing", corrected=True, momentum=self.momentum, rounds=self.rounds)

    def init(self, net: Network, x0: Floats) -> QGAdamState:
        """Start from ``x0`` without moments."""
        zero = np.zeros_like(x0)
        v = np.zeros_like(x0, dtype=np.float64)
        return QGAdamState(x=x0, v=v, q=zero, r=zero, rule=self._rule.init(net, x0))

    def step(self, net: Network, gradient: Gradient, s: QGAdamState, k: int) -> QGAdamState:
        """Step along a direction, correct and mix."""
        (s, d), gamma = self.direction(net, s, gradient(), k), at(self.step_size, k)
        before = remembered(net, s.q, s.x, gamma=gamma)
        m = net.precise(advanced(net, s.x, d, s.v, gamma=gamma))
        return self._mixed(net, s._replace(q=before), m, k)

    def direction(self, net: Network, s: QGAdamState, g: Floats, t: int) -> tuple[QGAdamState, Floats]:
        """Divide by the scale of all, and add weight decay and momentum."""
        factor, mu = net.precise(1 / (net.n * self._rule.use(net, s.rule, 0).pi)), self.momentum
        r = scaled(net, s.r, g, factor, old=self.second, new=1 - self.second)
        unbiased = 1 / math.sqrt(1 - self.second ** (t + 1))
        d = scaled_direction(net, g, r, s.q, factor, rest=1 - mu, mu=mu, unbiased=unbiased, eps=self.eps)
        if self.weight_decay:
            d = decayed(net, d, s.x, decay=(1 - mu) * self.weight_decay)
        return s._replace(r=r), d

    def arrive(self, net: Network, s: QGAdamState, m: Floats, k: int) -> QGAdamState:
        """Mix where local steps have led."""
        return self._mixed(net, s._replace(q=remembered(net, s.q, s.x, gamma=at(self.step_size, k))), m, k)

    def _mixed(self, net: Network, s: QGAdamState, m: Floats, k: int) -> QGAdamState:
        """Mix, correct, and observe the movement."""
        gamma, (a, _, beta), r = at(self.step_size, k), self._rule.use(net, s.rule, k), s.r
        if k % self.scales_every == 0:
            sent = net.exchange(m=m, r=r)
            r = net.precise(net.mix(a, sent.r))
        else:
            sent = net.exchange(m=m)
        x, v = mixed_correction(net, a, sent.m, m, s.x, s.v, rate=beta / gamma, rounds=self.rounds)
        return s._replace(x=x, v=v, q=observed(net, s.q, x, gamma=gamma), r=r)

    def heading(self, net: Network, s: QGAdamState, k: int) -> Heading:
        """The correction steers; the momentum is in the direction."""
        return Heading(1.0, s.v)
