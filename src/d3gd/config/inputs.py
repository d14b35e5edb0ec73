"""Networks, weights and data from users' files, by their kinds in a settings file."""

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array

from d3gd import reading
from d3gd.arrays import CSR, Floats, Ints
from d3gd.digraph import Digraph
from d3gd.errors import D3GDError, GraphError, WeightsError
from d3gd.problems import Problem
from d3gd.validation import plain, shortened, shown
from d3gd.weights import check

_LINKS = "a CSV file of source,target rows, as UTF-8 text"
_DENSE = "a CSV file of n rows of n numbers, without a header"
_GAPS = 10_000  # up to this number of agents, most may have no link


def edges(*, n: int | None = None, edges: Sequence[Sequence[int]] | None = None, file: str | None = None) -> Digraph:
    """Return the graph with these links.

    Args:
        n: The number of agents; by default just enough for the links.
        edges: Pairs (source, target): the target receives from the source.
        file: Or a CSV file with the columns ``source`` and ``target``, which hold indices 0, 1, ... or names. A column
            ``weight`` gives the initial weights, unless others are chosen: see :func:`edge_weights`.

    Returns:
        The graph; names become the agents' labels, in the order in which they appear.

    Example:
        >>> edges(edges=[[0, 1], [1, 2], [2, 0]])
        Digraph(n=3, links=3)
    """
    if (edges is None) == (file is None):
        found = "neither" if edges is None else "both"
        raise GraphError(f"edges and file: found {found}; give exactly one, a list of pairs or a CSV file")
    if file is not None:
        return _graph_of(_read_links(Path(file)), Path(file), n)
    pairs = [list(pair) for pair in edges or []]
    return Digraph.from_edges(_size(pairs) if n is None else n, pairs)


def has_weights(file: str) -> bool:
    """Whether a file of links has a column ``weight``; one that cannot be read has none."""
    with suppress(GraphError):
        return _read_links(Path(file))[0].weight is not None
    return False


def edge_weights(graph: Digraph, file: str) -> CSR:
    r"""Return the weights in a file of links; each agent's weight on itself is the remainder to one.

    .. math::
        A_{ij} = \text{weight of } j \to i, \qquad A_{ii} = 1 - \sum_{j \ne i} A_{ij}

    A row from an agent to itself sets :math:`A_{ii}` instead.

    Args:
        graph: The graph read from the file.
        file: A CSV file with the columns ``source``, ``target`` and ``weight``.

    Returns:
        The weights on the graph's structure.
    """
    path, links = Path(file), _read_links(Path(file))
    if links[0].weight is None:
        raise WeightsError(f"{path} has no column 'weight'; add it, or choose other weights")
    with _about(path, WeightsError):
        given: dict[tuple[int, int], float] = {}
        for link, (source, target) in zip(links, _agents(graph, links).tolist(), strict=True):
            value = _weight(link)
            if given.setdefault((target, source), value) != value:
                raise WeightsError(f"line {link.line} repeats a link with a different weight; keep one")
        heard = np.bincount([target for target, _ in given], list(given.values()), minlength=graph.n)
        for i in [i for i in range(graph.n) if (i, i) not in given]:
            if not heard[i] < 1:
                raise WeightsError(
                    f"the weights of the links into {graph.name(i)} sum to {heard[i]:g}; they must sum to less than 1, "
                    "since the remainder is its weight on itself"
                )
            given[i, i] = 1 - heard[i]
        rows, columns = np.array(list(given)).T
        return check(coo_array((list(given.values()), (rows, columns)), shape=(graph.n, graph.n)), graph)


def links_among(graph: Digraph, file: str) -> Digraph:
    """Return a graph on the agents of another graph, identified by their names if they have any.

    Args:
        graph: The graph that defines the agents.
        file: A CSV file as for :func:`edges`.
    """
    links = _read_links(Path(file))
    with _about(file, GraphError):
        return Digraph.from_edges(graph.n, _agents(graph, links), graph.labels)


def weights_file(graph: Digraph, file: str) -> CSR:
    """Return weights read from a file and checked against the graph.

    Args:
        graph: The graph.
        file: A .npz file written by ``scipy.sparse.save_npz``, or a .csv file with n rows of n numbers, no header.

    Returns:
        The weights on the graph's structure.
    """
    path = Path(file)
    readers = {".npz": _read_sparse, ".csv": _read_dense}
    if path.suffix.lower() not in readers:
        raise WeightsError(f"{path} ends in {path.suffix!r}; give a .npz file (scipy.sparse.save_npz) or a .csv file")
    matrix = readers[path.suffix.lower()](path)
    with _about(path, WeightsError):
        return check(matrix, graph)


def softmax_table(
    *,
    file: str,
    label: str = "label",
    agents: int = 20,
    alpha: float | Sequence[float] = 0.1,
    seed: int = 0,
    regularization: float = 1e-3,
    batch: int | None = None,
    test_fraction: float = 0.2,
) -> Problem:
    """Return softmax regression on a user's table, divided among the agents with label skew.

    Args:
        file: A .csv file with a header, or a .npz file; see ``d3gd.data.read_table``.
        label: The column, or the array, that holds the classes 0, 1, ...
        agents: Number of agents; see ``d3gd.problems.label_skewed_classification``, also for the other arguments.
        alpha: Dirichlet concentration of the agents' class proportions.
        seed: Key of the division and of the mini-batches.
        regularization: Factor of half the squared norm.
        batch: Samples for a gradient; by default all.
        test_fraction: Share of the samples held out for the accuracy.

    Returns:
        The problem.
    """
    from d3gd.data import read_table
    from d3gd.problems import label_skewed_classification

    X, y = read_table(file, label=label)
    return label_skewed_classification(
        X,
        y,
        agents=agents,
        alpha=alpha,
        seed=seed,
        regularization=regularization,
        batch=batch,
        test_fraction=test_fraction,
    )


class _Link(NamedTuple):
    """A row of a file of links."""

    line: int
    source: str
    target: str
    weight: str | None


def _read_links(path: Path) -> list[_Link]:
    header, rows = reading.table(path, _LINKS, error=GraphError)
    for name in ("source", "target"):
        if name not in header:
            raise GraphError(f"{path} has no column {name!r}; its first line has {shown(header)[1:-1] or 'none'}")
    places = [header.index(name) for name in ("source", "target")]
    weight = header.index("weight") if "weight" in header else None
    links = []
    for line, row in rows:
        source, target = (row[place].strip() if place < len(row) else "" for place in places)
        if not source or not target:
            raise GraphError(f"{path}, line {line}: a source or target is missing; fill it in")
        value = None if weight is None else row[weight].strip() if weight < len(row) else ""
        links.append(_Link(line, source, target, value))
    if not links:
        raise GraphError(f"{path} has no links; give one source,target row for each")
    return links


def _graph_of(links: Sequence[_Link], path: Path, n: int | None) -> Digraph:
    """Return the graph of a file's links, whose agents have indices or names."""
    names = list(dict.fromkeys(name for link in links for name in (link.source, link.target)))
    with _about(path, GraphError):
        if _numbered(names):
            pairs = [(_agent(link.source), _agent(link.target)) for link in links]
            return Digraph.from_edges(_size(pairs) if n is None else n, pairs)
        if n is not None and n != len(names):
            raise GraphError(f"n = {n} but {len(names)} names appear; leave n out, or give every agent a link")
        number = {name: i for i, name in enumerate(names)}
        return Digraph.from_edges(len(names), [(number[link.source], number[link.target]) for link in links], names)


def _agents(graph: Digraph, links: Sequence[_Link]) -> Ints:
    """Return the links of a file as pairs of a graph's agents, (links, 2)."""
    names = [name for link in links for name in (link.source, link.target)]
    labels: Iterable[str] = map(str, range(graph.n))
    if _numbered(names):
        names = [str(_agent(name)) for name in names]
    elif graph.labels is not None:
        labels = graph.labels
    number = {name: i for i, name in enumerate(labels)}
    strangers = [name for name in names if name not in number]
    if strangers:
        raise GraphError(f"{shown(strangers[0])} is not an agent of the network; correct the name")
    return np.array([number[name] for name in names]).reshape(-1, 2)


def _numbered(names: Iterable[str]) -> bool:
    return all(name.isdecimal() for name in names)


def _agent(name: str) -> int:
    if len(name) > 18:  # beyond 64 bits
        raise GraphError(f"an agent has a number of {len(name):,} digits; number the agents 0, 1, 2, ... or name them")
    return int(name)


def _size(pairs: Sequence[Sequence[Any]]) -> int:
    """Return the number of agents, or raise an error if most of them have no link."""
    agents = [plain(agent) for pair in pairs for agent in pair]
    if not all(type(agent) is int for agent in agents):
        raise GraphError("edges must hold agents; give pairs of whole numbers, 0 or more")
    n = 1 + max(agents, default=0)
    if n > max(_GAPS, 2 * len(pairs)):
        raise GraphError(
            f"agents go up to {shown(n - 1)}, but {len(pairs)} links name {len(set(agents))} only; number the "
            "agents 0, 1, 2, ... without gaps, or give them names in a file"
        )
    return n


def _weight(link: _Link) -> float:
    with suppress(ValueError):
        value = reading.number(link.weight or "")
        if math.isfinite(value):
            return value
    raise WeightsError(f"line {link.line}: the weight is {shown(link.weight)}; give every link a number")


@contextmanager
def _about(path: str | Path, error: type[D3GDError]) -> Iterator[None]:
    """Add the file to errors."""
    try:
        yield
    except D3GDError as cause:
        raise error(f"{path}: {cause}") from None


def _read_sparse(path: Path) -> CSR:
    return reading.csr(path, "a CSR matrix that scipy.sparse.save_npz wrote", error=WeightsError)


def _read_dense(path: Path) -> Floats:
    found = reading.rows(path, _DENSE, error=WeightsError)
    try:
        rows = [[reading.number(value) for value in row] for _, row in found]
    except ValueError as error:
        raise WeightsError(f"{path} cannot be read ({shortened(str(error))}); give {_DENSE}") from error
    lengths = sorted({len(row) for row in rows})
    if lengths != [len(rows)]:
        raise WeightsError(f"{path} has {len(rows)} rows of {shown(lengths)} numbers; give n rows of n numbers")
    return np.array(rows)
