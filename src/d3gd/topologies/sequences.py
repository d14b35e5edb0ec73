r"""Sequences of sparse networks, one per iteration, that mix better together than any of them alone.

``d3gd.Conditions(graphs=[step.graph for step in sequence])`` uses the links of each step in turn, on the network
:func:`union`; agents then average over whom they hear, with the initial weights of those links, renormalized. With
uniform weights that is what a step's own weights are wherever these are equal.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from d3gd.arrays import Ints
from d3gd.digraph import Digraph
from d3gd.errors import GraphError
from d3gd.topologies.base import MOST, Topology, shifted, with_links
from d3gd.validation import count

Pairs: TypeAlias = list[tuple[Ints, Ints, float]]


def one_peer_exponential(n: int) -> list[Topology]:
    r"""The exponential graph, one link per agent at a time: in step t, agent i hears :math:`i - 2^t`.

    Every step is doubly stochastic with the weights 1/2. For :math:`n = 2^\tau` the product of the :math:`\tau` steps
    is the average of all agents, exactly.

    Args:
        n: The number of agents.

    Returns:
        The :math:`\lceil \log_2 n \rceil` steps.

    Example:
        >>> product = np.linalg.multi_dot([step.weights.toarray() for step in one_peer_exponential(8)])
        >>> bool(np.allclose(product, 1 / 8))
        True

    Reference:
        Ying, Yuan, Chen, Hu, Pan and Yin, "Exponential graph is provably efficient for decentralized deep learning",
        NeurIPS 2021.
    """
    n = count("n", n, least=2, most=MOST, error=GraphError)
    return [shifted(n, 2**t, 0.5) for t in range((n - 1).bit_length())]


def base_graph(n: int, k: int = 1) -> list[Topology]:
    r"""The Base-(k + 1) graph: exact averages in a finite number of steps, for any number of agents.

    In every step an agent exchanges with at most k others, with symmetric weights. Let :math:`n = p q`, where p is a
    product of factors up to k + 1 and q has none. Agents average in p groups of q by the simple Base-(k + 1) graph,
    then across groups, in one step per factor of p. If the simple graph of all n takes fewer steps, it is that one.

    The simple graph writes n in base k + 1, as :math:`n = \sum_l a_l (k+1)^{p_l}` with falling :math:`p_l`, and divides
    the agents into sets :math:`V_l` of :math:`a_l (k+1)^{p_l}`, each made of :math:`a_l` blocks.

    1. Every :math:`V_l` averages: in each step over groups of one factor of its size.
    2. For l = 1, 2, ...: each agent of the later sets R exchanges with one agent of every block of :math:`V_l`, with
       the weight :math:`(k+1)^{p_l} / (|V_l| + |R|)`. Then every block of :math:`V_l`, and R, has the mean of both.
    3. As soon as that is so, every block averages by itself.

    Args:
        n: The number of agents.
        k: The most others that an agent exchanges with in a step.

    Returns:
        At most :math:`2 \log_{k+1} n + 2` steps, whose product is the average of all agents.

    Example:
        >>> steps = base_graph(6)
        >>> product = np.linalg.multi_dot([step.weights.toarray() for step in steps])
        >>> len(steps), bool(np.allclose(product, 1 / 6))
        (4, True)

    Reference:
        Takezawa, Sato, Bao, Niwa and Yamada, "Beyond exponential graph: communication-efficient topologies for
        decentralized learning via finite-time convergence", NeurIPS 2023.
    """
    n = count("n", n, least=2, most=MOST, error=GraphError)
    k = count("k", k, least=1, most=n - 1, error=GraphError)
    factors, rest = [], n
    for factor in range(k + 1, 1, -1):
        while rest % factor == 0:
            factors.append(factor)
            rest //= factor
    groups = np.arange(n).reshape(-1, rest)
    steps = _within(groups, _simple(rest, k)) + _within(groups.T, _averaging(np.arange(n // rest), factors))
    return [_symmetric(n, pairs) for pairs in min(steps, _simple(n, k), key=len)]


def _simple(n: int, k: int) -> list[Pairs]:
    """Return the steps of the simple Base-(k + 1) graph."""
    sets = _digits(n, k + 1)  # (agents, number of blocks, power) of every set
    first = [_averaging(agents, [k + 1] * power + [blocks] * (blocks > 1)) for agents, blocks, power in sets]
    begin = max(map(len, first))
    steps: list[Pairs] = [[] for _ in range(begin)]
    for own in first:
        for step, pairs in zip(steps, own, strict=False):
            step += pairs
    for turn, (agents, blocks, power) in enumerate(sets[:-1]):
        rest = np.concatenate([other for other, _, _ in sets[turn + 1 :]])
        size = (k + 1) ** power
        weight = size / (len(agents) + len(rest))
        parts = agents.reshape(blocks, size)
        exchange: Pairs = [(part[: len(rest)], rest, weight) for part in parts]
        _add(steps, begin + turn, exchange)
        for part in parts:
            for later, pairs in enumerate(_averaging(part, [k + 1] * power)):
                _add(steps, begin + turn + 1 + later, pairs)
    return steps


def _within(groups: Ints, steps: list[Pairs]) -> list[Pairs]:
    """Return steps among the first agents, taken by every group, a row of agents, at once."""
    return [[(groups[:, one].ravel(), groups[:, two].ravel(), w) for one, two, w in pairs] for pairs in steps]


def union(sequence: Sequence[Topology]) -> Digraph:
    """Return the network of all links of a sequence.

    Example:
        >>> union(one_peer_exponential(8))
        Digraph(n=8, links=24)
    """
    if not isinstance(sequence, Sequence) or not sequence or not all(isinstance(s, Topology) for s in sequence):
        raise GraphError("union needs a list of steps, such as d3gd.topologies.one_peer_exponential(8)")
    return Digraph.from_edges(sequence[0].graph.n, np.concatenate([step.graph.edges for step in sequence]))


def _digits(n: int, base: int) -> list[tuple[Ints, int, int]]:
    """Return the sets of agents for the digits of n that are not zero, from the largest power on."""
    found, begin = [], 0
    for power in range(n.bit_length(), -1, -1):
        blocks = (n // base**power) % base
        if blocks:
            end = begin + blocks * base**power
            found.append((np.arange(begin, end), blocks, power))
            begin = end
    return found


def _averaging(agents: Ints, factors: list[int]) -> list[Pairs]:
    """Return the steps in which agents average exactly, in groups along one axis of a grid with these sides each."""
    grid = agents.reshape(factors[::-1]) if factors else agents.reshape(1)
    steps: list[Pairs] = []
    for axis in range(grid.ndim - 1, -1, -1) if factors else []:
        groups = np.moveaxis(grid, axis, -1).reshape(-1, grid.shape[axis])
        side = groups.shape[1]
        pairs = [(groups[:, a], groups[:, b], 1 / side) for a in range(side) for b in range(a + 1, side)]
        steps.append(pairs)
    return steps


def _add(steps: list[Pairs], place: int, pairs: Pairs) -> None:
    while len(steps) <= place:
        steps.append([])
    steps[place] += pairs


def _symmetric(n: int, pairs: Pairs) -> Topology:
    one = np.concatenate([a for a, _, _ in pairs]) if pairs else np.zeros(0, dtype=np.int64)
    two = np.concatenate([b for _, b, _ in pairs]) if pairs else np.zeros(0, dtype=np.int64)
    weights = np.concatenate([np.full(len(a), weight) for a, _, weight in pairs]) if pairs else np.zeros(0)
    return with_links(n, np.concatenate([one, two]), np.concatenate([two, one]), np.concatenate([weights, weights]))
