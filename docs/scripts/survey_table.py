"""The table of docs/explanation/discovery.md on what it costs agents to find out the whole network.

python -m docs.scripts.survey_table (seconds).
"""

from math import log

import d3gd
from d3gd.comparison.scenario import amount
from d3gd.network import Network
from docs.scripts import between

SIZES = (20, 300, 2000)
MODEL = 1000  # numbers
GRAPHS = {
    "ring, one-way": d3gd.graphs.ring,
    "exponential": d3gd.graphs.exponential,
    "Erdős-Rényi, p = 2 ln n / n": lambda n: d3gd.graphs.erdos_renyi(n, 2 * log(n) / n, seed=0),
    "random geometric": lambda n: d3gd.graphs.random_geometric(n, 1.5 * (log(n) / n) ** 0.5, seed=0),
}


def row(name: str, graph: d3gd.Digraph) -> str:
    """Return the costs on a graph, as a row of the table."""
    net = Network(graph, d3gd.weights.metropolis(graph), needs="in-neighbours")
    counts = graph.n, graph.link_count, net.survey().rounds
    numbers = net.bytes_sent / 8 / graph.link_count
    iterations = numbers / (MODEL + graph.n)
    cells = name, *(f"{count:,}" for count in counts), f"{numbers:,.0f}", amount(net.bytes_sent), f"{iterations:.2g}"
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Write the table."""
    header = [
        "| network | n | links | rounds | numbers per link | bytes in all | iterations of Di-DGD |",
        "|" + 7 * "---|",
    ]
    rows = [row(name, graph(n)) for name, graph in GRAPHS.items() for n in SIZES]
    between.write("explanation/discovery.md", "survey", "\n".join([*header, *rows]))


if __name__ == "__main__":
    main()
