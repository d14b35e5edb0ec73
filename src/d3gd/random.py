"""Random numbers that depend on their key alone: (seed, agent, iteration, stream)."""

import numpy as np
import numpy.typing as npt

from d3gd.arrays import Floats, Ints
from d3gd.validation import count

_MASK = (1 << 64) - 1
_DRAWS = 1 << 40  # smaller keys are iterations: those of first draws
_GOLDEN = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB

# The same constants as arrays: NumPy scalars would be converted again in each of the many small operations.
_ONE, _11, _27, _30, _31, _PHI, _M1, _M2 = np.array(
    [[1], [11], [27], [30], [31], [_GOLDEN], [_FIRST], [_SECOND]], dtype=np.uint64
)


def _scramble(word: int) -> int:
    """The SplitMix64 finalizer on one 64-bit word."""
    word &= _MASK
    word = ((word ^ (word >> 30)) * _FIRST) & _MASK
    word = ((word ^ (word >> 27)) * _SECOND) & _MASK
    return word ^ (word >> 31)


def _scramble_all(words: npt.NDArray[np.uint64]) -> None:
    """The SplitMix64 finalizer on an array, in place."""
    words ^= words >> _30
    words *= _M1
    words ^= words >> _27
    words *= _M2
    words ^= words >> _31


def generator(seed: int, *key: int) -> np.random.Generator:
    """Return NumPy's generator for a seed and a key, or raise an error if the seed is invalid."""
    return np.random.default_rng([count("seed", seed, least=0), *key])


def draw_key(iteration: int, draw: int = 0) -> int:
    """Return the key of one of an iteration's draws, to be passed as the iteration; draw 0 is the iteration itself.

    Example:
        >>> draw_key(7), iteration_of(draw_key(7, draw=3))
        (7, 7)
    """
    return iteration + draw * _DRAWS


def iteration_of(key: int) -> int:
    """Return the iteration that a key belongs to."""
    return key % _DRAWS


def keyed_uniform(seed: int, agents: Ints, iteration: int, count: int, stream: int = 0) -> Floats:
    r"""Uniform draws in [0, 1), one row per agent, each a function of its own key only.

    With :math:`h` the SplitMix64 finalizer and :math:`\varphi` its odd 64-bit increment,

    .. math::
        b &= h(h(h((\text{seed}+1)\varphi) + (\text{stream}+1)\varphi) + (\text{iteration}+1)\varphi), \\
        u_{ac} &= 2^{-53} \lfloor 2^{-11}\, h(h(b + (a + 1)\varphi) + (c + 1)\varphi) \rfloor,

    so an agent's row does not depend on the other agents requested, nor on previous draws.

    Args:
        seed: The seed of the experiment.
        agents: Global ids of the agents.
        iteration: The iteration of the draw.
        count: Numbers for each agent.
        stream: Distinguishes several uses within one iteration.

    Returns:
        An array of shape (len(agents), count).

    Example:
        >>> import numpy as np
        >>> all_of_them = keyed_uniform(7, np.arange(5), iteration=3, count=2)
        >>> bool((keyed_uniform(7, np.array([4, 1]), iteration=3, count=2) == all_of_them[[4, 1]]).all())
        True

    Reference:
        Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
    """
    words = keyed_words(seed, agents, iteration, count, stream)
    words >>= _11
    uniform: Floats = np.multiply(words, 2.0**-53, dtype=np.float64)
    return uniform


def keyed_words(seed: int, agents: Ints, iteration: int, count: int, stream: int = 0) -> npt.NDArray[np.uint64]:
    """Return the 64 random bits behind each draw of :func:`keyed_uniform`, with its arguments."""
    base = 0
    for part in (seed, stream, iteration):
        base = _scramble(base + (int(part) + 1) * _GOLDEN)
    rows = np.asarray(agents).astype(np.uint64)
    rows += _ONE
    rows *= _PHI
    rows += np.array([base], dtype=np.uint64)
    _scramble_all(rows)
    words: npt.NDArray[np.uint64] = np.arange(1, count + 1, dtype=np.uint64)
    words = rows[:, None] + words * _PHI
    _scramble_all(words)
    return words


def keyed_choices(seed: int, agents: Ints, iteration: int, count: int, sizes: Ints) -> Ints:
    """Sample indices drawn with replacement, for each agent among its own samples, keyed as in `keyed_uniform`.

    Args:
        seed: The seed of the experiment.
        agents: Global ids of the agents.
        iteration: The iteration of the draw.
        count: Indices per agent.
        sizes: Number of samples of each agent.

    Returns:
        An array of shape (len(agents), count); row i holds whole numbers from 0 to ``sizes[i] - 1``.
    """
    places: Ints = (keyed_uniform(seed, agents, iteration, count) * sizes[:, None]).astype(np.int64)
    return places
