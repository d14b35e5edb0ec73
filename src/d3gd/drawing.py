"""Networks drawn with matplotlib, and where their agents are: computed so that a network always looks the same."""

import math
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from d3gd.arrays import CSR, Ints
from d3gd.errors import GraphError
from d3gd.validation import one_line, patience

if TYPE_CHECKING:
    from d3gd.digraph import Digraph

_DENSE = 0.3  # share of all possible links above which no layout untangles them and a circle is clearest
_BY_DISTANCE = 100  # agents up to which distances are fitted; its cost grows with their square
_NAMED = 60  # agents up to which names are written


def places(n: int, sources: Ints, targets: Ints) -> list[list[float]]:
    """Return a point in the unit square for every agent: neighbours are near each other, dense networks in a circle."""
    import networkx as nx

    graph: Any = nx.Graph()
    graph.add_nodes_from(range(n))
    graph.add_edges_from((int(j), int(i)) for j, i in zip(sources, targets, strict=True) if i != j)
    circle = nx.circular_layout(graph)
    if n < 4 or graph.number_of_edges() > _DENSE * n * (n - 1) / 2:
        found = circle
    elif n <= _BY_DISTANCE and nx.is_connected(graph):
        found = nx.kamada_kawai_layout(graph, pos=circle)
    else:
        found = nx.spring_layout(graph, pos=circle, seed=0, iterations=100)
    points = np.array([found[i] for i in range(n)], dtype=np.float64).reshape(n, 2)
    low, high = points.min(axis=0), points.max(axis=0)
    span = float((high - low).max()) or 1.0
    drawn: list[list[float]] = np.round(0.5 + (points - (low + high) / 2) / span, 4).tolist()
    return drawn


def order(n: int, sources: Ints, targets: Ints) -> list[int]:
    """Return the agents in an order in which neighbours are near each other, for a matrix."""
    links = csr_array((np.ones(len(sources)), (targets, sources)), shape=(n, n))
    both = csr_array(links + links.T)
    return [int(i) for i in reverse_cuthill_mckee(both, symmetric_mode=True)]


def widest(links: int) -> float:
    """Return the width of the largest weight, in points: the more links there are, the thinner they have to be.

    Example:
        >>> widest(10), widest(169), widest(100_000)
        (4.0, 2.0, 0.7)
    """
    return max(0.7, min(4.0, 26 / math.sqrt(max(1, links))))


def draw(graph: "Digraph", weights: CSR | None = None, ax: Any = None) -> Any:
    """Draw a network; see :meth:`d3gd.Digraph.draw`."""
    from matplotlib.patches import FancyArrowPatch

    values = np.ones(graph.sources.size) if weights is None else _on(graph, weights)
    links = graph.sources != graph.targets
    patience(f"a drawing of {graph.link_count:,} links", 3e5 * graph.link_count, "look at its matrix, d3gd report")
    axes = new_axes() if ax is None else ax
    points = np.array(places(graph.n, graph.sources, graph.targets)) * [1, -1] + [0, 1]  # as in a report, y points up
    largest = float(np.abs(values[links]).max(initial=0)) or 1.0
    size, wide = min(320.0, 5000 / graph.n), widest(graph.link_count)
    for j, i, value in zip(graph.sources[links], graph.targets[links], values[links], strict=True):
        if value == 0:
            continue
        share = abs(value) / largest
        axes.add_patch(
            FancyArrowPatch(
                points[j],
                points[i],
                connectionstyle="arc3,rad=0.12",
                arrowstyle="-|>",
                mutation_scale=6 + 4 * share,
                linewidth=0.6 if weights is None else wide * share,
                color="#0072B2",
                alpha=0.6,
                shrinkA=size**0.5 / 2,
                shrinkB=size**0.5 / 2,
                gid=f"link-{j}-{i}",
            )
        )
    axes.scatter(*points.T, s=size, color="#E69F00", edgecolors="black", linewidths=0.8, zorder=3)
    if graph.n <= _NAMED:
        for i, point in enumerate(points):
            name = str(i) if graph.labels is None else one_line(graph.labels[i]).replace("$", r"\$")
            axes.annotate(name, point, ha="center", va="center", fontsize=8, zorder=4)
    axes.set(xlim=(-0.08, 1.08), ylim=(-0.08, 1.08), aspect="equal")
    axes.axis("off")
    return axes


def new_figure(width: float, height: float, **settings: Any) -> Any:
    """Return a new figure, which pyplot knows nothing of, so that nobody needs to close it; a notebook shows it."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(width, height), layout="constrained", **settings)
    FigureCanvasAgg(figure)
    figure._repr_png_ = partial(_png, figure)
    return figure


def new_axes() -> Any:
    """Return axes of a new figure, which a notebook shows as well."""
    figure = new_figure(5.0, 5.0)
    axes = figure.subplots()
    axes._repr_png_ = figure._repr_png_
    return axes


def _png(figure: Any) -> bytes:
    """Return a figure as a notebook shows it."""
    content = BytesIO()
    figure.savefig(content, format="png", dpi=100)
    return content.getvalue()


def _on(graph: "Digraph", weights: CSR) -> Any:
    """Return the weights of a graph's links and self-loops, in their order."""
    matrix = csr_array(weights)
    if matrix.shape != (graph.n, graph.n):
        raise GraphError(f"the weights are of shape {matrix.shape}, the graph has {graph.n} agents; give its own")
    return np.asarray(matrix[graph.targets, graph.sources], dtype=np.float64).ravel()
