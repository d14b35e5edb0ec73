r"""Fastest mixing: the symmetric weights with the fastest consensus, regardless of data.

With :math:`a_e = e_i - e_j` for the link e between i and j, symmetric weights are :math:`W = I - \sum_e w_e a_e a_e^T`,
and the second largest eigenvalue modulus, :math:`\mu(W) = \| W - \frac1n 1 1^T \|_2`, is convex in w:

.. math::
    \min_{w, s}\ s \quad\text{with}\quad -s I \preceq W - \tfrac1n 1 1^T \preceq s I, \qquad
    w_e \ge 0, \qquad \sum_{e \ni i} w_e \le 1 .

It is solved by a barrier method. Newton's method needs no more than two n x n inverses P and Q and one linear system
of the size of w, because the Hessian of the two log-determinants is the entrywise square of
:math:`a_e^T P a_f` and of :math:`a_e^T Q a_f`.

The dual bounds the error of the result. For any symmetric Y whose absolute eigenvalues sum to at most 1, and any
:math:`z \ge 0` with :math:`z_i + z_j \ge a_e^T Y a_e` on every link,

.. math::
    \mu(W) \ge \langle Y, W - \tfrac1n 1 1^T \rangle = \langle Y, I - \tfrac1n 1 1^T \rangle - \sum_e w_e\, a_e^T Y a_e
    \ge \langle Y, I - \tfrac1n 1 1^T \rangle - \sum_i z_i

for all weights on the graph. The barrier method ends with such a pair, :math:`Y = (P - Q) / t` and
:math:`z_i = 1 / (t\, W_{ii})`; z is increased if rounding left it too small, so the bound holds to rounding.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from d3gd.arrays import CSR, Floats, Ints
from d3gd.digraph import Digraph, require_graph
from d3gd.errors import GraphError
from d3gd.validation import patience
from d3gd.weights import metropolis

LINKS_UP_TO = 2000  # linked pairs: Newton's method solves systems of that size, some tens of times

_GAP = 1e-7  # the proven distance from the optimum at which to stop
_LEFT = 1e-8  # the gap that the barrier leaves: below, rounding would spoil the dual pair
_FASTER = 20.0  # the factor by which the barrier weakens between two centres
_CENTRED = 1e-18  # the squared Newton decrement of a centre: its root is the error of the dual pair
_NEAR = 0.01  # the squared decrement below which Newton's method converges quadratically
_SMALLEST = 1e-10  # share of a Newton step: less is rounding
_STEPS = 60  # limit on Newton steps per centre; ten are usual


class FastestMixing(NamedTuple):
    """The fastest mixing weights with a proof of their error.

    Attributes:
        weights: Symmetric, on the graph's structure.
        slem: Their second largest eigenvalue modulus.
        bound: A lower bound (to rounding) for all symmetric weights on this graph: the value of the dual.
    """

    weights: CSR
    slem: float
    bound: float

    @property
    def gap(self) -> float:
        """The largest possible distance from the optimum."""
        return self.slem - self.bound


def fastest_mixing(graph: Digraph) -> CSR:
    r"""Return the symmetric weights with the smallest second largest eigenvalue modulus, the optimum for any data.

    .. math::
        \min_W \Big\| W - \tfrac1n 1 1^T \Big\|_2 \quad\text{over}\quad W = W^T \ge 0, \; W 1 = 1,
        \; W_{ij} = 0 \text{ where there is no link}

    Their modulus is within about 1e-7 of the optimum and never above that of Metropolis weights;
    :func:`certified_mixing` provides the proof. All weights are positive, also self-weights: if the optimal one is
    zero, it is only approached (to about 1e-8), since every method here needs a weight on itself.

    Args:
        graph: A connected, undirected graph with up to 2,000 linked pairs.

    Returns:
        The weights on the graph's structure.

    Example:
        >>> from d3gd.graphs import star
        >>> fastest_mixing(star(3)).toarray().round(3) + 0.0
        array([[0. , 0.5, 0.5],
               [0.5, 0.5, 0. ],
               [0.5, 0. , 0.5]])

    References:
        Boyd, Diaconis and Xiao, *Fastest mixing Markov chain on a graph*, SIAM Review 46, 2004: the problem, its
        dual and its closed forms. The barrier method is the standard one for semidefinite programs.
    """
    return certified_mixing(graph).weights


def certified_mixing(graph: Digraph) -> FastestMixing:
    """Return the weights of :func:`fastest_mixing` with a lower bound that proves them optimal up to ``gap``.

    Args:
        graph: A connected, undirected graph with up to 2,000 linked pairs.

    Returns:
        The weights, their second largest eigenvalue modulus, and the bound.

    Example:
        >>> from d3gd.graphs import complete
        >>> best = certified_mixing(complete(4))
        >>> bool(best.slem < 1e-8), bool(best.gap < 1e-7)
        (True, True)
    """
    require_graph(graph)
    graph.require_undirected("fastest mixing", "metropolis weights")
    graph.require_strongly_connected()
    known = metropolis(graph)
    links = graph.edges[graph.edges[:, 0] < graph.edges[:, 1]]
    if len(links) > LINKS_UP_TO:
        raise GraphError(
            f"fastest mixing on {len(links)} linked pairs would take systems of that many equations; it is computed "
            f"up to {LINKS_UP_TO}: choose a sparser graph, or metropolis weights"
        )
    if len(links) == 0:
        return FastestMixing(known, 0.0, 0.0)
    operations = 200 * (25.0 * graph.n**3 + len(links) ** 3)
    patience(f"fastest mixing on {len(links):,} linked pairs", operations, "choose metropolis weights")
    program = _Program(graph.n, links)
    w, bound = program.solve()
    W = program.matrix(w)
    found, slem = graph.matrix(W[graph.targets, graph.sources]), _slem(W)
    usual = _slem(known.toarray())
    if usual <= slem:
        found, slem = known, usual
    return FastestMixing(found, slem, max(bound, 0.0))


def _slem(W: Floats) -> float:
    return float(np.abs(np.linalg.eigvalsh(W - 1 / len(W))).max())


class _Program:
    """The semidefinite program of one graph; names are those of the module's formulas."""

    def __init__(self, n: int, links: Ints) -> None:
        self.n, (self.i, self.j) = n, links.T
        self.J = np.full((n, n), 1 / n)
        ones, places = np.ones(2 * len(links)), np.tile(np.arange(len(links)), 2)
        self.ends: CSR = csr_array((ones, (np.concatenate([self.i, self.j]), places)), shape=(n, len(links)))

    def matrix(self, w: Floats) -> Floats:
        W = np.zeros((self.n, self.n))
        W[self.i, self.j] = W[self.j, self.i] = w
        W[np.diag_indices(self.n)] = self.own(w)
        return W

    def own(self, w: Floats) -> Floats:
        """The self-weights."""
        return 1 - self.at_agents(w)

    def at_agents(self, w: Floats) -> Floats:
        """The sum over each agent's links."""
        sums: Floats = self.ends @ w
        return sums

    def solve(self) -> tuple[Floats, float]:
        degrees = self.at_agents(np.ones(len(self.i)))
        w = 0.9 / (1 + np.maximum(degrees[self.i], degrees[self.j]))
        s, t, bound = 1.1, 1.0, 0.0
        while True:
            w, s = self._centre(w, s, t)
            bound = max(bound, self._bound(w, s))
            if s - bound <= _GAP or 3 * self.n + len(w) <= _LEFT * t:
                return w, bound
            t *= _FASTER

    def _centre(self, w: Floats, s: float, t: float) -> tuple[Floats, float]:
        """Minimize ``t s`` plus the barrier by Newton's method."""
        from scipy.linalg import LinAlgError, cho_factor, cho_solve

        last = np.inf
        for _ in range(_STEPS):
            P, Q = self._inverses(w, s)
            own = self.own(w)
            gradient = np.append(
                self._along(Q - P) - 1 / w + (1 / own)[self.i] + (1 / own)[self.j], t - np.trace(P) - np.trace(Q)
            )
            try:
                step = -cho_solve(cho_factor(self._hessian(P, Q, w, own)), gradient)
            except LinAlgError:
                return w, s
            decrement = float(-gradient @ step)
            near = decrement < _NEAR
            # Near the centre each step squares the decrement; otherwise rounding dominates.
            if not decrement > _CENTRED or (last < _NEAR and decrement > last / 2):
                return w, s
            # There full steps are safe, and the barrier's value is too inaccurate to compare.
            wanted = np.finfo(np.float64).max if near else self._value(w, s, t)
            last, size = decrement, 1.0
            while self._value(w + size * step[:-1], s + size * step[-1], t) > wanted - 0.25 * size * decrement:
                size /= 2
                if size < _SMALLEST:
                    return w, s
            w, s = w + size * step[:-1], s + size * float(step[-1])
        return w, s

    def _value(self, w: Floats, s: float, t: float) -> float:
        own = self.own(w)
        if w.min() <= 0 or own.min() <= 0 or s <= 0:
            return np.inf
        values = np.linalg.eigvalsh(self.matrix(w) - self.J)
        if values[0] <= -s or values[-1] >= s:
            return np.inf
        logs = np.log(s - values).sum() + np.log(s + values).sum() + np.log(w).sum() + np.log(own).sum()
        return float(t * s - logs)

    def _inverses(self, w: Floats, s: float) -> tuple[Floats, Floats]:
        values, vectors = np.linalg.eigh(self.matrix(w) - self.J)
        return (vectors / (s - values)) @ vectors.T, (vectors / (s + values)) @ vectors.T

    def _along(self, Y: Floats) -> Floats:
        """Return ``a_e' Y a_e`` for every link."""
        along: Floats = Y[self.i, self.i] + Y[self.j, self.j] - 2 * Y[self.i, self.j]
        return along

    def _hessian(self, P: Floats, Q: Floats, w: Floats, own: Floats) -> Floats:
        m = len(w)
        H = np.empty((m + 1, m + 1))
        H[:m, :m] = self._squares(P) + self._squares(Q)
        H[:m, :m] += (self.ends.T @ (self.ends.multiply((1 / own**2)[:, None]))).toarray()
        H[np.arange(m), np.arange(m)] += 1 / w**2
        PP, QQ = P @ P, Q @ Q
        H[:m, m] = H[m, :m] = self._along(PP - QQ)
        H[m, m] = np.trace(PP) + np.trace(QQ)
        return H

    def _squares(self, P: Floats) -> Floats:
        rows = P[self.i] - P[self.j]
        squares: Floats = (rows[:, self.i] - rows[:, self.j]) ** 2
        return squares

    def _bound(self, w: Floats, s: float) -> float:
        """Return the value of the dual at the pair given by a centre."""
        P, Q = self._inverses(w, s)
        total = np.abs(np.linalg.eigvalsh(P - Q)).sum()
        if total == 0:
            return 0.0
        Y, z = (P - Q) / total, 1 / self.own(w) / total
        lacking = np.maximum(self._along(Y) - z[self.i] - z[self.j], 0) / 2
        raised = np.zeros(self.n)
        np.maximum.at(raised, self.i, lacking)
        np.maximum.at(raised, self.j, lacking)
        return float(np.trace(Y) - np.sum(Y) / self.n - np.sum(z + raised))
