r"""EquiTopo: sums of random shifts, which mix at an expected rate that does not depend on the number of agents.

With :math:`A^{(u)}` the matrix of the shift by u, which has :math:`(n-1)/n` at :math:`(i, i - u)` and :math:`1/n` on
the diagonal, the mean of :math:`A^{(1)}, \dots, A^{(n-1)}` is the average of all agents.
"""

import numpy as np

from d3gd.arrays import Ints
from d3gd.errors import GraphError
from d3gd.random import generator
from d3gd.topologies.base import MOST, Topology, shifted, with_links
from d3gd.validation import LINKS, count, flag, within

_TAG = 7  # of the key of the shifts, apart from those of other draws


def equi_static(n: int, degree: int, *, undirected: bool = False, seed: int = 0) -> Topology:
    r"""EquiStatic: the mean of some random shifts, all used in every iteration.

    With M shifts, drawn with replacement, the weights are

    .. math:: W = \frac1M \sum_{m=1}^M A^{(u_m)} \qquad \text{or} \qquad \tfrac12 (W + W^\top)

    if links are to be undirected (D- and U-EquiStatic). They are doubly stochastic. In expectation over the shifts, a
    round of the first leaves :math:`\frac{n-2}{n M}` of the squared disagreement. A bad draw may not connect all
    agents, as a single shift by 2 of an even number; another seed then helps.

    Args:
        n: The number of agents.
        degree: The number M of shifts: an agent hears at most so many others, twice as many if undirected.
        undirected: Whether links are undirected.
        seed: The key of the shifts.

    Returns:
        The network and its weights.

    Example:
        >>> graph, weights = equi_static(20, 4, undirected=True)
        >>> graph.is_undirected, bool(np.allclose(weights.sum(axis=0), 1))
        (True, True)

    Reference:
        Song, Li, Jin, Shi, Yan, Yin and Yuan, "Communication-efficient topologies for decentralized learning with O(1)
        consensus rate", NeurIPS 2022.
    """
    n = count("n", n, least=2, most=MOST, error=GraphError)
    degree = count("degree", degree, least=1, most=MOST, error=GraphError)
    if n * degree > LINKS:
        raise GraphError(
            f"{n * degree:,} links are more than the {LINKS:,} that a graph may have; choose a smaller degree"
        )
    drawn = _shifts(n, degree, seed)
    if flag("undirected", undirected):
        drawn = np.concatenate([drawn, n - drawn])
    shifts, times = np.unique(drawn, return_counts=True)
    targets = np.tile(np.arange(n), len(shifts))
    sources = (targets - np.repeat(shifts, n)) % n
    return with_links(n, sources, targets, np.repeat(times * (n - 1) / (n * len(drawn)), n))


def equi_one_peer(
    n: int, *, length: int | None = None, ratio: float = 0.5, undirected: bool = False, seed: int = 0
) -> list[Topology]:
    r"""EquiDyn: in every step an agent hears the one that is a random number of places before it, or exchanges with it.

    One-way (OD-EquiDyn), the weights are :math:`(1 - \eta) I + \eta A^{(u)}`. Undirected (OU-EquiDyn), agents s, s + 1,
    ... from a random s on each exchange with the one u places further, if both are still free in this step. The
    weights between them are :math:`\eta (n-1)/n`, and who is left keeps its own. A step leaves, in expectation, at
    most :math:`1 - 2 \eta (1 - \eta)` of the squared disagreement, undirected :math:`1 - \frac43 \eta (1 - \eta)`.

    Args:
        n: The number of agents.
        length: The number of steps; by default n - 1.
        ratio: The ratio :math:`\eta`, in (0, 1).
        undirected: Whether agents exchange in pairs.
        seed: The key of the shifts.

    Returns:
        The steps, doubly stochastic.

    Example:
        >>> step = equi_one_peer(4, length=1)[0]
        >>> sorted(set(step.weights.data.tolist()))
        [0.375, 0.625]

    Reference:
        Song, Li, Jin, Shi, Yan, Yin and Yuan, "Communication-efficient topologies for decentralized learning with O(1)
        consensus rate", NeurIPS 2022.
    """
    n = count("n", n, least=2, most=MOST, error=GraphError)
    steps = count("length", n - 1 if length is None else length, least=1, most=MOST, error=GraphError)
    within("ratio", ratio, 0, 1, closed="()")
    shifts, weight = _shifts(n, steps, seed).tolist(), ratio * (n - 1) / n
    if not flag("undirected", undirected):
        return [shifted(n, shift, weight) for shift in shifts]
    starts = generator(seed, _TAG, 1).integers(n, size=steps).tolist()
    return [paired(n, shift, start, weight) for shift, start in zip(shifts, starts, strict=True)]


def paired(n: int, shift: int, start: int, weight: float) -> Topology:
    """Return the step of OU-EquiDyn with a shift, in which the agent ``start`` chooses first."""
    partner = np.full(n, -1)
    for one in (*range(start, n), *range(start)):
        other = (one + shift) % n
        if partner[one] < 0 and partner[other] < 0:
            partner[one], partner[other] = other, one
    targets = np.flatnonzero(partner >= 0)
    return with_links(n, partner[targets], targets, np.full(len(targets), weight))


def _shifts(n: int, number: int, seed: int) -> Ints:
    return generator(seed, _TAG).integers(1, n, number)
