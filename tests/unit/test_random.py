"""Keyed draws: uniform, independent between keys, and independent of the block."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from d3gd.random import keyed_uniform

AGENTS = np.arange(200)


def reference(seed: int, agent: int, iteration: int, position: int, stream: int) -> float:
    """The documented formula in exact integers, one number at a time."""
    mask, phi = 2**64 - 1, 0x9E3779B97F4A7C15

    def h(z: int) -> int:
        z &= mask
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & mask
        return z ^ (z >> 31)

    b = h(h(h((seed + 1) * phi) + (stream + 1) * phi) + (iteration + 1) * phi)
    return (h(h(b + (agent + 1) * phi) + (position + 1) * phi) >> 11) / 2**53


KEYS = st.integers(0, 2**63 - 1)


@given(seed=KEYS, agent=st.integers(0, 2**40), iteration=st.integers(0, 2**40), stream=st.integers(0, 100))
def test_agrees_with_the_formula_in_exact_arithmetic(seed, agent, iteration, stream):
    draws = keyed_uniform(seed, np.array([agent]), iteration, 3, stream)
    assert draws.tolist() == [[reference(seed, agent, iteration, c, stream) for c in range(3)]]


@given(
    block=st.lists(st.integers(0, 199), min_size=1, max_size=20),
    seed=st.integers(0, 2**32),
    k=st.integers(0, 10**6),
)
def test_a_block_gets_bitwise_its_rows_of_the_whole(block, seed, k):
    whole = keyed_uniform(seed, AGENTS, k, 7)
    assert np.array_equal(keyed_uniform(seed, np.array(block), k, 7), whole[block])


@given(short=st.integers(1, 10), long=st.integers(10, 30))
def test_asking_for_more_numbers_keeps_the_first_ones(short, long):
    assert np.array_equal(keyed_uniform(1, AGENTS, 2, short), keyed_uniform(1, AGENTS, 2, long)[:, :short])


@pytest.mark.parametrize("seed", [0, 1, 2**40])
@pytest.mark.parametrize(
    "cut",
    [
        lambda seed: keyed_uniform(seed, np.arange(20_000), 0, 1),
        lambda seed: keyed_uniform(seed, np.array([3]), 5, 20_000),
        lambda seed: np.vstack([keyed_uniform(seed, np.arange(20), k, 10) for k in range(100)]),
    ],
    ids=["over agents", "over positions", "over iterations"],
)
def test_uniform_along_every_part_of_the_key(seed, cut):
    draws = cut(seed).ravel()
    assert draws.min() >= 0.0
    assert draws.max() < 1.0
    assert stats.kstest(draws, "uniform").pvalue > 1e-3
    cells = np.bincount((draws * 64).astype(int), minlength=64)
    assert stats.chisquare(cells).pvalue > 1e-3
    low_bits = np.bincount((draws * 2**53).astype(np.int64) % 64, minlength=64)
    assert stats.chisquare(low_bits).pvalue > 1e-3


NEIGHBOURS = {
    "seed": (keyed_uniform(0, AGENTS, 4, 100), keyed_uniform(1, AGENTS, 4, 100)),
    "agent": (keyed_uniform(0, AGENTS, 4, 100), keyed_uniform(0, AGENTS + 1, 4, 100)),
    "iteration": (keyed_uniform(0, AGENTS, 4, 100), keyed_uniform(0, AGENTS, 5, 100)),
    "stream": (keyed_uniform(0, AGENTS, 4, 100, 0), keyed_uniform(0, AGENTS, 4, 100, 1)),
    "position": (keyed_uniform(0, AGENTS, 4, 100), keyed_uniform(0, AGENTS, 4, 101)[:, 1:]),
    "seed against agent": (keyed_uniform(1, AGENTS, 0, 100), keyed_uniform(0, AGENTS + 1, 0, 100)),
    "iteration against stream": (keyed_uniform(0, AGENTS, 1, 100, 0), keyed_uniform(0, AGENTS, 0, 100, 1)),
}


@pytest.mark.parametrize("part", NEIGHBOURS)
def test_neighbouring_keys_are_uncorrelated(part):
    one, other = (draws.ravel() for draws in NEIGHBOURS[part])
    four_sigma = 4.0 / np.sqrt(one.size)
    for power in (1, 2):
        assert abs(np.corrcoef(one**power, other**power)[0, 1]) < four_sigma
    pairs = np.histogram2d(one, other, bins=8, range=[[0, 1], [0, 1]])[0]
    assert stats.chisquare(pairs.ravel()).pvalue > 1e-3
