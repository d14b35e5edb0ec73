"""A network, weights or data from a user's files, by the names that a settings file has for them."""

import csv
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.sparse import load_npz

from d3gd.arrays import CSR, Floats
from d3gd.digraph import Digraph
from d3gd.errors import D3GDError, GraphError, WeightsError
from d3gd.problems import Problem
from d3gd.weights import check


def edges(*, n: int | None = None, edges: Sequence[Sequence[int]] | None = None, file: str | None = None) -> Digraph:
    """Return the graph with these links.

    Args:
        n: The number of agents; by default just enough for the links.
        edges: Pairs (source, target): the target listens to the source.
        file: Or a CSV file with the columns ``source`` and ``target``, which hold the numbers 0, 1, ... or names.

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
        return _read_links(Path(file), n)
    pairs = [list(pair) for pair in edges or []]
    size = n if n is not None else 1 + max((agent for pair in pairs for agent in pair), default=0)
    return Digraph.from_edges(size, pairs)


def links_among(graph: Digraph, file: str) -> Digraph:
    """Return a graph on the agents of another one, by their names if they have any.

    Args:
        graph: The graph whose agents they are.
        file: A CSV file as for :func:`edges`.
    """
    found = _read_links(Path(file), None)
    if found.labels is None:
        pairs = found.edges.tolist()
    else:
        number = {name: i for i, name in enumerate(graph.labels or map(str, range(graph.n)))}
        strangers = [name for name in found.labels if name not in number]
        if strangers:
            raise GraphError(f"{file} speaks of {strangers[0]!r}, which is no agent of the network; correct the name")
        pairs = [[number[found.labels[agent]] for agent in pair] for pair in found.edges.tolist()]
    try:
        return Digraph.from_edges(graph.n, pairs, graph.labels)
    except GraphError as error:
        raise GraphError(f"{file}: {error}") from None


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
    try:
        return check(matrix, graph)
    except D3GDError as error:
        raise WeightsError(f"{path}: {error}") from None


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
        agents: See ``d3gd.problems.label_skewed_classification`` for this and all that follows.
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


def _read_links(path: Path, n: int | None) -> Digraph:
    pairs: list[tuple[str, str]] = []
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, skipinitialspace=True)
            for name in ("source", "target"):
                if name not in (reader.fieldnames or []):
                    columns = ", ".join(reader.fieldnames or []) or "none"
                    raise GraphError(f"{path} has no column {name!r}; its first line has {columns}")
            for row in reader:
                source, target = (row["source"] or "").strip(), (row["target"] or "").strip()
                if not source or not target:
                    raise GraphError(f"{path}, line {reader.line_num}: a source or target is missing; fill it in")
                pairs.append((source, target))
    except OSError as error:
        raise GraphError(f"{path} cannot be read ({error.strerror}); give a CSV file of source,target rows") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise GraphError(f"{path} cannot be read as CSV ({error}); save it as UTF-8 text") from error
    if not pairs:
        raise GraphError(f"{path} has no links; give one source,target row for each")
    names = list(dict.fromkeys(name for pair in pairs for name in pair))
    try:
        if all(name.isdecimal() for name in names):
            numbers = [(int(source), int(target)) for source, target in pairs]
            return Digraph.from_edges(1 + max(map(max, numbers)) if n is None else n, numbers)
        if n is not None and n != len(names):
            raise GraphError(f"n = {n} but {len(names)} names appear; leave n out, or give every agent a link")
        number = {name: i for i, name in enumerate(names)}
        return Digraph.from_edges(len(names), [(number[s], number[t]) for s, t in pairs], names)
    except GraphError as error:
        raise GraphError(f"{path}: {error}") from None


def _read_sparse(path: Path) -> CSR:
    try:
        return load_npz(path)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise WeightsError(f"{path} cannot be read ({error}); write it with scipy.sparse.save_npz") from error


def _read_dense(path: Path) -> Floats:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
        rows = [[float(value) for value in line.split(",")] for line in lines if line.strip()]
    except (OSError, ValueError) as error:
        raise WeightsError(f"{path} cannot be read ({error}); write n rows of n numbers, without a header") from error
    if not rows or any(len(row) != len(rows) for row in rows):
        lengths = sorted({len(row) for row in rows})
        raise WeightsError(f"{path} has {len(rows)} rows of {lengths} numbers; give n rows of n numbers")
    return np.array(rows)
