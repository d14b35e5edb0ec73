"""Exact diffusion, or D2: adapt, correct, combine."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from d3gd.algorithms.base import Algorithm, Gradient, Heading
from d3gd.arrays import Floats
from d3gd.distributed.coding import require_undamped
from d3gd.network import Network
from d3gd.schedules import Schedule, at
from d3gd.state import PerAgent
from d3gd.validation import positive


class ExactDiffusionState(NamedTuple):
    """The state of exact diffusion."""

    x: PerAgent  # (agents, d)  models
    psi: PerAgent  # (agents, d)  the last step before correction; has the same sum as x


@dataclass(frozen=True, kw_only=True)
class ExactDiffusion(Algorithm[ExactDiffusionState]):
    r"""Exact diffusion: adapt, correct by the change of the last combination, combine.

    .. math::
        \psi_i^{k+1} &= x_i^k - \gamma g_i^k, \qquad \psi_i^0 = x_i^0, \\
        \varphi_i^{k+1} &= \psi_i^{k+1} + x_i^k - \psi_i^k, \\
        x_i^{k+1} &= \tfrac12 \Big( \varphi_i^{k+1} + \sum_j w_{ij} \varphi_j^{k+1} \Big)

    The weights (I + W) / 2 keep the correction stable for every symmetric W. With W in their place this is D2, which
    needs eigenvalues above -1/3. Like EXTRA it converges to a stationary point with the traffic of DGD; its authors'
    analysis allows larger steps.

    Args:
        step_size: :math:`\gamma`, a constant or a schedule.

    Example:
        >>> import d3gd
        >>> graph, problem = d3gd.graphs.star(5), d3gd.problems.quadratic(agents=5, dim=3)
        >>> result = d3gd.run(ExactDiffusion(step_size=0.5), graph, problem, iterations=500)
        >>> bool(abs(result.x - problem.optimum).max() < 1e-9)
        True

    References:
        Yuan, Ying, Zhao and Sayed, *Exact diffusion for distributed optimization and learning*, IEEE Transactions on
        Signal Processing 67, 2019; Tang, Lian, Yan, Zhang and Liu, *D2: decentralized training over decentralized
        data*, International Conference on Machine Learning, 2018.
    """

    coordinatewise = True

    step_size: float | Schedule

    needs = "undirected links"
    relies_on = "corrections that sum to zero, which needs columns that sum to one in every iteration"
    exact = True

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("step_size", self.step_size)

    def init(self, net: Network, x0: Floats) -> ExactDiffusionState:
        """Start from ``x0``, without a correction."""
        require_undamped(net, "ExactDiffusion")
        return ExactDiffusionState(x=x0, psi=x0.astype(np.float64))

    def step(self, net: Network, gradient: Gradient, s: ExactDiffusionState, k: int) -> ExactDiffusionState:
        """Adapt, correct, combine."""
        psi = np.subtract(s.x, at(self.step_size, k) * gradient(), dtype=np.float64)
        phi = psi + s.x - s.psi
        message = net.precise(phi)
        new = (message + net.mix(net.a0, net.exchange(phi=message).phi, double=True)) / 2
        x = net.precise(new)
        # Rounding errors of phi and x are subtracted from psi too, so that the sum of x - psi does not drift.
        return ExactDiffusionState(x=x, psi=psi - net.residual(phi, message) - net.residual(new, x))

    def heading(self, net: Network, s: ExactDiffusionState, k: int) -> Heading:
        """The last correction steers."""
        return Heading(1.0, (s.psi - s.x) / at(self.step_size, k))

    def weights(self, net: Network, s: ExactDiffusionState) -> Floats:
        """Return the weights in use, (I + W) / 2."""
        return (net.a0 + net.loops) / 2
