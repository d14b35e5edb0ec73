"""Real data sets from scikit-learn, without downloads."""

from typing import Any

import numpy as np

from d3gd.arrays import Floats, Ints
from d3gd.errors import D3GDError


def digits(*, constant: bool = True) -> tuple[Floats, Ints]:
    """Images of 8 x 8 pixels between 0 and 1, and the digits they show.

    Args:
        constant: Append a column of ones, the intercept of a linear model.

    Returns:
        Features of shape (1797, 65), or (1797, 64) without the constant, and labels 0 to 9.

    Reference:
        Alpaydin and Kaynak, "Optical recognition of handwritten digits", UCI repository, 1998.
    """
    pixels, labels = _datasets().load_digits(return_X_y=True)
    X = pixels / 16.0
    return (_with_constant(X) if constant else X), labels.astype(np.int64)


def breast_cancer() -> tuple[Floats, Ints]:
    """Measurements of cell nuclei, standardized, with a constant column: shape (569, 31), labels 0 and 1.

    Reference:
        Wolberg, Mangasarian, Street and Street, "Breast cancer Wisconsin (diagnostic)", UCI repository, 1995.
    """
    return _standardised(*_datasets().load_breast_cancer(return_X_y=True))


def wine() -> tuple[Floats, Ints]:
    """Chemical analyses of wines, standardized, with a constant column: shape (178, 14), labels 0 to 2.

    Reference:
        Aeberhard and Forina, "Wine", UCI repository, 1991.
    """
    return _standardised(*_datasets().load_wine(return_X_y=True))


def _datasets() -> Any:
    try:
        from sklearn import datasets
    except ImportError as error:
        raise D3GDError(
            "these data come with scikit-learn; pip install 'd3gd[data]', in a clone pip install '.[data]'"
        ) from error
    return datasets


def _standardised(X: Floats, y: Ints) -> tuple[Floats, Ints]:
    return _with_constant((X - X.mean(axis=0)) / X.std(axis=0)), y.astype(np.int64)


def _with_constant(X: Floats) -> Floats:
    return np.hstack([X, np.ones((len(X), 1))])
