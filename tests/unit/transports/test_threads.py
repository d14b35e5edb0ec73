"""Ranks that are threads."""

import numpy as np
import pytest

from d3gd.errors import D3GDError, TransportError
from d3gd.transports.threads import on_threads


def test_every_rank_hears_every_other():
    found = on_threads(3, lambda rank: [part.tolist() for part in rank.gather(np.full(2, rank.rank), [2, 2, 2])])
    assert found == [[[0, 0], [1, 1], [2, 2]]] * 3


def test_an_error_of_one_rank_is_raised():
    def work(rank):
        if rank.rank == 1:
            raise D3GDError("a reason")
        return rank.each(np.zeros(1))

    with pytest.raises(D3GDError, match="a reason"):
        on_threads(2, work, timeout=0.2)


def test_a_rank_that_says_something_else_is_noticed():
    with pytest.raises(TransportError):
        on_threads(2, lambda rank: rank.each(np.zeros(1 + rank.rank)), timeout=0.2)


def test_a_rank_that_is_late_is_noticed():
    with pytest.raises(TransportError):
        on_threads(2, lambda rank: rank.rank or rank.each(np.zeros(1)), timeout=0.2)
