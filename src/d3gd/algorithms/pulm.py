"""PULM-DGD: gradient descent on averages that row-stochastic weights reach although they change."""

import math
from dataclasses import dataclass
from typing import NamedTuple, get_args

import numpy as np

from d3gd.algorithms.base import Algorithm, Gradient
from d3gd.arrays import Floats
from d3gd.conditions import Hardship
from d3gd.network import Network
from d3gd.schedules import Schedule, at
from d3gd.state import Count, PerAgent
from d3gd.validation import count, positive


class PULMDGDState(NamedTuple):
    """The state of PULM-DGD."""

    x: PerAgent  # (agents, d)  models, those with which the cycle began
    z: PerAgent  # (agents, d)  what they become in this cycle
    W: PerAgent  # (agents, n)  row i is w_i: the shares of all gradients in z_i
    push: PerAgent  # (agents, d)  the gradients of this cycle, times the step size
    cycle: Count
    ends: Count  # the iteration at which the next cycle begins


@dataclass(frozen=True, kw_only=True)
class PULMDGD(Algorithm[PULMDGDState]):
    r"""PULM-DGD: in every cycle a gradient step, then rounds of mixing in which each agent's own share stays 1/n.

    A cycle evaluates one gradient per agent, sets :math:`z_i = x_i - \gamma g_i` and :math:`w_i = e_i`, and takes R
    rounds, one per iteration, of

    .. math::
        z_i^+ = \sum_j a_{ij} z_j + \gamma d_i g_i, \qquad w_i^+ = \sum_j a_{ij} w_j - d_i e_i, \qquad
        d_i = \Big[ \sum_j a_{ij} w_j \Big]_i - \frac1n,

    after which :math:`x_i = z_i`. So :math:`Z = \Phi X - \gamma W G` with a product :math:`\Phi` of weights, and
    :math:`W_{ii} = 1/n` always: each column of W tends to 1/n, geometrically, from its own agent outwards, also if the
    weights change in every round. Nobody needs a Perron vector, which changing weights do not have.

    A fixed number of rounds leaves agents near a stationary point, at a distance that falls geometrically with R. The
    paper lets R grow with the logarithm of the number t of cycles, here :math:`R_t = \lceil R (1 + \ln(1 + t)) \rceil`,
    which removes the bias like a power of t: too slowly for ``exact``. A column converges as fast as a random walk
    along the weights finds its agent, which takes about n rounds: the price of needing no Perron vector.

    The two recursions and growing rounds are the paper's. Public accounts of it have :math:`-d_i g_i` where it takes
    :math:`+\gamma d_i g_i` for Z to have the form above; that term, the formula for :math:`R_t` and the default R are
    ours.

    Args:
        step_size: :math:`\gamma`, a constant or a schedule.
        rounds: R; by default the number of agents.
        growing: Whether the number of rounds grows with the number of cycles.

    Example:
        >>> import d3gd
        >>> graph, problem = d3gd.graphs.exponential(6), d3gd.problems.quadratic(agents=6, dim=3)
        >>> changing = d3gd.Conditions(links=0.7)
        >>> result = d3gd.run(PULMDGD(step_size=0.5), graph, problem, iterations=4000, conditions=changing)
        >>> bool(abs(result.x - problem.optimum).max() < 1e-2)
        True

    References:
        Liang, Song and Yuan, *Decentralized optimization over time-varying row-stochastic digraphs*, arXiv 2512.24483.
    """

    step_size: float | Schedule
    rounds: int | None = None
    growing: bool = True

    # Where agents rest, messages of the last cycle and those of this one agree, so that late ones do no harm.
    survives = frozenset(get_args(Hardship))
    relies_on = "nothing that a network could withhold for ever"

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("step_size", self.step_size)
        if self.rounds is not None:
            count("rounds", self.rounds, least=1)

    def init(self, net: Network, x0: Floats) -> PULMDGDState:
        """Start from ``x0``; the first cycle begins at once."""
        return PULMDGDState(x=x0, z=x0, W=net.eye(), push=np.zeros_like(x0), cycle=0, ends=0)

    def step(self, net: Network, gradient: Gradient, s: PULMDGDState, k: int) -> PULMDGDState:
        """Step if a cycle begins; then mix, and set every agent's share of its own gradient to 1/n."""
        if k >= s.ends:  # later only at a site that has left iterations out
            push = at(self.step_size, k) * gradient()
            s = PULMDGDState(s.x, s.x - push, net.eye(), push, *self._cycle(net.n, s.cycle, s.ends, k))
        sent = net.exchange(z=s.z, W=s.W)
        W = net.mix(net.a0, sent.W)
        d = net.own(W) - 1 / net.n
        z = net.mix(net.a0, sent.z) + net.precise(d) * s.push
        return s._replace(x=z if k + 1 == s.ends else s.x, z=z, W=W - d * net.eye())

    def _cycle(self, n: int, cycle: int, ends: int, k: int) -> tuple[int, int]:
        """Return the number of the cycle after that of iteration ``k``, and when it begins."""
        while ends <= k:
            ends, cycle = ends + self._rounds(n, cycle), cycle + 1
        return cycle, ends

    def _rounds(self, n: int, cycle: int) -> int:
        rounds = n if self.rounds is None else self.rounds
        return math.ceil(rounds * (1 + math.log1p(cycle))) if self.growing else rounds
