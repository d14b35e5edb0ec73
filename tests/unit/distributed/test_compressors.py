"""Compressors contract, count their bytes, and treat every row by itself."""

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from d3gd.distributed.compressors import BF16, Int4, Int8, TopK, compressor, decoded, encoded
from d3gd.errors import SettingsError

BOUNDS = {
    Int8(): 256 / 254**2,
    Int4(): 1 / 4,
    BF16(): 2.0**-16,
    TopK(0.1): 0.9,
    TopK(0.5): 0.5,
    TopK(1.0): 2.0**-40,
}
# Beyond these, single precision has no such numbers, or fewer digits.
NUMBERS = st.floats(-1e30, 1e30).map(lambda x: x if abs(x) > 1e-25 else 0.0)
ROWS = hnp.arrays(np.float64, st.tuples(st.integers(1, 3), st.integers(1, 600)), elements=NUMBERS)


@pytest.mark.parametrize("by", BOUNDS, ids=str)
@given(rows=ROWS)
def test_what_is_lost_is_a_fraction_of_what_was_there(by, rows):
    back = decoded(by, encoded(by, rows), rows.shape[1])
    lost = np.square(rows - back).sum(axis=1)
    assert (lost <= (BOUNDS[by] + 1e-6) * np.square(rows).sum(axis=1)).all()


@pytest.mark.parametrize("by", BOUNDS, ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_row_does_not_depend_on_others_and_repeated_differences_arrive(by, dtype):
    rows = np.random.default_rng(0).normal(size=(4, 300)).astype(dtype) ** 3
    whole = encoded(by, rows)
    assert all(np.array_equal(encoded(by, row[None])[0], message) for row, message in zip(rows, whole, strict=True))
    copy = np.zeros_like(rows)
    for _ in range(200):
        copy = copy + decoded(by, encoded(by, rows - copy), 300).astype(dtype)
    np.testing.assert_allclose(copy, rows, rtol=0, atol=1e-6 if dtype == np.float32 else 1e-13)


@pytest.mark.parametrize(
    ("by", "width", "size"),
    [
        *((Int8(), 300, 300 + 2 * 4), (Int8(), 1, 5), (Int4(), 300, 150 + 5 * 2), (Int4(), 301, 151 + 5 * 2)),
        *((BF16(), 300, 600), (TopK(0.01), 300, 3 * 8), (TopK(0.01), 20, 8)),
    ],
)
def test_bytes(by, width, size):
    assert encoded(by, np.ones((2, width))).shape == (2, size)


def test_what_is_not_finite_stays_visible():
    for by in (Int8(), Int4(), BF16()):  # top-k may leave NaN with its sender, who has diverged
        with np.errstate(all="ignore"):
            back = decoded(by, encoded(by, np.array([[1.0, np.nan], [np.inf, 0.0]])), 2)
        assert not np.isfinite(back).all(axis=1).any()


@pytest.mark.parametrize("given", ["int2", "topk", "topk:x", "topk:0", "topk:1.5", "int8:3", 8, None, Int8, object()])
def test_others_are_refused(given):
    with pytest.raises(SettingsError, match="topk"):
        compressor(given)


def test_a_compressor_of_ones_own_is_told_what_it_returned():
    class Wrong:
        damping = 1.0

        def encode(self, rows):
            return rows

        def decode(self, message, width):
            return message

    own = compressor(Wrong())
    with pytest.raises(SettingsError, match=r"Wrong.encode returned float64 of shape \(2, 3\); return uint8"):
        encoded(own, np.ones((2, 3)))
    with pytest.raises(SettingsError, match=r"Wrong.decode returned uint8 of shape \(2, 3\); return floats of shape"):
        decoded(own, np.ones((2, 3), dtype=np.uint8), 3)
    Wrong.damping = 0.0
    with pytest.raises(SettingsError, match=r"damping = 0\.0 of Wrong"):
        compressor(own)
