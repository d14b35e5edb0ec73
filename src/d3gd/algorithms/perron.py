"""PerronD3GD: a correction for directed graphs, on weights planned by the agents."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from d3gd.algorithms.base import Algorithm, Gradient, Heading, Needs
from d3gd.arrays import Floats
from d3gd.conditions import Hardship
from d3gd.errors import SettingsError
from d3gd.network import Network
from d3gd.rules.base import Now, Rule
from d3gd.rules.failing import Failing
from d3gd.rules.fixed import MOST_ROUNDS, Fixed
from d3gd.rules.momentum import Moving, Still
from d3gd.rules.nearby import Nearby
from d3gd.rules.planned import Planned
from d3gd.rules.updates import corrected, gossiped, mixed_correction
from d3gd.schedules import Schedule, at
from d3gd.state import PerAgent
from d3gd.validation import count, one_of, positive, within


class PerronState(NamedTuple):
    """The state of PerronD3GD."""

    x: PerAgent  # (agents, d)  models
    v: PerAgent  # (agents, d)  corrections per unit of the step size, in double precision; sum_i pi_i v_i = 0
    momentum: Still | Moving
    rule: Any  # the state of the rule: weights in use, what is known of their Perron vector


@dataclass(frozen=True, kw_only=True)
class PerronD3GD(Algorithm[PerronState]):
    r"""D3GD beyond the paper: weights that mix fast, and a correction of the disagreement that constant steps leave.

    Each agent takes a step scaled by its Perron weight, corrects it by the disagreement summed up so far, and mixes:

    .. math::
        m_i^k &= x_i^k - \gamma_k \Big( \frac{1}{n \pi_i} g_i^k + v_i^k \Big), \qquad
        x_i^{k+1} = \sum_j a_{ij} m_j^k, \\
        v_i^{k+1} &= v_i^k + \frac{\beta_k}{\gamma_k} \Big( m_i^k - \sum_j a_{ij} m_j^k \Big), \qquad v_i^0 = 0 .

    Since :math:`\pi^\top (I - A) = 0`, the sum :math:`\sum_i \pi_i v_i` stays zero, so that the weighted mean of the
    models follows the mean gradient. At a fixed point all messages agree and each agent's
    :math:`\frac{1}{n \pi_i} g_i + v_i` is zero: a stationary point, without the deviations that constant steps leave to
    Di-DGD. For doubly stochastic weights this is a damped form of exact diffusion. It sends d numbers per link and
    iteration.

    At the start agents know their in-neighbours only. They discover the network by flooding
    (:meth:`d3gd.network.Network.survey`), choose the same weights, and compute their Perron vector. The gain
    :math:`\beta_k` starts where the slowest mode of these weights decays fastest, and falls to a value that adds little
    variance from mini-batches (:mod:`d3gd.rules.gain`).

    **Momentum** is quasi-global: with :math:`\mu > 0` agents also step along what mixed models have moved so far,

    .. math::
        m_i^k = x_i^k - \gamma_k \Big( \frac{1}{n \pi_i} g_i^k + v_i^k + \mu q_i^k \Big), \qquad
        q_i^{k+1} = \frac12 \Big( q_i^k + \frac{x_i^k - x_i^{k+1}}{\gamma_k} \Big), \qquad q_i^0 = 0 .

    It multiplies the effective step size by :math:`1 / (1 - \mu)`, while the noise of a mini-batch enters the
    differences between agents with :math:`\gamma` alone. The momentum of an agent's own gradients
    (:class:`d3gd.Momentum`) would carry their difference to those of others :math:`1 / (1 - \mu)` times as far. At
    rest q is zero, so that the limit is the same. Where models would overshoot from one iteration to the next, as on a
    torus or a star, agents put more weight on themselves (:mod:`d3gd.rules.mixing`). On one-way cycles it is
    unstable, and refused: 0.9 on those of four agents and more, 0.5 from seven on.

    Where messages may fail, :math:`\pi_i` is measured and the correction leaks, so that the method stays unbiased
    (:mod:`d3gd.rules.failing`); then it sends d + n + 1 numbers, one more than Di-DGD.

    Args:
        step_size: :math:`\gamma`, a number or a function of the iteration.
        rounds: r, the number of rounds of mixing per iteration, up to 100: models mix with :math:`A^r`. Two rounds of
            half the bytes, as with ``compress="bf16"``, often do more than one. Every message must arrive.
        rule: How weights are chosen. ``"mixing"``, the default: for fast mixing at nearly equal shares, from the graph
            alone. ``"planned"``: from sketches of everyone's gradients as well, repeatedly during the run
            (:mod:`d3gd.rules.planned`); it needs a network on which every message arrives. ``"fixed"``: the initial
            weights of the run.
        momentum: :math:`\mu`; for networks trained on mini-batches, 0.9.
        correct: Whether to correct; without, it is adapt-then-combine Di-DGD with exact Perron weights.
        perron: ``"discovered"`` as above; ``"known"`` takes the network as known beforehand, at no cost, as it must be
            in simulations of more than 2,000 agents. ``"tracked"``, with ``rule="fixed"``: agents never learn more than
            what their in-neighbours send, and find :math:`\pi_i` and the gain in trackers as Di-DGD's
            (:mod:`d3gd.rules.nearby`). It sends d + n + 1 numbers, begins to correct later, and follows more slowly.

    Example:
        >>> import d3gd
        >>> graph, problem = d3gd.graphs.ring(10), d3gd.problems.quadratic(agents=10, dim=3)
        >>> plain = d3gd.run(d3gd.DiDGD(step_size=0.1, warmup=100), graph, problem, iterations=1000)
        >>> better = d3gd.run(PerronD3GD(step_size=0.1), graph, problem, iterations=1000)
        >>> bool(better.metrics["disagreement"][-1] < 1e-3 * plain.metrics["disagreement"][-1])
        True

    References:
        Yuan, Ying, Zhao and Sayed, *Exact diffusion for distributed optimization and learning*, IEEE Transactions on
        Signal Processing 67, 2019: doubly stochastic and other balanced weights.
        Lin, Karimireddy, Stich and Jaggi, *Quasi-global momentum: accelerating decentralized deep learning on
        heterogeneous data*, International Conference on Machine Learning, 2021: such a momentum, without a correction.
        Theirs (:class:`d3gd.QGMomentum`) averages movements over :math:`1 / (1 - \mu)` iterations; over two, it
        responds sooner, while one alone, heavy ball, would be unstable on more networks.
        Ghaderyan, Aybat, Aguiar and Pereira, arXiv 2112.13257: an exact method with row-stochastic weights, FRSD.
    """

    step_size: float | Schedule
    rule: Literal["mixing", "planned", "fixed"] = "mixing"
    correct: bool = True
    momentum: float = 0.0
    rounds: int = 1
    perron: Literal["discovered", "known", "tracked"] = "discovered"

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("step_size", self.step_size)
        one_of("rule", self.rule, ("mixing", "planned", "fixed"))
        within("momentum", self.momentum, 0, 1)
        count("rounds", self.rounds, least=1, most=MOST_ROUNDS)
        one_of("perron", self.perron, ("discovered", "known", "tracked"))
        if self.perron == "tracked" and self.rule != "fixed":
            raise SettingsError(
                f'rule = "{self.rule}" chooses weights for the whole network, of which agents with perron = "tracked" '
                'learn nothing; set rule = "fixed" as well, or leave out perron'
            )
        if self.momentum and (self.rule == "planned" or self.perron == "tracked"):
            raise SettingsError(
                "momentum needs weights that stay the same, and a gain for all of their modes; leave out the momentum, "
                'or rule = "planned" and perron = "tracked"'
            )
        if self.rounds > 1 and (self.rule == "planned" or self.perron == "tracked"):
            raise SettingsError(
                f"rounds = {self.rounds} needs weights that are chosen for so many rounds; leave out rounds, or "
                'rule = "planned" and perron = "tracked"'
            )

    @property
    def needs(self) -> Needs:
        """In-neighbours suffice, unless the network is said to be known."""
        return "the network" if self.perron == "known" else "in-neighbours"

    @property
    def survives(self) -> frozenset[Hardship]:
        """Everything, where shares are measured; a plan from data, or news of who is settled, must reach everyone."""
        whole = self.rule == "planned" or self.perron == "tracked" or self.rounds > 1
        return frozenset() if whole else frozenset(get_args(Hardship))

    @property
    def relies_on(self) -> str:
        """What all agents do alike must follow from the same knowledge."""
        if self.rounds > 1:
            return f"every message arriving at once, as rounds = {self.rounds} needs"
        alike = "planning from the same table" if self.rule == "planned" else "correcting with the same gain"
        return f"all agents {alike}"

    @property
    def exact(self) -> bool:
        """The correction removes the bias."""
        return self.correct

    @property
    def coordinatewise(self) -> bool:
        """Weights do not depend on models, unless they are planned from gradients."""
        return self.rule != "planned"

    def _rule(self, net: Network) -> Rule:
        if self.rule == "planned":
            return Planned(self.correct)
        if self.perron == "tracked":
            return Nearby(self.correct)
        if net.reliable:
            return Fixed(self.rule == "mixing", self.correct, self.momentum, self.rounds)
        if self.rounds > 1:
            raise SettingsError(
                f"rounds = {self.rounds} needs every message to arrive at once; use rounds = 1, or drop the conditions "
                "(between sites, set patience = inf)"
            )
        return Failing(self.rule == "mixing", self.correct, self.momentum)

    def init(self, net: Network, x0: Floats) -> PerronState:
        """Start from ``x0`` without corrections."""
        momentum = Moving(np.zeros_like(x0)) if self.momentum else Still()
        return PerronState(
            x=x0, v=np.zeros_like(x0, dtype=np.float64), momentum=momentum, rule=self._rule(net).init(net, x0)
        )

    def step(self, net: Network, gradient: Gradient, s: PerronState, k: int) -> PerronState:
        """Step, correct and mix."""
        gamma, rule, g = at(self.step_size, k), self._rule(net), gradient()
        now = Now(k=k, gamma=gamma, x=s.x, g=g, v=s.v)
        r = rule.begin(net, s.rule, now)
        pi, v = rule.use(net, r, k).pi, rule.carry(net, s.rule, r, now)
        offset, momentum = s.momentum.offset(net, v, self.momentum), s.momentum.before(net, s.x, gamma)
        m = net.precise(corrected(net, s.x, g, offset, pi, gamma=gamma, n=net.n))
        return self._mixed(net, PerronState(x=s.x, v=v, momentum=momentum, rule=r), m, now)

    def arrive(self, net: Network, s: PerronState, m: Floats, k: int) -> PerronState:
        """Correct and mix where local steps have led, unless the rule wants to know their direction."""
        if self._rule(net).looks:
            return super().arrive(net, s, m, k)
        gamma = at(self.step_size, k)
        before = s._replace(momentum=s.momentum.before(net, s.x, gamma))
        return self._mixed(net, before, m, Now(k=k, gamma=gamma, x=s.x, v=s.v))

    def _mixed(self, net: Network, s: PerronState, m: Floats, now: Now) -> PerronState:
        """Mix and correct, and observe the movement."""
        rule, x, v = self._rule(net), s.x, s.v
        a, _, beta = rule.use(net, s.rule, now.k)
        now = now._replace(a=a)
        r, message = rule.message(net, s.rule, now)
        sent = net.exchange(m=m, **message)
        if self.correct:
            x, v = mixed_correction(net, a, sent.m, m, x, v, rate=beta / now.gamma, rounds=self.rounds)
        else:
            x = net.precise(gossiped(net, a, sent.m, self.rounds))
        return PerronState(x=x, v=v, momentum=s.momentum.after(net, x, now.gamma), rule=rule.end(net, r, sent, now))

    def heading(self, net: Network, s: PerronState, k: int) -> Heading:
        """The correction steers, and the momentum."""
        factor = 1 / (net.n * self._rule(net).use(net, s.rule, k).pi)
        return Heading(factor, s.momentum.offset(net, s.v, self.momentum))

    def weights(self, net: Network, s: PerronState) -> Floats:
        """Return the weights in use."""
        return self._rule(net).use(net, s.rule, 0).a

    def scale(self, net: Network, s: PerronState) -> Floats:
        """Return the Perron weights that agents use."""
        return self._rule(net).use(net, s.rule, 0).pi[:, 0]
