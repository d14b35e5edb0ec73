"""The problem of a site that has its data in a table: ``kind = "own_table"``."""

from typing import Any

from d3gd.arrays import Ints


def own_table(
    *,
    file: str,
    classes: int,
    label: str = "label",
    test: str | None = None,
    regularization: float = 1e-3,
    batch: int | None = None,
    seed: int = 0,
    block: Ints | None = None,
) -> Any:
    """Return softmax regression on a table that only this site has.

    Args:
        file: A .csv file with a header, or a .npz file; see ``d3gd.data.read_table``.
        classes: The number of classes at all sites together.
        label: The column, or the array, that holds the classes 0, 1, ...
        test: A file of the same kind, for the accuracy.
        regularization: Factor of half the squared norm.
        batch: Samples for a gradient; by default all.
        seed: Key of the mini-batches.
        block: The site's index.
    """
    from d3gd.data import read_table
    from d3gd.problems import softmax_regression

    held_out = None if test is None else read_table(test, label=label)
    return softmax_regression(
        [read_table(file, label=label)],
        regularization=regularization,
        batch=batch,
        seed=seed,
        test=held_out,
        classes=classes,
        agent_ids=block,
    )
