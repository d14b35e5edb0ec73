"""Sketches are linear, equal for all agents, short, and preserve inner products on average."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from d3gd.rules import sketch
from d3gd.rules.sketch import Sketch
from tests.helpers.strategies import examples

SIZES = st.tuples(st.integers(1, 200), st.integers(1, 80), st.integers(0, 10**6))


@examples(50)
@given(sizes=SIZES, a=st.floats(-5, 5), b=st.floats(-5, 5))
def test_linear(sizes, a, b):
    d, s, seed = sizes
    u, v = np.random.default_rng(seed).normal(size=(2, 3, d))
    made = Sketch(d, s, seed)
    assert made(u).shape == (3, min(d, s)) == (3, made.length)
    assert np.allclose(made(a * u + b * v), a * made(u) + b * made(v), rtol=0, atol=1e-11)


@examples(30)
@given(sizes=SIZES)
def test_every_coordinate_goes_to_one_entry_with_a_sign_and_no_entry_is_empty(sizes):
    d, s, seed = sizes
    S = Sketch(d, s, seed)(np.eye(d))  # row j: where coordinate j goes
    assert np.array_equal(np.abs(S).sum(axis=1), np.ones(d))
    assert np.array_equal(np.abs(S).max(axis=1), np.ones(d))
    assert np.abs(S).max(axis=0).min() == 1


@examples(30)
@given(d=st.integers(1, 64), extra=st.integers(0, 5))
def test_vectors_no_longer_than_a_sketch_stay_as_they_are(d, extra):
    rows = np.random.default_rng(d).normal(size=(4, d))
    assert np.array_equal(Sketch(d, d + extra)(rows), rows)


@examples(40)
@given(n=st.integers(1, 9), d=st.sampled_from([65, 130, 700, 3000]), data=st.data())
def test_an_agent_sketches_the_same_bits_whoever_else_is_in_its_block(n, d, data):
    rows = np.random.default_rng(n + d).normal(size=(n, d))
    block = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=n))
    # Two agents make the map anew each, from the seed alone.
    assert np.array_equal(Sketch(d, 64)(rows[block]), Sketch(d, 64)(rows)[block])
    assert np.array_equal(Sketch(d, 64)(np.asfortranarray(rows)), Sketch(d, 64)(rows))
    assert np.array_equal(Sketch(d, 64)(np.repeat(rows, 2, axis=1)[:, ::2]), Sketch(d, 64)(rows))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("d", "s"), [(1000, 64), (777, 64), (777, 100), (300, 128), (65, 64), (90, 7)])
def test_the_kernel_for_long_vectors_has_the_bits_of_numpy(d, s, dtype, monkeypatch):
    rows = np.random.default_rng(d + s).normal(size=(3, d)).astype(dtype)
    expected = Sketch(d, s)(rows)
    monkeypatch.setattr(sketch, "_LONG", 0)
    assert np.array_equal(Sketch(d, s)(rows), expected)


def test_another_seed_is_another_map():
    rows = np.random.default_rng(0).normal(size=(1, 500))
    assert not np.array_equal(Sketch(500, 64, 0)(rows), Sketch(500, 64, 1)(rows))


def spiky(rng):
    u, v = np.zeros((2, 40))
    u[[3, 7]] = 5.0, 4.0
    v[[3, 8]] = 2.0, -3.0
    return u + 0.01 * rng.normal(size=40), v


@pytest.mark.parametrize("pair", ["normal", "alike", "opposite", "ones", "spiky"])
@pytest.mark.parametrize("s", [4, 16])
def test_inner_products_are_unbiased_with_the_promised_variance(pair, s):
    rng = np.random.default_rng(1)
    u, v = rng.normal(size=(2, 40)) if pair != "spiky" else spiky(rng)
    u = np.ones(40) if pair == "ones" else u  # all signs alike: here signs that lean one way would show
    v = {"alike": u + 0.1 * v, "opposite": -u, "ones": u}.get(pair, v)
    both, seeds = np.stack([u, v]), 3000
    found = np.array([np.prod(Sketch(40, s, seed)(both), axis=0).sum() for seed in range(seeds)])
    assert abs(found.mean() - u @ v) <= 4 * found.std() / np.sqrt(seeds)
    # Of `seeds` draws a variance is known to some per cent; the promise is an upper bound.
    assert found.var() <= 1.15 * 2 * (u @ u) * (v @ v) / s


def test_a_long_vector_takes_no_matrix():
    d, s = 50_000, 64
    tracemalloc.start()
    sketches = Sketch(d, s, seed=12345)(np.ones((2, d)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sketches.shape == (2, s)
    assert peak < 8 * d * s / 4  # some vectors of length d, far from d x s numbers
