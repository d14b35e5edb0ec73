"""The 1,797 handwritten digits that come with scikit-learn."""

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
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise D3GDError("the digits come with scikit-learn; pip install 'd3gd[data]'") from error
    pixels, labels = load_digits(return_X_y=True)
    X = pixels / 16.0
    if constant:
        X = np.hstack([X, np.ones((len(X), 1))])
    return X, labels.astype(np.int64)
