"""The table of partitions in docs/explanation/ranks.md: ``python -m docs.scripts.partition_table`` (seconds)."""

from unittest import mock

import numpy as np

from d3gd import Digraph, graphs
from d3gd.distributed import partition as partitions
from docs.scripts import between

DIVISIONS = 10  # random ones
NETWORKS = {
    "Erdős-Rényi 0.6, n = 20": (graphs.erdos_renyi(20, 0.6, seed=0), 2),
    "Erdős-Rényi 0.1, n = 50": (graphs.erdos_renyi(50, 0.1, seed=0), 4),
    "grid 10 x 10": (graphs.grid(10, 10), 4),
    "random geometric, n = 100": (graphs.random_geometric(100, radius=0.2, seed=0), 4),
    "random geometric, n = 1,000": (graphs.random_geometric(1000, radius=0.12, seed=1), 7),
    "exponential, n = 64": (graphs.exponential(64), 2),
}


def at_random(graph: Digraph, ranks: int) -> float:
    """Return the mean cut of random divisions into equal parts."""
    draw, owner = np.random.default_rng(0), np.arange(graph.n) * ranks // graph.n
    return float(np.mean([partitions.Partition(graph, draw.permutation(owner)).cut for _ in range(DIVISIONS)]))


def main() -> None:
    """Write the table."""
    lines = ["| network | ranks | links | at random | orderings alone | with swaps |", "|---" * 6 + "|"]
    for name, (graph, ranks) in NETWORKS.items():
        with mock.patch.object(partitions, "_REFINED_UP_TO", 0):
            ordered = partitions.partition(graph, ranks).cut
        cuts = (at_random(graph, ranks), ordered, partitions.partition(graph, ranks).cut)
        lines.append(f"| {name} | {ranks} | {graph.link_count:,} | " + " | ".join(f"{cut:,.0f}" for cut in cuts) + " |")
    between.write("explanation/ranks.md", "partitions", "\n".join(lines))


if __name__ == "__main__":
    main()
