"""The file with the weights over time."""

from pathlib import Path

import numpy as np

from d3gd.arrays import CSR, Array
from d3gd.runs import files

_WHOLE = ("iterations", "sources", "targets", "bytes")  # arrays of whole numbers


def parsed(path: Path, held: bytes, weights: CSR) -> dict[str, Array]:
    """Return the arrays of a history, or raise an error unless they fit each other and the final weights.

    Args:
        path: The file, for messages.
        held: Its content.
        weights: The final weights.
    """
    found = files.read_arrays(path, held)
    rows, entries, n = len(found["iterations"]), weights.nnz, weights.shape[0]
    shapes = {"iterations": (rows,), "weights": (rows, entries), "sources": (entries,), "targets": (entries,)}
    if "losses" in found:
        shapes["losses"] = (rows, n)
    if "class_proportions" in found:
        shapes["class_proportions"] = (n, np.shape(found["class_proportions"])[-1])
    if "bytes" in found:
        shapes["bytes"] = (rows, entries)
    for name, shape in shapes.items():
        array = found[name]
        if array.shape != shape or array.dtype.kind not in ("iu" if name in _WHOLE else "f"):
            raise ValueError(f"{path.name} has {name} of {array.dtype} and shape {array.shape} instead of {shape}")
    ends = np.concatenate([found["sources"], found["targets"]])
    if rows == 0 or ends.min() < 0 or ends.max() >= n:
        raise ValueError(f"{path.name} does not belong to a network of {n} agents")
    return {name: found[name] for name in shapes}
