"""The rule of eq. (naivedecay): the weights that minimize the design function, row by row."""

import numpy as np

from d3gd.arrays import Floats
from d3gd.distributed.received import Received
from d3gd.network import Network


def closest_combination(net: Network, a: Floats, received: Received, target: Floats) -> Floats:
    r"""Return :math:`\arg\min \| \sum_j a_{ij} x_j - t_i \|^2` over every agent's simplex.

    With :math:`m(a) = \|\sum_j a_j (x_j - t)\|^2`, the non-negative least-squares problem
    :math:`\min_{u \ge 0} \|\sum_j u_j (x_j - t)\|^2 + (\sum_j u_j - 1)^2` has along each ray :math:`u = s a` the
    minimum :math:`m(a) / (1 + m(a))`, which grows with m: its solution, scaled to sum to 1, is the minimizer. Lawson
    and Hanson's active sets find it in finitely many steps. If all neighbours sent the same vector, the objective is
    constant and the row keeps its weights.

    Args:
        net: The network.
        a: The current weights, over the edges.
        received: The vectors to combine.
        target: One target per agent.

    References:
        Lawson and Hanson, *Solving least squares problems*, 1974, chapter 23.
    """
    from scipy.optimize import nnls  # slow to import, and no other rule needs it

    best = a.copy()
    for i, (edges, heard) in enumerate(net.heard(received)):
        away = heard - target[i]
        if np.all(heard == heard[0]) or not np.isfinite(away).all():  # constant, or diverged, which the engine detects
            continue
        size = np.linalg.norm(away, axis=1).max()
        rows = np.vstack([away.T / size, np.ones(len(heard))])
        u, _ = nnls(rows, np.append(np.zeros(len(rows) - 1), 1.0))
        best[edges] = u / u.sum()
    return best
