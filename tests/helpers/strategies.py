"""Hypothesis strategies for the objects of the theorems."""

import os
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from d3gd.digraph import Digraph

TIMES = int(os.environ.get("D3GD_FUZZ", "0"))

# The same draws in every run, so that a suite which passed stays passed until the code changes; `make fuzz` draws anew,
# and more, to find what these have missed. No deadline: a shared machine may stall at any time, and how long an example
# takes says nothing about the mathematics.
settings.register_profile("d3gd", deadline=None, derandomize=TIMES == 0, max_examples=100 * max(TIMES, 1))
settings.load_profile("d3gd")


def examples(count: int) -> settings:
    """For tests whose examples take long: this many of them, and `D3GD_FUZZ` times as many when fuzzing."""
    return settings(max_examples=count * max(TIMES, 1))


@st.composite
def digraphs(draw: st.DrawFn, min_n: int = 1, max_n: int = 12) -> Digraph:
    """Strongly connected digraphs: a cycle through all agents in any order, and any further links."""
    n = draw(st.integers(min_n, max_n))
    order = draw(st.permutations(range(n)))
    agent = st.integers(0, n - 1)
    extra = draw(st.lists(st.tuples(agent, agent), max_size=3 * n))
    return Digraph.from_edges(n, [*zip(order, [*order[1:], order[0]], strict=True), *extra])


@st.composite
def row_stochastic(draw: st.DrawFn, graph: Digraph) -> Any:
    """Weights on a graph, every link and self-loop positive."""
    size = graph.sources.size
    raw = np.array(draw(st.lists(st.floats(0.05, 1.0), min_size=size, max_size=size)))
    return graph.matrix(raw / np.add.reduceat(raw, graph.indptr[:-1])[graph.targets])
