r"""The gain of a correction: its stability bound, and how it falls during a run.

Without gradients, a mode of the weights with eigenvalue :math:`\mu` follows

.. math::
    z^2 - (1 + \mu - \beta (1 - \mu)) z + \mu = 0

under the correction of :class:`d3gd.PerronD3GD` with gain :math:`\beta`. By Jury's criterion both roots are inside the
unit circle if and only if

.. math::
    0 < \beta < \frac{2 (1 - |\mu|^2) |1 - \mu|^2}{|1 - \mu|^4 + 4 (\operatorname{Im} \mu)^2} .

With curvature h, the same at all agents, :math:`\mu` becomes :math:`\mu (1 - \gamma h)` in the first and last term.
Where :math:`\gamma h = 1`, the mode is :math:`1 - \beta (1 - \mu)` alone. Under momentum a mode has three roots, and is
solved as a matrix (:func:`decay`). On one-way cycles momentum is unstable, with a correction and without.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from d3gd.arrays import CSR, Floats, Ints
from d3gd.errors import SettingsError
from d3gd.spectrum import modes, second_within, spectral_gap
from d3gd.state import Scalar

Modes = npt.NDArray[np.complex128]

_SHARE = 0.8  # of the bound, at most: the rest is left for gradients that differ
_TRIED = 40  # gains
_EQUAL = 1e-3  # relative difference of rates that does not count
_MOST = 1.0  # as in exact diffusion, where it is the best for symmetric weights
_NOISE = 0.05  # more noise than without a correction that may pass in the long run, without momentum
_ENOUGH = 0.05  # the gain that is kept in any case: on slow networks, following matters more than noise ...
_ENOUGH_SHARE = 0.5  # ... but not more than this share of the bound
_LAGGING = 0.5  # of the damping under compression, as the gain
_LEAST_DAMPING, _MOST_MOMENTUM = 0.5, 0.5  # one of which must hold: copies that lag far behind carry momentum away
_LASTS = 100  # iterations that the first gain is meant for
_MODES_UP_TO = 600  # agents: above, only the largest modulus of the modes is known, without momentum
MOVING_UP_TO = 2000  # agents: with momentum, whose stability that modulus does not tell; some seconds
_RADII = (0.5, 0.6, 0.7, 0.8, 0.9)  # of the modes of large networks, tried before their gap is computed
_ANGLES = 360
_ROUNDING = 1e-6  # above one, in the factor of a mode that neither grows nor decays
_DIGITS = 3  # so that rounding on different machines gives equal gains


class Gain(NamedTuple):
    r"""A gain that falls from ``first`` to ``last``, the same for all agents.

    .. math:: \beta_k = \beta_\infty + \frac{\beta_0 - \beta_\infty}{(1 + k / 100)^2}

    The first one removes the transient as fast as is safe; the last one adds little variance from mini-batches.
    """

    first: Scalar
    last: Scalar

    def at(self, k: int) -> float:
        """Return the gain of an iteration."""
        return self.last + (self.first - self.last) / (1 + k / _LASTS) ** 2

    def under(self, damping: float, momentum: float = 0.0) -> "Gain":
        r"""Return the gain under compression: a fraction of its damping.

        Copies lag by about :math:`1 / \zeta` iterations. A correction that follows disagreement with a lag of
        :math:`\tau` iterations is stable only for gains below :math:`1 / \tau`.
        """
        if damping == 1:
            return self
        most = _LAGGING * damping * (1 - momentum)
        return Gain(min(self.first, most), min(self.last, most))


def gain_under(A: CSR, momentum: float = 0.0, rounds: int = 1) -> Gain:
    r"""Return the gain under some weights of the whole network, a momentum of the models, and rounds per iteration.

    Under the first gain the slowest mode decays fastest, over :math:`\gamma h \in \{0, 1\}`; it is at most 0.8 of the
    bound, and 1. Under the last one the variance from noise is 5 % larger than without correction; it is not reduced
    below 0.05 or half of the bound, whichever is smaller. A momentum :math:`\theta` makes the mean model move
    :math:`1 / (1 - \theta)` times as far in a step, which corrections must follow: then that many times 5 % may pass.
    For a large network, every mode counts as being on the circle of radius :math:`|\lambda_2|`, at the worst angle, and
    momentum does not count.
    """
    if A.shape[0] == 1:
        return Gain(0.0, 0.0)
    momentum = momentum if A.shape[0] <= MOVING_UP_TO else 0.0
    mu = _modes(A, momentum) ** rounds
    first = fastest(mu, momentum)
    enough = min(first, _ENOUGH, _ENOUGH_SHARE * float(bound(mu).min()))
    return Gain(_rounded(first), _rounded(max(_quiet(mu, first, momentum), enough)))


def require_stable(A: CSR, gain: Gain, momentum: float, damping: float = 1.0, rounds: int = 1) -> None:
    """Raise an error if a momentum of the models grows without bound under some weights, where gradients are zero.

    It is not known for large networks, of whose modes only the modulus is, nor for copies that lag under compression:
    a momentum above 0.5 with a damping below 0.5 diverged on most networks that we tried.
    """
    if momentum > _MOST_MOMENTUM and damping < _LEAST_DAMPING:
        raise SettingsError(
            f"momentum = {momentum:g} is unstable with messages that are damped by {damping:g}, which lag behind; use "
            f'momentum = {_MOST_MOMENTUM:g}, or compress = "int8" or "int4", which are not damped'
        )
    if momentum and 1 < A.shape[0] <= MOVING_UP_TO:
        grows = float(_flat(modes(A) ** rounds, gain.first, momentum).max())
        if grows > 1 + _ROUNDING:
            raise SettingsError(
                f"momentum = {momentum:g} is unstable on this network: differences between agents grow by a factor of "
                f"{grows:.3g} per iteration, as on one-way cycles; use a smaller momentum, down to 0, or add links"
            )


def bound(mu: Modes) -> Floats:
    """Return the gain at which each mode becomes unstable."""
    away = np.abs(1 - mu) ** 2
    limits: Floats = 2 * (1 - np.abs(mu) ** 2) * away / (away**2 + 4 * mu.imag**2)
    return limits


def passed(mu: Modes, beta: float, momentum: float = 0.0) -> Floats:
    r"""Return the variance of each mode of the models, per unit of variance in what agents send.

    With :math:`u = \gamma v` the mode follows :math:`x^+ = \mu (x - u - \eta)`,
    :math:`u^+ = u + \beta (1 - \mu) (x - u - \eta)`; its covariance solves a 2 x 2 Lyapunov equation, or 3 x 3 with
    momentum.
    """
    M = _iterated(mu, beta, momentum)
    noise = -M[:, :, 0]
    if momentum:
        noise[:, 2] += 1 / 2  # momentum observes x, not what is sent
    size = M.shape[1] ** 2
    Q = np.einsum("mi,mj->mij", noise, noise.conj()).reshape(-1, size, 1)
    system = np.eye(size) - np.einsum("mij,mkl->mikjl", M, M.conj()).reshape(-1, size, size)
    variance: Floats = np.linalg.solve(system, Q)[:, 0, 0].real
    return variance


def decay(mu: Modes, beta: float, momentum: float = 0.0) -> Floats:
    r"""Return the factor per iteration of each mode, the larger one of :math:`\gamma h = 0` and 1."""
    if momentum:
        return np.maximum(_flat(mu, beta, momentum), _flat(mu, beta, momentum, curvature=1.0))
    trace = 1 + mu - beta * (1 - mu)
    root = np.sqrt(trace**2 - 4 * mu)
    flat = np.maximum(np.abs(trace + root), np.abs(trace - root)) / 2
    factors: Floats = np.maximum(flat, np.abs(1 - beta * (1 - mu)))
    return factors


def fastest(mu: Modes, momentum: float, most: float = _MOST) -> float:
    """Return the gain whose slowest mode decays fastest, up to ``most``; of equally good ones, the largest."""
    gains = min(most, _SHARE * float(bound(mu).min())) * np.arange(_TRIED, 0, -1) / _TRIED
    rates = np.array([1 - decay(mu, beta, momentum).max() for beta in gains])
    return float(gains[equally_good(rates)[0]])


def equally_good(rates: Floats) -> Ints:
    """Return which rates do not differ noticeably from the largest one."""
    found: Ints = np.flatnonzero(rates >= rates.max() - _EQUAL * abs(rates.max()))
    return found


def _flat(mu: Modes, beta: float, momentum: float, curvature: float = 0.0) -> Floats:
    r"""Return the factor of each mode under momentum, where :math:`\gamma h` is ``curvature``."""
    factors: Floats = np.abs(np.linalg.eigvals(_iterated(mu, beta, momentum, curvature))).max(axis=1)
    return factors


def _iterated(mu: Modes, beta: float, momentum: float, curvature: float = 0.0) -> Modes:
    r"""Return the matrix of an iteration for each mode: of x, :math:`\gamma v` and, with momentum, :math:`\gamma q`.

    A message is :math:`(1 - \gamma h) x - u - \theta w` with :math:`w = \gamma q`, and w becomes
    :math:`(w + x - x^+) / 2`. Without gain, u stays zero.
    """
    sent = np.array([1 - curvature, -1, -momentum] if momentum else [1 - curvature, -1])
    M = np.zeros((len(mu), len(sent), len(sent)), dtype=complex)
    M[:, 0] = mu[:, None] * sent
    M[:, 1] = beta * (1 - mu)[:, None] * sent
    M[:, 1, 1] += 1 if beta else 0
    if momentum:
        M[:, 2] = -M[:, 0] / 2
        M[:, 2, (0, 2)] += 1 / 2
    return M


def _modes(A: CSR, momentum: float = 0.0) -> Modes:
    """Return the modes; of a large network, the circle of their largest modulus."""
    if A.shape[0] <= (MOVING_UP_TO if momentum else _MODES_UP_TO):
        return modes(A)
    radius = next((r for r in _RADII if second_within(A, r)), None) or 1 - spectral_gap(A)
    circle: Modes = radius * np.exp(2j * np.pi * np.arange(_ANGLES) / _ANGLES)
    return circle


def _quiet(mu: Modes, first: float, momentum: float) -> float:
    """Return the largest gain up to ``first`` under which little more noise passes than without a correction."""
    alone = np.abs(mu) ** 2 / (1 - np.abs(mu) ** 2) if not momentum else passed(mu, 0.0, momentum)
    allowed = (1 + _NOISE / (1 - momentum)) * float(np.sum(alone))
    low, high = 0.0, first
    if passed(mu, first, momentum).sum() <= allowed:
        return first
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if passed(mu, middle, momentum).sum() <= allowed else (low, middle)
    return low


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
