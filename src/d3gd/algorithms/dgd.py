"""Decentralized gradient descent on undirected networks."""

from dataclasses import dataclass
from typing import Literal

from d3gd.algorithms.base import Algorithm, Gradient, Heading, Models
from d3gd.network import Network
from d3gd.schedules import Schedule, at
from d3gd.validation import one_of, positive


@dataclass(frozen=True, kw_only=True)
class DGD(Algorithm[Models]):
    r"""Decentralized gradient descent: average with the neighbours, step along the agent's own gradient.

    .. math:: x_i^{k+1} = \sum_j w_{ij} x_j^k - \gamma g_i^k

    or, combining after the step (diffusion), :math:`x_i^{k+1} = \sum_j w_{ij} (x_j^k - \gamma g_j^k)`. W is symmetric,
    so the mean of all models moves along the mean gradient. With a constant step the models stay apart by a distance of
    the order of :math:`\gamma` over the spectral gap: at the fixed point, mixing must cancel each agent's own gradient.
    Combining after the step reduces this distance.

    Args:
        step_size: :math:`\gamma`, a constant or a schedule.
        combine: Whether agents combine ``"before"`` or ``"after"`` their step.

    Example:
        >>> import d3gd
        >>> graph, problem = d3gd.graphs.grid(2, 3), d3gd.problems.quadratic(agents=6, dim=3)
        >>> near, far = (
        ...     d3gd.run(DGD(step_size=0.1, combine=when), graph, problem, iterations=500).metrics["disagreement"][-1]
        ...     for when in ("after", "before")
        ... )
        >>> bool(near < far)
        True

    References:
        Nedić and Ozdaglar, *Distributed subgradient methods for multi-agent optimization*, IEEE Transactions on
        Automatic Control 54, 2009; Yuan, Ling and Yin, *On the convergence of decentralized gradient descent*, SIAM
        Journal on Optimization 26, 2016; Chen and Sayed, *Diffusion adaptation strategies for distributed optimization
        and learning over networks*, IEEE Transactions on Signal Processing 60, 2012, for combining after the step.
    """

    coordinatewise = True

    step_size: float | Schedule
    combine: Literal["before", "after"] = "before"

    needs = "undirected links"
    # The fixed point does not depend on delays; renormalized rows would weight agents unequally.
    survives = frozenset({"delay"})
    relies_on = "columns that sum to one: averages over the received messages alone weight agents unequally"

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("step_size", self.step_size)
        one_of("combine", self.combine, ("before", "after"))

    def step(self, net: Network, gradient: Gradient, s: Models, k: int) -> Models:
        """Mix and step, or step and mix."""
        gamma = at(self.step_size, k)
        if self.combine == "after":
            return Models(net.mix(net.a0, net.exchange(x=s.x - gamma * gradient()).x))
        sent = net.exchange(x=s.x)
        g = gradient()  # while messages are in flight
        return Models(net.mix(net.a0, sent.x) - gamma * g)

    def heading(self, net: Network, s: Models, k: int) -> Heading:
        """Descend along the gradient."""
        return Heading(1.0, 0.0)
