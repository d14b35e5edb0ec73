"""A real data set in the form of a9a, where that is not at hand: the breast cancer data of scikit-learn.

As in a9a, each measurement is replaced by which fifth of all samples it falls into: one of five features is 1, the
others are 0; labels are -1 and +1.
"""

from pathlib import Path

import numpy as np

from d3gd.arrays import Floats, Ints
from d3gd.data import breast_cancer
from d3gd.runs.files import make_folder, write_atomically

ABOUT = (
    "The breast cancer data of scikit-learn in the form of a9a, which itself was not at hand: each measurement is "
    "replaced by which fifth of all samples it falls into."
)
_PARTS = 5


def binarized(X: Floats) -> Ints:
    """Return one feature for each fifth of the values of each column: shape (samples, 5 columns)."""
    cuts = np.quantile(X, np.arange(1, _PARTS) / _PARTS, axis=0)
    fifth = (X[None] > cuts[:, None]).sum(axis=0)
    features: Ints = np.eye(_PARTS, dtype=np.int64)[fifth].reshape(len(X), -1)
    return features


def libsvm(X: Ints, y: Ints) -> str:
    """Return samples with labels 0 and 1 as a text in LIBSVM's format."""
    lines = [
        " ".join([f"{2 * label - 1:+d}", *(f"{place + 1}:{row[place]}" for place in np.flatnonzero(row))])
        for row, label in zip(X, y, strict=True)
    ]
    return "\n".join(lines) + "\n"


def write(folder: Path) -> Path:
    """Write the file to a folder, and return its path."""
    X, y = breast_cancer()
    file = make_folder(folder) / "cancer.libsvm"
    write_atomically(file, libsvm(binarized(X[:, :-1]), y).encode())  # without the constant column
    return file
