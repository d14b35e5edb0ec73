"""Figure 2: the weights that D3GD learns on four agents, of which A is the outlier."""
from collections.abc import Sequence
from typing import Any
import numpy as np
from d3gd import problems
from d3gd.experiments import GLOBAL, ITERATIONS, REFINED, STYLE, Trial, run_trial
from d3gd.graphs import Digraph

LABELS = "ABCD"
EDGES = ("AC", "CD", "DB", "BA", "AB")
ALPHA = (0.1, 100.0, 100.0, 100.0)

def network() -> Digraph:
    """Return the graph A -> C -> D -> B with A and B linked both ways."""
    return Digraph.from_edges(len(LABELS), [[LABELS.index(end) for end in edge] for edge in EDGES], LABELS)

def trial(seed: int, iterations: int = ITERATIONS) -> Trial:
    """Run both variants of D3GD on the data of a seed."""
    problem = problems.sigmoid_classification(agents=len(LABELS), alpha=ALPHA, seed=seed, test_samples=0)
    return run_trial(seed, network(), problem, REFINED, iterations=iterations, every=iterations)
