"""K-GT: gradient tracking with local steps."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from d3gd.algorithms.base import Algorithm
from d3gd.algorithms.composed import Composed
from d3gd.algorithms.diging import DIGing
from d3gd.algorithms.local import Local
from d3gd.schedules import Schedule
from d3gd.validation import count, positive


@dataclass(frozen=True, kw_only=True)
class KGT(Composed):
    r"""K-GT: several local steps per exchange, each corrected by what the agent's own gradients lack.

    .. math::
        x_i^{h+1} &= x_i^h - \gamma \big( \nabla f_i(x_i^h) + c_i^k \big), \quad h = 0, \dots, K - 1, \qquad
        z_i^k = \frac{x_i^0 - x_i^K}{K \gamma}, \\
        x_i^{k+1} &= \sum_j w_{ij} (x_j^0 - K \gamma z_j^k), \qquad
        c_i^{k+1} = c_i^k - z_i^k + \sum_j w_{ij} z_j^k, \quad c_i^0 = 0

    with :math:`x_i^0 = x_i^k`. The corrections sum to zero since W is symmetric, so that at every fixed point all
    agents agree on a stationary point. An iteration evaluates K gradients and sends models and z. :math:`z_i` is a
    gradient tracker: this is ``DIGing(combine="after")`` with local steps (:class:`d3gd.Local`), and computed as such.

    The paper's text could not be consulted beyond its abstract. Its step size of the exchange is 1 here, and
    corrections start from zero.

    Args:
        step_size: :math:`\gamma`, of a local step; a constant or a schedule of the iterations.
        steps: K, the number of local steps per iteration.

    Example:
        >>> import d3gd
        >>> graph, problem = d3gd.graphs.star(5), d3gd.problems.quadratic(agents=5, dim=3)
        >>> result = d3gd.run(KGT(step_size=0.05), graph, problem, iterations=1000)
        >>> bool(abs(result.x - problem.optimum).max() < 1e-9)
        True

    References:
        Liu, Lin, Koloskova and Stich, *Decentralized gradient tracking with local steps*, Optimization Methods and
        Software, 2024; arXiv 2301.01313.
    """

    step_size: float | Schedule
    steps: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("step_size", self.step_size)
        count("steps", self.steps, least=1)

    @cached_property
    def composed(self) -> Algorithm[Any]:
        """Gradient tracking with local steps."""
        return Local(method=DIGing(step_size=self.step_size, combine="after"), every=self.steps)
