"""Gradient push: push-sum with gradients."""

from dataclasses import dataclass
from typing import NamedTuple

from d3gd.algorithms.base import Algorithm, Gradient, Heading
from d3gd.arrays import Floats
from d3gd.network import Network
from d3gd.rules.push import Mass, gather, split, unit_mass
from d3gd.schedules import Schedule, at
from d3gd.state import PerAgent
from d3gd.validation import positive


class SGPState(NamedTuple):
    """The state of SGP."""

    u: PerAgent  # (agents, d)  what is pushed; the models are u / w
    mass: Mass  # w


@dataclass(frozen=True, kw_only=True)
class SGP(Algorithm[SGPState]):
    r"""Stochastic gradient push, or subgradient-push: push-sum of models, divided by the pushed mass.

    .. math::
        u_i^{k+1} = \sum_j c_{ij} (u_j^k - \gamma g_j^k), \qquad x_i^k = u_i^k / w_i^k, \qquad
        w_i^{k+1} = \sum_j c_{ij} w_j^k, \quad w_i^0 = 1

    with gradients at :math:`x_i^k`. The columns of C sum to one: a sender splits what it holds equally among its
    out-neighbours and itself. So :math:`\sum_i u_i` moves along the sum of all gradients although the graph is
    directed, and :math:`\sum_i w_i = n`. With a constant step the models stay apart, as in DGD.

    Args:
        step_size: :math:`\gamma`, a constant or a schedule.

    Example:
        >>> import d3gd
        >>> graph, problem = d3gd.graphs.exponential(6), d3gd.problems.quadratic(agents=6, dim=3)
        >>> result = d3gd.run(SGP(step_size=0.01), graph, problem, iterations=2000)
        >>> bool(abs(result.x - problem.optimum).max() < 0.05)
        True

    References:
        Nedić and Olshevsky, *Distributed optimization over time-varying directed graphs*, IEEE Transactions on
        Automatic Control 60, 2015; Assran, Loizou, Ballas and Rabbat, *Stochastic gradient push for distributed deep
        learning*, International Conference on Machine Learning, 2019.
    """

    coordinatewise = True

    step_size: float | Schedule

    needs = "out-degrees"
    # Delays change the total mass, and so the length of steps, but not the shares of the agents.
    survives = frozenset({"delay"})
    relies_on = "columns that sum to one: a lost message is lost mass"

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("step_size", self.step_size)

    def init(self, net: Network, x0: Floats) -> SGPState:
        """Start from ``x0`` with one unit of mass each."""
        return SGPState(u=x0, mass=unit_mass(net))

    def point(self, s: SGPState) -> Floats:
        """Gradients are evaluated at the models, u / w."""
        return s.mass.share(s.u)

    def step(self, net: Network, gradient: Gradient, s: SGPState, k: int) -> SGPState:
        """Step, and push."""
        sent = net.exchange(u=split(net, s.u - at(self.step_size, k) * gradient()), w=split(net, s.mass.w))
        return SGPState(u=gather(net, sent.u), mass=s.mass.pushed(net, sent.w))

    def heading(self, net: Network, s: SGPState, k: int) -> Heading:
        """Descend along the gradient; models are u / w."""
        return Heading(1 / s.mass.w, 0.0)

    def weights(self, net: Network, s: SGPState) -> Floats:
        """Return the row-stochastic weights on models that are equivalent to the last push."""
        return s.mass.a

    def scale(self, net: Network, s: SGPState) -> Floats:
        """Return w / n, which tends to the Perron vector of these weights."""
        return s.mass.w[:, 0] / net.n
