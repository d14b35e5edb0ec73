"""The table of weights on large networks in docs/explanation/perron.md: ``python -m docs.scripts.mixing_table``.

Ten minutes, most of them for the gap of the largest grid. N is estimated by random signs: what is left of them in 1,000
rounds of mixing.
"""

import time
from collections.abc import Callable, Mapping

import networkx as nx
import numpy as np
from threadpoolctl import threadpool_limits

from d3gd import Digraph, graphs, weights
from d3gd.arrays import CSR
from d3gd.spectrum import perron, spectral_gap
from d3gd.steady.fast import fast_weights
from docs.scripts import between

SIZES = (301, 1000, 10_000)
LARGEST, SLOW = 100_000, ("grid", "bridge")  # a size for networks that mix slowly
_SIGNS, _ROUNDS = 8, 1000


def bridge(n: int) -> Digraph:
    """Two random groups, each strongly connected by a ring, joined by one link each way."""
    rng, half, links = np.random.default_rng(0), n // 2, set()
    for first in (0, half):
        for i in range(half):
            others = {int(j) for j in rng.integers(0, half, 6)} | {(i + 1) % half}
            links |= {(first + i, first + j) for j in others - {i}}
    return Digraph.from_edges(2 * half, sorted(links | {(0, half), (half, 0)}))


def hubs(n: int) -> Digraph:
    """Preferential attachment, two links each."""
    pairs = nx.barabasi_albert_graph(n, 2, seed=0).edges
    return Digraph.from_edges(n, [link for i, j in pairs for link in ((i, j), (j, i))])


NETWORKS: Mapping[str, Callable[[int], Digraph]] = {
    "geometric": lambda n: graphs.random_geometric(n, radius=1.7 * np.sqrt(np.log(n) / (np.pi * n)), seed=0),
    "grid": lambda n: graphs.grid(int(np.sqrt(n)), n // int(np.sqrt(n))),
    "Erdos-Renyi": lambda n: graphs.erdos_renyi(n, 2.5 * np.log(n) / n, seed=0),
    "hubs": hubs,
    "bridge": bridge,
}


def noise(A: CSR) -> float:
    """Return the noise that passes, per agent."""
    n, pi = A.shape[0], perron(A)
    models = np.random.default_rng(12345).choice([-1.0, 1.0], size=(n, _SIGNS)) / (n * pi)[:, None]
    total = 0.0
    for _ in range(_ROUNDS):
        models = A @ models
        total += float(np.sum((models - models.mean(axis=0)) ** 2))
    return total / (n * _SIGNS)


def row(name: str, graph: Digraph) -> str:
    """Return what a plan changes on one network, as a row of the table."""
    before = weights.balanced(graph)
    start = time.process_time()
    after = graph.matrix(fast_weights(graph))
    seconds = time.process_time() - start
    gaps, passed = (" → ".join(f"{measure(A):.2g}" for A in (before, after)) for measure in (spectral_gap, noise))
    least = " → ".join(f"{graph.n * perron(A).min():.2f}" for A in (before, after))
    return f"| {name} | {graph.n:,} | {gaps} | {passed} | {least} | {seconds:.1f} |"


def main() -> None:
    """Write the table."""
    header = ["| network | n | gap | N / n | n min π | seconds |", "|---|---|---|---|---|---|"]
    sizes = {name: (*SIZES, LARGEST) if name in SLOW else SIZES for name in NETWORKS}
    with threadpool_limits(1, "blas"):  # as in a run
        rows = [row(name, make(n)) for name, make in NETWORKS.items() for n in sizes[name]]
    between.write("explanation/perron.md", "mixing", "\n".join([*header, *rows]))


if __name__ == "__main__":
    main()
