"""CHOCO-SGD: decentralized gradient descent with compressed messages."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from d3gd.algorithms.base import Algorithm
from d3gd.algorithms.composed import Composed
from d3gd.algorithms.compressed import Compressed
from d3gd.algorithms.dgd import DGD
from d3gd.schedules import Schedule
from d3gd.validation import positive


@dataclass(frozen=True, kw_only=True)
class CHOCO(Composed):
    r"""CHOCO-SGD: gradient steps, and consensus on compressed copies of the models.

    .. math::
        m_i^k &= x_i^k - \gamma g_i^k, \qquad
        \hat x_i^{k+1} = \hat x_i^k + C(m_i^k - \hat x_i^k), \quad \hat x_i^0 = 0, \\
        x_i^{k+1} &= m_i^k + \zeta \sum_j w_{ij} \big( \hat x_j^{k+1} - \hat x_i^{k+1} \big)

    Only the compressed differences travel; neighbours keep copies :math:`\hat x`. What compression withholds is part of
    the next difference, so that it ends where DGD with the weights :math:`(1 - \zeta) I + \zeta W` does if agents
    combine after their step: near a stationary point. It is ``DGD(combine="after")`` with compressed messages
    (:class:`d3gd.Compressed`), and computed as such. An exact method with as few bytes is :class:`d3gd.Compressed` on
    :class:`d3gd.PerronD3GD`.

    The default :math:`\zeta` is ours.

    Args:
        step_size: :math:`\gamma`, a constant or a schedule.
        compress: The compressor C, as in :class:`d3gd.Compressed`.
        damping: :math:`\zeta`, the consensus step size; by default that of the compressor.

    Example:
        >>> import d3gd
        >>> graph, problem = d3gd.graphs.star(5), d3gd.problems.quadratic(agents=5, dim=30)
        >>> methods = CHOCO(step_size=0.01), d3gd.DGD(step_size=0.01, combine="after")
        >>> few, many = (d3gd.run(method, graph, problem, iterations=2000) for method in methods)
        >>> bool(abs(few.x - many.x).max() < 1e-6), bool(few.metrics["bytes"][-1] < 0.2 * many.metrics["bytes"][-1])
        (True, True)

    References:
        Koloskova, Stich and Jaggi, *Decentralized stochastic optimization and gossip algorithms with compressed
        communication*, International Conference on Machine Learning, 2019.
    """

    step_size: float | Schedule
    compress: str = "int8"
    damping: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("step_size", self.step_size)
        Compressed(method=DGD(step_size=1.0), compress=self.compress, damping=self.damping)  # its checks

    @cached_property
    def composed(self) -> Algorithm[Any]:
        """Diffusion with compressed messages."""
        method = DGD(step_size=self.step_size, combine="after")
        return Compressed(method=method, compress=self.compress, damping=self.damping)
