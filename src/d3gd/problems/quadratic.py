"""Quadratics, whose optimum is known."""

from collections.abc import Sequence

import numpy as np

from d3gd.arrays import Array, Floats, Ints
from d3gd.data.checks import check_block, check_room, check_sizes
from d3gd.digest import digest
from d3gd.errors import ProblemError
from d3gd.problems.base import Sourced, as_bytes
from d3gd.problems.checks import check_finite
from d3gd.random import generator
from d3gd.validation import is_positive, not_negative, reals, shown

_TAG = 3  # distinguishes these draws from those of other generators with the same seed


class Quadratic(Sourced):
    r"""A quadratic for every agent.

    .. math:: f_i(x) = \tfrac12 (x - b_i)^\top Q_i (x - b_i)

    Args:
        Q: Symmetric positive definite matrices, shape (agents, dim, dim).
        b: The agents' own minimizers, shape (agents, dim).

    Attributes:
        optimum: The minimizer of F, from :math:`\sum_i Q_i x = \sum_i Q_i b_i`.
        smoothness: The largest eigenvalue of any :math:`Q_i`.

    Example:
        >>> two = Quadratic(np.array([[[1.0]], [[3.0]]]), np.array([[0.0], [4.0]]))
        >>> two.optimum, two.smoothness
        (array([3.]), 3.0)
    """

    def __init__(self, Q: Floats, b: Floats) -> None:
        Q = np.ascontiguousarray(reals("Q", Q, error=ProblemError))
        b = np.ascontiguousarray(reals("b", b, error=ProblemError))
        if b.ndim != 2 or b.size == 0 or Q.shape != (*b.shape, b.shape[1]):
            raise ProblemError(
                f"Q of shape {Q.shape} and b of shape {b.shape} do not match; pass (agents, dim, dim) and (agents, dim)"
            )
        check_finite(Q, "Q", ("agent", "row", "column"))
        check_finite(b, "b", ("agent", "entry"))
        if not np.allclose(Q, Q.swapaxes(1, 2), rtol=1e-10, atol=0.0):
            gap = np.abs(Q - Q.swapaxes(1, 2)).max(axis=(1, 2))
            raise ProblemError(f"Q of agent {int(gap.argmax())} is not symmetric; pass (Q + Q.T) / 2")
        eigenvalues = np.linalg.eigvalsh(Q)
        if eigenvalues.min() <= 0.0:
            agent = int(eigenvalues.min(axis=1).argmin())
            raise ProblemError(
                f"Q of agent {agent} has the eigenvalue {eigenvalues[agent].min():.3g}; "
                "every eigenvalue must be positive"
            )
        self.agents, self.dim = b.shape
        self.Q, self.b = Q, b
        self.smoothness = float(eigenvalues.max())
        self._sum_Q: Floats = Q.sum(axis=0)
        self.optimum: Floats = np.linalg.solve(self._sum_Q, self._times_Q(b).sum(axis=0))

    def _times_Q(self, v: Floats) -> Floats:
        product: Floats = np.matmul(self.Q, v[:, :, None])[:, :, 0]
        return product

    def gradients(self, x: Floats, k: int | None = None) -> Floats:
        """Q_i (x_i - b_i) for every agent; there are no mini-batches."""
        self._check_models(x)
        return self._times_Q(np.subtract(x, self.b, order="C"))

    def losses(self, x: Floats) -> Floats:
        """f_i(x_i) for every agent."""
        away = x - self.b
        values: Floats = 0.5 * np.einsum("id,id->i", away, self._times_Q(away))
        return values

    def sum_gradients(self, x: Floats) -> Floats:
        """Computed relative to the optimum, where the gradient is zero, which avoids cancellation near it."""
        gradients: Floats = (x - self.optimum) @ self._sum_Q
        return gradients

    def sum_losses(self, x: Floats) -> Floats:
        """Computed as the value at the optimum plus the increase from there."""
        away = x - self.optimum
        least = self.losses(self._everywhere(self.optimum)).sum()
        values: Floats = least + 0.5 * np.einsum("rd,rd->r", away, away @ self._sum_Q)
        return values

    def restrict(self, agents: Ints | Sequence[int]) -> "Quadratic":
        """Only these agents; `optimum` and `smoothness` become those of the block."""
        positions = self._positions(agents)
        return Quadratic(self.Q[positions], self.b[positions])._inherit(self, positions)

    def fingerprints(self) -> Array:
        """SHA-256 of each agent's Q and b."""
        return as_bytes(digest(Q, b) for Q, b in zip(self.Q, self.b, strict=True))


def quadratic(
    *,
    agents: int,
    dim: int,
    seed: int = 0,
    conditioning: float = 10.0,
    heterogeneity: float = 1.0,
    block: Ints | Sequence[int] | None = None,
) -> Quadratic:
    r"""Random quadratics with a known optimum, each agent's drawn by the key (seed, agent).

    .. math::
        Q_i = U_i \operatorname{diag}(\sigma) U_i^\top, \qquad b_i = c + h\, e_i, \quad c, e_i \sim N(0, I)

    where :math:`U_i` is a random orthogonal matrix and :math:`\sigma` decreases geometrically from 1 to
    1/conditioning.

    Args:
        agents: Number of agents.
        dim: Length of a model.
        seed: Key of all draws.
        conditioning: Ratio of the largest to the smallest eigenvalue of every Q_i, at least 1.
        heterogeneity: h, the scale of the distances between the agents' minimizers; at 0 they are equal.
        block: Agents whose quadratics to generate; by default all.

    Returns:
        The problem; its smoothness is 1.

    Example:
        >>> problem = quadratic(agents=4, dim=3, seed=1)
        >>> float(np.abs(problem.global_gradients(problem.optimum[None])).max())
        0.0
    """
    agents, dim = check_sizes(agents=agents, dim=dim)
    if not (is_positive(conditioning) and conditioning >= 1.0):
        raise ProblemError(f"conditioning = {shown(conditioning)}; it is a ratio of eigenvalues, 1 or more")
    conditioning, heterogeneity = float(conditioning), not_negative("heterogeneity", heterogeneity, error=ProblemError)
    chosen = check_block(block, agents)
    check_room(agents=len(chosen), rows=dim, columns=dim)
    spectrum = np.geomspace(1.0, 1.0 / conditioning, dim)
    centre = generator(seed, _TAG).standard_normal(dim)
    Q, b = np.empty((len(chosen), dim, dim)), np.empty((len(chosen), dim))
    for row, agent in enumerate(chosen.tolist()):
        draw = generator(seed, _TAG, agent)
        U, triangle = np.linalg.qr(draw.standard_normal((dim, dim)))
        U *= np.sign(np.diag(triangle))  # makes the orthogonal matrix uniformly (Haar) distributed
        half = (U * spectrum) @ U.T
        Q[row] = (half + half.T) / 2
        b[row] = centre + heterogeneity * draw.standard_normal(dim)
    return Quadratic(Q, b)._made_by(
        "quadratic",
        agents=agents,
        dim=dim,
        seed=seed,
        conditioning=conditioning,
        heterogeneity=heterogeneity,
        block=block,
    )
