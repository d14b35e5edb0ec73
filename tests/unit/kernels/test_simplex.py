"""The projection of every row on its simplex."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize

from d3gd.kernels.simplex import RowSimplices

numbers = st.floats(-10, 10, allow_subnormal=False)


@st.composite
def ragged(draw, values=numbers, most=9):
    """Rows of unequal length and a flat vector over them."""
    lengths = draw(st.lists(st.integers(1, most), min_size=1, max_size=6))
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    return indptr, draw(arrays(float, int(indptr[-1]), elements=values))


def rows_of(indptr, flat):
    return [flat[first:last] for first, last in pairwise(indptr)]


def nearest_by_enumeration(v):
    """The nearest point of the simplex, from the best of all possible supports."""
    best, at = np.inf, None
    for size in range(1, len(v) + 1):
        for support in combinations(range(len(v)), size):
            p = np.zeros(len(v))
            p[list(support)] = v[list(support)] - (v[list(support)].sum() - 1) / size
            if p.min() >= -1e-12 and np.sum((p - v) ** 2) < best:
                best, at = np.sum((p - v) ** 2), p
    return at


@given(ragged())
def test_rows_land_on_the_simplex(case):
    indptr, values = case
    for row in rows_of(indptr, RowSimplices(indptr)(values)):
        assert row.min() >= 0
        assert abs(row.sum() - 1) <= 1e-14 * len(row) * (1 + np.abs(values).max())


@given(ragged())
def test_projecting_twice_changes_nothing(case):
    indptr, values = case
    project = RowSimplices(indptr)
    once = project(values)
    np.testing.assert_allclose(project(once), once, rtol=0, atol=1e-14 * (1 + np.abs(values).max()))


@given(ragged(most=6))
def test_equals_the_best_of_all_supports(case):
    indptr, values = case
    projected = rows_of(indptr, RowSimplices(indptr)(values))
    for row, v in zip(projected, rows_of(indptr, values), strict=True):
        np.testing.assert_allclose(row, nearest_by_enumeration(v), rtol=0, atol=1e-6)
        theta = v - row  # the optimality conditions: one value where the row is positive, nowhere a larger one
        assert np.ptp(theta[row > 0]) <= 1e-13
        assert theta.max() <= theta[row > 0].min() + 1e-13


@pytest.mark.parametrize("seed", range(5))
def test_equals_a_general_solver(seed):
    v = np.random.default_rng(seed).normal(size=5)
    answer = minimize(
        lambda p: np.sum((p - v) ** 2),
        np.full(5, 0.2),
        jac=lambda p: 2 * (p - v),
        method="SLSQP",
        bounds=[(0, 1)] * 5,
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1, "jac": np.ones_like},
        options={"ftol": 1e-14},
    )
    np.testing.assert_allclose(RowSimplices(np.array([0, 5]))(v), answer.x, atol=1e-6)


@given(st.data(), ragged())
def test_two_projections_are_never_further_apart(data, case):
    indptr, u = case
    v = data.draw(arrays(float, len(u), elements=numbers))
    project = RowSimplices(indptr)
    before, after = rows_of(indptr, u - v), rows_of(indptr, project(u) - project(v))
    for far, near in zip(before, after, strict=True):
        assert np.linalg.norm(near) <= np.linalg.norm(far) + 1e-13


@given(ragged())
def test_a_row_is_bitwise_the_same_alone(case):
    indptr, values = case
    together = rows_of(indptr, RowSimplices(indptr)(values))
    for row, v in zip(together, rows_of(indptr, values), strict=True):
        assert np.array_equal(row, RowSimplices(np.array([0, len(v)]))(v))


@given(ragged(values=st.floats(-1e300, 1e300)))
def test_size_of_the_numbers_does_not_matter(case):
    # A refinement step far from consensus can be huge, and weights that no longer sum to one would end the run.
    indptr, values = case
    for row in rows_of(indptr, RowSimplices(indptr)(values)):
        assert row.min() >= 0
        assert abs(row.sum() - 1) <= 1e-12


@given(ragged(), st.floats(-1e6, 1e6))
def test_a_constant_per_row_changes_nothing(case, shift):
    indptr, values = case
    project = RowSimplices(indptr)
    np.testing.assert_allclose(project(values + shift), project(values), rtol=0, atol=1e-8)


def test_input_is_left_alone():
    values = np.array([3.0, -1.0, 0.5])
    RowSimplices(np.array([0, 2, 3]))(values)
    assert values.tolist() == [3.0, -1.0, 0.5]
