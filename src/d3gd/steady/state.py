r"""The steady state of Di-DGD under constant gradients, and its derivative along every edge.

Let the gradients G be constant. With :math:`c_i = \frac{\gamma}{n \pi_i}` agent i's step is :math:`u_i = -c_i g_i`, and
models follow

.. math::
    X^+ = A X + U \quad\text{(combine before)}, \qquad X^+ = A (X + U) \quad\text{(combine after the step)}.

Their mean drifts; with :math:`J = I - \frac1n 1 1^T`, their deviations from the mean model
converge to

.. math::
    D_c = J Z U \quad\text{(before)}, \qquad D_c = J (Z - I) U \quad\text{(after)}, \qquad
    Z = (I - A + \tfrac1n 1 1^T)^{-1},

the second because :math:`A Z = Z - I + \frac1n 1 1^T Z`. The same Z gives the Perron vector, :math:`\pi = Z^T 1 / n`.

A change of weights that keeps the rows' sums changes these by

.. math::
    dZ = Z\, dA\, Z, \qquad d\pi^T = \pi^T dA\, Z, \qquad du_i = -\frac{d\pi_i}{\pi_i} u_i,

so with the adjoint :math:`\Lambda = Z^T D_c` the derivative of :math:`\frac12 \|D_c\|_F^2` is, up to a constant per
row,

.. math::
    h_{ij} = \langle \lambda_i, (Z U)_j \rangle + \pi_i (Z s)_j, \qquad
    s_j = -\frac{1}{\pi_j} \langle l_j, u_j \rangle, \qquad
    L = \Lambda \quad\text{(before)}, \quad L = \Lambda - D_c \quad\text{(after)}.

The first term is how j's deviation cancels i's, the second the effect of more weight on j on the Perron weights.
"""

import numpy as np

from d3gd.arrays import Floats


def mixing(A: Floats) -> tuple[Floats, Floats]:
    r"""Return Z and :math:`\pi = Z^T 1 / n` of dense weights that connect all agents.

    The entries of pi are accurate relative to the largest one: those of agents with almost no influence may even be
    negative.
    """
    n = len(A)
    Z: Floats = np.asarray(np.linalg.inv(np.eye(n) - A + 1 / n), dtype=np.float64)
    return Z, Z.mean(axis=0)


class SteadyState:
    """The steady state under constant gradients; attributes are named as in the module's formulas.

    Args:
        Z: The matrix Z of the weights; see `mixing`.
        pi: Their Perron vector, all positive.
        G: The gradients or any vectors with the same inner products, shape (n, r).
        step_size: The step size.
        after: Whether agents combine after their step, rather than before.

    Attributes:
        c: Each agent's step size, shape (n,).
        U: The agents' steps, shape (n, r).
        D_c: Their steady deviations from the mean model, shape (n, r).

    Example:
        >>> Z, pi = mixing(np.full((2, 2), 0.5))
        >>> SteadyState(Z, pi, np.array([[1.0], [-1.0]]), step_size=0.1, after=False).D_c
        array([[-0.1],
               [ 0.1]])
    """

    def __init__(self, Z: Floats, pi: Floats, G: Floats, step_size: float, after: bool) -> None:
        self.Z, self.pi, self.after = Z, pi, after
        self.c: Floats = step_size / (len(pi) * pi)
        self.U: Floats = -self.c[:, None] * G
        self._ZU: Floats = Z @ self.U
        D = self._ZU - self.U if after else self._ZU
        self.D_c: Floats = D - D.mean(axis=0)

    def derivative(self, factor: float = 1.0, by_log_pi: Floats | float = 0.0) -> Floats:
        r"""Return the derivative of :math:`\frac{\text{factor}}2 \|D_c\|_F^2 + \varphi(\pi)` by every weight.

        Args:
            factor: The factor of the squared deviations.
            by_log_pi: :math:`\pi_j \, \partial \varphi / \partial \pi_j`, if there is such a function.

        Returns:
            Shape (n, n), up to a constant per row.
        """
        D = factor * self.D_c
        adjoint = self.Z.T @ D
        pulled = np.einsum("ir,ir->i", adjoint - D if self.after else adjoint, self.U)
        s = (by_log_pi - pulled) / self.pi
        derivative: Floats = adjoint @ self._ZU.T + np.outer(self.pi, self.Z @ s)
        return derivative
