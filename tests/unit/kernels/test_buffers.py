"""Buffers are lent to one array at a time."""

import gc

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from d3gd.kernels.buffers import Buffers

VIEWS = (lambda a: a, lambda a: a[1:], lambda a: a[::2, 1:], lambda a: a.T, lambda a: a.reshape(-1)[3:].view(np.uint8))


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(VIEWS)), max_size=30))
def test_what_anyone_can_see_is_never_handed_out_again(steps):
    buffers, kept, array = Buffers(), [], None
    for number, (keep, view) in enumerate(steps):
        array = buffers.empty((4, 5), np.float64)
        array[:] = number
        assert not any(np.shares_memory(array, old) for old, _ in kept)
        if keep:
            kept.append((view(array), view(np.full((4, 5), float(number)))))
    del array
    for found, expected in kept:
        assert np.array_equal(found, expected)


def test_a_buffer_returns_once_the_last_view_is_gone():
    buffers = Buffers()
    array = buffers.empty((4, 5), np.float64)
    address, view = array.ctypes.data, array[2:].T[1:]
    del array
    assert buffers.empty((4, 5), np.float64).ctypes.data != address
    del view
    gc.collect()
    assert address in {buffers.empty((4, 5), np.float64).ctypes.data for _ in range(2)}


def test_small_arrays_are_not_pooled_and_empty_ones_are_allowed():
    buffers = Buffers(least=100)
    assert buffers.empty((3,), np.float64).base is None
    assert Buffers().empty((0, 3), np.float64).shape == (0, 3)
