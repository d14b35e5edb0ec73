"""Rows on a device compute what NumPy's arrays compute, in the same precision and with the same bits."""

import numpy as np
import pytest
import torch

from d3gd.kernels import tensors
from d3gd.kernels.plain import Plain
from d3gd.kernels.tensors import DeviceRows

X = np.random.default_rng(0).normal(size=(1, 37))
Y = np.array([[0.3]])

EQUATIONS = {
    "numbers": lambda x, y: 0.7 * x - x / 3 + 1 / (x * x + 2) - (-x),
    "an agent's number": lambda x, y: x - 0.1 * (x / (3 * y)) + y * x - y,
    "in single precision": lambda x, y: x * y.astype(np.float32) + np.float32(0.1),
    "a number of NumPy's": lambda x, y: x * y[0, 0] - np.float64(0.1) * x,
    "whole numbers": lambda x, y: x * np.array([[3]]) + np.int64(2) - 2 * x,
    "precision": lambda x, y: np.subtract(x, 0.3 * x, dtype=np.float64) + x.astype(np.float64),
    "back": lambda x, y: (x * y).astype(x.dtype) * x,
    "zeros": lambda x, y: x - np.zeros_like(x, dtype=np.float64) + np.zeros_like(x),
    "bounds": lambda x, y: np.maximum(x, 0) - np.minimum(x, 0.5 * y) + abs(x) + np.square(x),
    "an array": lambda x, y: x + X,
    "more of NumPy": lambda x, y: np.where(x > 0, x, np.tanh(x)) + np.clip(x, -1, 1) + x.sum(axis=1) + x[:, :1],
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", EQUATIONS)
def test_arithmetic_is_numpy_s(name, dtype):
    x = X.astype(dtype)
    expected, found = EQUATIONS[name](x, Y), EQUATIONS[name](DeviceRows(torch.tensor(x)), Y)
    assert isinstance(found, DeviceRows)
    assert found.dtype == expected.dtype
    assert np.array_equal(np.asarray(found), expected)


def test_roots_and_powers_agree_to_rounding():
    x = np.abs(X)
    rows = DeviceRows(torch.tensor(x))
    for function in (np.sqrt, np.exp, np.log, lambda x: x**2.5):
        assert isinstance(function(rows), DeviceRows)
        np.testing.assert_allclose(np.asarray(function(rows)), function(x), rtol=1e-15)


def test_results_may_be_written_in_place_but_not_into_a_copy():
    rows = DeviceRows(torch.tensor(X))
    kept = rows.copy()
    rows += 1
    rows[:, :2] = Y
    np.multiply(rows, 2, out=rows)
    expected = 2 * (X + 1)
    expected[:, :2] = 2 * Y
    assert np.array_equal(np.asarray(rows), expected)
    assert np.array_equal(np.asarray(kept), X)
    for write in (lambda: rows.fill(0), lambda: np.copyto(rows, 0), lambda: rows[0].sort()):
        with pytest.raises(ValueError, match="read-only"):
            write()


@pytest.mark.parametrize("piece", [5, 1000])
@pytest.mark.parametrize("sent", [np.float64, np.float32])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_mixing_is_that_of_the_other_kernels(dtype, sent, piece, monkeypatch):
    monkeypatch.setattr(tensors, "_PIECE", piece)
    rng = np.random.default_rng(1)
    a, received, columns = rng.random(3), rng.normal(size=(4, 13)).astype(sent), np.array([2, 0, 3])
    expected = Plain(np.array([0, 3]), columns, 4).mix(a, received, dtype)
    found = tensors.mixed(a, [torch.from_numpy(received[column]) for column in columns], dtype)
    assert found.dtype == dtype
    assert np.array_equal(np.asarray(found), expected)


@pytest.mark.parametrize("piece", [5, 1000])
def test_equations_in_pieces_are_those_of_whole_rows(piece, monkeypatch):
    monkeypatch.setattr(tensors, "_PIECE", piece)
    x, v = X.astype(np.float32), X[:, ::-1].copy()
    rows = DeviceRows(torch.tensor(x))

    def equation(x, v, y):
        return x - 0.1 * (x / y + v)

    expected = equation(x, v, Y).astype(np.float32)  # in the precision of the first row
    for given in (v, DeviceRows(torch.tensor(v))):
        assert np.array_equal(np.asarray(tensors.rowwise(equation, [rows, given, Y], None)), expected)
    assert tensors.rowwise(equation, [rows, v, Y], rows) is rows
    assert np.array_equal(np.asarray(rows), expected)
