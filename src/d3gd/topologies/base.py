"""Common parts of topology learning."""

from typing import NamedTuple

import numpy as np

from d3gd.arrays import CSR, Array, Floats
from d3gd.digraph import Digraph
from d3gd.errors import ProblemError


class Topology(NamedTuple):
    """Chosen links and their weights, for ``d3gd.run(method, graph, problem, weights=weights)``.

    Attributes:
        graph: The network.
        weights: Row-stochastic, on the graph's structure.
    """

    graph: Digraph
    weights: CSR


def rows_per_agent(values: Array, what: str, agents: int | None = None) -> Floats:
    """Return one finite row of numbers per agent, or raise an error."""
    try:
        rows = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ProblemError(f"the {what} are not numbers; give one row of numbers for each agent") from None
    if rows.ndim != 2 or rows.size == 0 or (agents is not None and len(rows) != agents):
        needed = "one row of numbers for each agent" if agents is None else f"one row for each of the {agents} agents"
        raise ProblemError(f"the {what} have shape {rows.shape}; give {needed}")
    if not np.isfinite(rows).all():
        agent = int(np.argwhere(~np.isfinite(rows))[0, 0])
        raise ProblemError(f"the {what} of agent {agent} hold NaN or infinite numbers; give finite ones")
    return rows
