"""Standard graphs. Random ones are redrawn until strongly connected; an error explains if that is unlikely."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from d3gd.arrays import Ints
from d3gd.digraph import Digraph, as_count
from d3gd.errors import GraphError
from d3gd.validation import LINKS, WHOLE, flag, is_number, shown

__all__ = [
    "Digraph",
    "complete",
    "erdos_renyi",
    "exponential",
    "grid",
    "random_geometric",
    "regular",
    "ring",
    "star",
]

_DRAWS = 100


def ring(n: int) -> Digraph:
    """Return the directed cycle: agent i sends to agent i + 1 (mod n) only.

    Args:
        n: The number of agents.

    Example:
        >>> ring(3).edges.tolist()
        [[2, 0], [0, 1], [1, 2]]
    """
    agents = np.arange(as_count(n, "n"))
    return Digraph.from_edges(len(agents), np.column_stack([agents, np.roll(agents, -1)]))


def exponential(n: int) -> Digraph:
    """Return the exponential graph: i sends to i + 1, i + 2, i + 4, ... (mod n), for all powers of two below n.

    Args:
        n: The number of agents.

    Example:
        >>> exponential(8).hops_from(0).tolist()
        [0, 1, 1, 2, 1, 2, 2, 3]
    """
    n = as_count(n, "n")
    agents = np.arange(n)
    hops = [2**k for k in range((n - 1).bit_length())]
    edges = [np.column_stack([agents, (agents + hop) % n]) for hop in hops]
    return Digraph.from_edges(n, np.concatenate([np.empty((0, 2), dtype=np.int64), *edges]))


def grid(rows: int, columns: int, *, torus: bool = False) -> Digraph:
    """Return a lattice with undirected links between neighbours; agent ``r * columns + c`` is at (r, c).

    Args:
        rows: The number of rows.
        columns: The number of columns.
        torus: Whether opposite borders are joined.

    Returns:
        The graph of ``rows * columns`` agents.

    Example:
        >>> grid(3, 4).link_count, grid(3, 4, torus=True).link_count
        (34, 48)
    """
    rows, columns = as_count(rows, "rows"), as_count(columns, "columns")
    agents = np.arange(as_count(rows * columns, "rows * columns")).reshape(rows, columns)
    if flag("torus", torus, error=GraphError):
        pairs = [(agents, np.roll(agents, -1, axis=axis)) for axis in (0, 1)]
    else:
        pairs = [(agents[:-1], agents[1:]), (agents[:, :-1], agents[:, 1:])]
    links = [np.column_stack([one.ravel(), other.ravel()]) for one, other in pairs]
    return _both_ways(agents.size, np.concatenate(links))


def complete(n: int) -> Digraph:
    """Return the complete graph: every agent hears all others.

    Args:
        n: The number of agents.
    """
    n = as_count(n, "n")
    _require_room(n * (n - 1))
    agents = np.arange(n)
    return Digraph.from_edges(n, np.column_stack([np.repeat(agents, n), np.tile(agents, n)]))


def star(n: int) -> Digraph:
    """Return the star: agent 0 hears all others, and all others hear only agent 0.

    Args:
        n: The number of agents.
    """
    n = as_count(n, "n")
    leaves = np.arange(1, n)
    return _both_ways(n, np.column_stack([np.zeros_like(leaves), leaves]))


def erdos_renyi(n: int, p: float, *, seed: int = 0) -> Digraph:
    """Return a strongly connected directed Erdős-Rényi graph: each ordered pair is linked with probability p.

    Args:
        n: The number of agents.
        p: The probability of a link, in (0, 1].
        seed: The same seed gives the same graph.

    Returns:
        The first strongly connected graph of at most 100 draws.

    Example:
        >>> erdos_renyi(20, 0.6, seed=1).is_strongly_connected
        True
    """
    n = as_count(n, "n")
    if not (is_number(p) and 0 < p <= 1):
        raise GraphError(f"p = {shown(p)}: the probability of a link must be above 0 and at most 1")
    p, rng = float(p), _draws(seed)
    _require_room(p * n * (n - 1))
    someone_heard = 1 - (1 - p) ** (n - 1)
    # Rows are independent, so this power is the probability that all agents hear another one: if tiny, don't draw.
    if n == 1 or someone_heard**n > 1e-9:
        for _ in range(_DRAWS):
            graph = Digraph.from_edges(n, _bernoulli_pairs(n, p, rng))
            if graph.is_strongly_connected:
                return graph
    enough = 1 - (0.05 / n) ** (1 / (n - 1))
    raise GraphError(
        f"no strongly connected graph with n = {n} and p = {p:g} in {_DRAWS} draws: on average "
        f"{n * (1 - p) ** (n - 1):.3g} agents hear nobody and as many are heard by nobody; "
        f"p = {enough:.2g} or more would do"
    )


def _bernoulli_pairs(n: int, p: float, rng: np.random.Generator) -> Ints:
    """Draw each of the n (n - 1) ordered pairs with probability p, by geometric gaps between successes."""
    pairs = n * (n - 1)
    chunk = int(pairs * p + 5 * math.sqrt(pairs * p)) + 10
    heads = np.array([-1], dtype=np.int64)
    while heads[-1] < pairs:
        gaps = np.minimum(rng.geometric(p, size=chunk), pairs + 1)
        heads = np.concatenate([heads, heads[-1] + np.cumsum(gaps)])
    heads = heads[1 : np.searchsorted(heads, pairs)]
    targets, others = np.divmod(heads, max(n - 1, 1))
    return np.column_stack([others + (others >= targets), targets])


def random_geometric(n: int, radius: float, *, spread: float = 0.5, seed: int = 0) -> Digraph:
    """Return a graph of random points in the unit square, each heard by all agents within its range.

    Agent j's range is uniform in ``radius * [1 - spread, 1 + spread]``; unequal ranges lead to one-way links.

    Args:
        n: The number of agents.
        radius: The mean range; the square's side is 1.
        spread: Relative spread of the ranges, in [0, 1).
        seed: The same seed gives the same graph.

    Returns:
        The first strongly connected graph of at most 100 draws.

    Example:
        >>> random_geometric(50, 0.4, seed=1).is_undirected
        False
    """
    from scipy.spatial import cKDTree

    n = as_count(n, "n")
    if not (is_number(radius) and 0 < radius < math.inf):
        raise GraphError(f"radius = {shown(radius)}: it must be a positive number (the square's side is 1)")
    if not (is_number(spread) and 0 <= spread < 1):
        raise GraphError(f"spread = {shown(spread)}: it must be at least 0 (equal ranges) and below 1")
    radius, spread, rng = float(radius), float(spread), _draws(seed)
    surely = min(1.0, radius * (1 - spread))  # a quarter disc of this radius lies in the square for any agent
    _require_room(n * (n - 1) * math.pi * surely**2 / 4)
    cut_off = 0
    for draws in range(1, _DRAWS + 1):
        points = rng.random((n, 2))
        ranges = radius * (1 + spread * rng.uniform(-1, 1, n))
        near = cKDTree(points).query_pairs(ranges.max(), output_type="ndarray")
        pairs = np.concatenate([near, near[:, ::-1]])
        distances = np.linalg.norm(points[pairs[:, 0]] - points[pairs[:, 1]], axis=1)
        graph = Digraph.from_edges(n, pairs[distances <= ranges[pairs[:, 0]]])
        if graph.is_strongly_connected:
            return graph
        cut_off += int(np.sum((graph.in_degrees == 0) | (graph.out_degrees == 0)))
        if draws >= 3 and cut_off > 50 * draws:
            break  # so many in each of three draws: none in the next hundred is practically impossible
    enough = math.sqrt((math.log(n) + 3) / (math.pi * n)) / (1 - spread)
    raise GraphError(
        f"no strongly connected graph with n = {n}, radius = {radius:g} and spread = {spread:g} in "
        f"{draws} draws: on average {cut_off / draws:.3g} agents hear nobody or are heard by nobody; "
        f"a radius of {enough:.2g} or more would do"
    )


def regular(n: int, degree: int, *, seed: int = 0) -> Digraph:
    """Return a random graph in which every agent has ``degree`` in-neighbours and out-neighbours.

    It is the union of ``degree`` random permutations without common links; the first is one cycle through all
    agents, so the graph is strongly connected.

    Args:
        n: The number of agents, at least 2.
        degree: From 1 to n - 1.
        seed: The same seed gives the same graph.

    Returns:
        The graph.

    Example:
        >>> graph = regular(1000, 10, seed=1)
        >>> set(graph.in_degrees.tolist()), set(graph.out_degrees.tolist())
        ({10}, {10})
    """
    n = as_count(n, "n", at_least=2)
    degree = as_count(degree, "degree")
    if degree >= n:
        raise GraphError(f"degree = {degree}: with n = {n} the degree must be from 1 to {n - 1}")
    _require_room(n * degree)
    rng = _draws(seed)
    if 2 * degree <= n:
        return _union(n, _disjoint_permutations(n, degree, rng))
    # For more than half, draw the complement, which is regular and sparse; the graph (more than half of all agents
    # in both directions) is always strongly connected.
    left_out = _union(n, _disjoint_permutations(n, n - 1 - degree, rng)).edges
    kept = np.ones((n, n), dtype=bool)
    kept[left_out[:, 0], left_out[:, 1]] = False
    return Digraph.from_edges(n, np.argwhere(kept))


def _disjoint_permutations(n: int, count: int, rng: np.random.Generator) -> Iterator[Ints]:
    """Yield ``count`` <= n / 2 permutations without fixed points, no two of which agree anywhere.

    A clash at i is resolved by a swap with some j. Of the n positions, k hold a value that is taken at i, and i's
    value is taken at k; i itself is in both. So at least n - 2 k + 1 >= 1 swaps resolve it without a new clash.
    """
    taken = np.empty((count + 1, n), dtype=np.int64)
    where = np.empty_like(taken)
    taken[0] = where[0] = np.arange(n)
    for k in range(1, count + 1):
        sigma = rng.permutation(n)
        if k == 1:
            order, sigma = sigma, np.empty_like(sigma)
            sigma[order] = np.roll(order, 1)
        for i in np.flatnonzero((taken[:k] == sigma).any(axis=0)):
            if sigma[i] not in taken[:k, i]:
                continue
            free = np.ones(n, dtype=bool)
            free[taken[:k, i]] = False
            mends = free[sigma]
            mends[where[:k, sigma[i]]] = False
            j = rng.choice(np.flatnonzero(mends))
            sigma[i], sigma[j] = sigma[j], sigma[i]
        taken[k] = sigma
        where[k, sigma] = np.arange(n)
        yield sigma


def _union(n: int, permutations: Iterator[Ints]) -> Digraph:
    agents = np.arange(n)
    edges = [np.column_stack([sigma, agents]) for sigma in permutations]
    return Digraph.from_edges(n, np.concatenate([np.empty((0, 2), dtype=np.int64), *edges]))


def _draws(seed: int) -> np.random.Generator:
    return np.random.default_rng(as_count(seed, "seed", at_least=0, at_most=WHOLE))


def _require_room(links: float) -> None:
    if links > LINKS:
        raise GraphError(f"about {links:.2g} links, more than the {LINKS:,} that a graph may have; choose fewer")


def _both_ways(n: int, pairs: Ints) -> Digraph:
    return Digraph.from_edges(n, np.concatenate([pairs, pairs[:, ::-1]]))
