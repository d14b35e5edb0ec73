"""The private gradient: a random batch, clipped examples, Gaussian noise."""

import hashlib
import struct
from typing import Any

import numpy as np
from scipy.special import ndtri

from d3gd.arrays import Bools, Floats
from d3gd.errors import ProblemError, SettingsError
from d3gd.privacy.settings import Privacy
from d3gd.problems import Problem
from d3gd.problems.base import Examples

_SAMPLING, _NOISE = b"d3gd sampling", b"d3gd noise"


def uniform(count: int, *key: bytes) -> Floats:
    """Return numbers in (0, 1) that are unpredictable without the whole key: SHAKE-256, a cryptographic function."""
    hashed = hashlib.shake_256()
    for part in key:
        hashed.update(struct.pack("<q", len(part)) + part)
    words = np.frombuffer(hashed.digest(8 * count), dtype="<u8")
    drawn: Floats = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    return drawn


def normal(count: int, *key: bytes) -> Floats:
    """Return normally distributed numbers that are unpredictable without the whole key."""
    drawn: Floats = ndtri(uniform(count, *key))
    return drawn


def simulated_secret(seed: int) -> bytes:
    """Return the key of the noise of a simulation, whose draws are repeatable and therefore protect nothing."""
    return b"simulation " + str(seed).encode()


class Private:
    """The gradients of a problem with what :class:`Privacy` states.

    A draw depends on the secret, the agent, the evaluation, the model, the settings and, for noise, on the sum that it
    is added to. So what is computed again from the same state is sent with the same noise and reveals nothing new, and
    what differs in anything has noise of its own.

    Args:
        problem: The objectives of some agents.
        privacy: The settings.
        secret: The key of all draws.

    Attributes:
        sample: The largest probability of an example to be drawn, among the agents.
    """

    def __init__(self, problem: Any, privacy: Privacy, secret: bytes) -> None:
        self._examples = _examples(problem)
        self.agents, self.dim, self._privacy, self._secret = problem.agents, problem.dim, privacy, secret
        sizes = self._examples.sizes
        batch = sizes.max() if self._examples.batch is None else self._examples.batch
        self._expected: Floats = np.minimum(sizes, batch).astype(np.float64)
        self._rates: Floats = self._expected / sizes
        self.sample = float(self._rates.max())
        require_delta(privacy, int(sizes.max()))

    def gradients(self, x: Floats, k: int | None = None) -> Floats:
        """Return the private gradients at the agents' models."""
        if k is None and self._examples.batch is not None:
            raise ProblemError(
                "this method evaluates gradients on all data (draw=None), which privacy with a batch does not account "
                "for; leave the batch out, or choose another method"
            )
        privacy, precise = self._privacy, np.ascontiguousarray(x, dtype=np.float64)
        keys = [self._key(row, k, precise) for row in range(self.agents)]
        sums = self._examples.sums(precise, self._drawn(keys), privacy.clip)
        noise = np.stack([normal(self.dim, _NOISE, *key, own.tobytes()) for key, own in zip(keys, sums, strict=True)])
        noisy = (sums + privacy.noise * privacy.clip * noise) / self._expected[:, None]
        gradients: Floats = (noisy + self._examples.rest(precise)).astype(x.dtype, copy=False)
        return gradients

    def _drawn(self, keys: list[tuple[bytes, ...]]) -> Bools:
        sizes = self._examples.sizes
        chosen = np.zeros((self.agents, int(sizes.max())), dtype=bool)
        for row, (size, rate) in enumerate(zip(sizes.tolist(), self._rates.tolist(), strict=True)):
            chosen[row, :size] = True if rate >= 1 else uniform(size, _SAMPLING, *keys[row]) < rate
        return chosen

    def _key(self, row: int, k: int | None, x: Floats) -> tuple[bytes, ...]:
        agent, place = int(self._examples.ids[row]), -1 if k is None else k
        privacy = self._privacy
        told = struct.pack("<qqddd", agent, place, privacy.clip, privacy.noise, self._rates[row])
        return self._secret, told, x[row].tobytes()


def require_delta(privacy: Privacy, examples: int) -> None:
    """Raise an error if delta allows to publish an example."""
    if privacy.delta >= 1 / examples:
        raise SettingsError(
            f"delta = {privacy.delta:g} with {examples} examples at one agent would allow to publish one of them; "
            f"choose it well below {1 / examples:.1g}"
        )


def _examples(problem: Any) -> Examples:
    found = problem.examples() if isinstance(problem, Problem) else None
    if found is None:
        raise ProblemError(
            f"{type(problem).__name__} has no examples whose gradients could be clipped one by one, as privacy needs; "
            "use softmax or sigmoid classification, a PyTorch module on data in memory, or write an examples() method"
        )
    return found
