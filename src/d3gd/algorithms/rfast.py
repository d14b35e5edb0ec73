"""R-FAST: gradient tracking by running sums, exact on networks that lose and delay messages."""

from dataclasses import dataclass
from typing import NamedTuple, get_args

from d3gd.algorithms.base import Algorithm, Gradient, Heading
from d3gd.arrays import Floats
from d3gd.conditions import Hardship
from d3gd.network import Network
from d3gd.rules.push import RunningSum, no_sum
from d3gd.rules.tracker import Tracker, untracked
from d3gd.schedules import Schedule, at
from d3gd.state import PerAgent
from d3gd.validation import positive


class RFASTState(NamedTuple):
    """The state of R-FAST."""

    x: PerAgent  # (agents, d)  models
    tracker: Tracker
    sent: RunningSum


@dataclass(frozen=True, kw_only=True)
class RFAST(Algorithm[RFASTState]):
    r"""R-FAST: Push-Pull whose trackers are sent as running sums, so that later messages make up for lost ones.

    .. math::
        s_i^k &= z_i^k + g_i^k - g_i^{k-1}, \quad s_i^0 = g_i^0, \qquad
            x_i^{k+1} = \sum_j a_{ij}^k (x_j - \gamma s_j), \\
        \rho_i^{k+1} &= \rho_i^k + c_i s_i^k, \quad \rho_i^0 = 0, \qquad c_i = \frac{1}{1 + \text{out-degree of } i}, \\
        z_i^{k+1} &= c_i s_i^k + \sum_{j \ne i} (\rho_j - \tilde\rho_{ij}), \qquad \tilde\rho_{ij} \leftarrow \rho_j

    where :math:`x_j - \gamma s_j` and :math:`\rho_j` are the newest that i has received from j, possibly old, and
    :math:`\tilde\rho_{ij}` is what i read from j before. An agent sends the sum of all it has ever split off for each
    out-neighbour, and the receiver takes what is new in it. What a lost message carried is also in the next one, what
    is read twice counts once, and

    .. math:: \sum_i z_i^k + \sum_{j \to i} (\rho_j^k - \tilde\rho_{ij}^k) = \sum_i g_i^{k-1}

    holds at every iteration whatever arrives. So agents agree exactly on a stationary point under loss, delay, changing
    links and pauses, if they know how many hear them. If everything arrives at once this is Push-Pull.

    The running sums and buffers are the paper's, as in ASY-SONATA. Ours: agents split equally, so that one sum serves
    all out-neighbours; where nothing arrived, an agent averages over the others instead of reading an old model again;
    and a step is along :math:`s_i`, not along the part :math:`c_i s_i` that stays, so that :math:`\gamma` is the step
    along the mean gradient, up to a factor :math:`n\, \pi_A^\top \pi_C` near 1.

    Args:
        step_size: :math:`\gamma`, a constant or a schedule.

    Example:
        >>> import d3gd
        >>> graph, problem = d3gd.graphs.exponential(6), d3gd.problems.quadratic(agents=6, dim=3)
        >>> rough = d3gd.Conditions(loss=0.3, delay=2, pause=0.1)
        >>> result = d3gd.run(RFAST(step_size=0.1), graph, problem, iterations=3000, conditions=rough)
        >>> bool(abs(result.x - problem.optimum).max() < 1e-9)
        True

    References:
        Zhu, Tian, Huang, Xu and He, *R-FAST: robust fully-asynchronous stochastic gradient tracking over general
        topology*, arXiv 2307.11617; Tian, Sun and Scutari, *Achieving linear convergence in distributed asynchronous
        multi-agent optimization*, IEEE Transactions on Automatic Control 65, 2020, for ASY-SONATA.
    """

    step_size: float | Schedule

    needs = "out-degrees"
    survives = frozenset(get_args(Hardship))
    relies_on = "nothing that a network could withhold for ever"
    exact = True

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("step_size", self.step_size)

    def init(self, net: Network, x0: Floats) -> RFASTState:
        """Start from ``x0``; the zeros make :math:`s^0 = g^0` once the first gradient is known."""
        return RFASTState(x=x0, tracker=untracked(x0), sent=no_sum(net, x0))

    def step(self, net: Network, gradient: Gradient, s: RFASTState, k: int) -> RFASTState:
        """Update the tracker with the change of the gradient, step, pull the models and push the running sums."""
        g = gradient()
        tracked = s.tracker.at(net, g)
        total, kept = s.sent.split_off(net, tracked)
        inbox = net.exchange(m=s.x - at(self.step_size, k) * net.precise(tracked), total=total)
        sums, gained = s.sent.read(net, total, inbox.total)
        return RFASTState(x=net.mix(net.a0, inbox.m), tracker=Tracker(kept + gained, g), sent=sums)

    def heading(self, net: Network, s: RFASTState, k: int) -> Heading:
        """The tracker steers."""
        return Heading(1.0, s.tracker.steering)
