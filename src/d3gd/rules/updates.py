"""The updates that several methods share, each written once.

Rows belong to agents, so that an update can be evaluated agent by agent, in pieces that stay in the cache and on all
cores, without intermediate results as large as the state. :func:`rowwise` does so; the equation stays plain.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from d3gd.arrays import Array, Floats
from d3gd.distributed.received import Received
from d3gd.kernels import loaded
from d3gd.kernels.threads import is_small
from d3gd.network import Network


def rowwise(
    *, into: int | None = None, after: int | None = None
) -> Callable[[Callable[..., Array]], Callable[..., Array]]:
    """Make an equation of rows an update of a network: ``update(net, *rows, **numbers)``.

    Large networks evaluate it entry by entry, compiled, so it must consist of arithmetic alone.

    Args:
        into: The place of an argument that is no longer needed afterwards and was not sent; the result may overwrite
            it.
        after: The place of a row of the state that the result replaces: see :meth:`d3gd.network.Network.place`.
    """

    def made(equation: Callable[..., Array]) -> Callable[..., Array]:
        @wraps(equation)
        def update(net: Network, *rows: Array, **numbers: float) -> Array:
            if is_small(rows[0], loaded()):
                return equation(*rows, **numbers)
            out = net.place(rows[after]) if after is not None else None if into is None else rows[into]
            return net.rowwise(equation, *rows, out=out, **numbers)

        return update

    return made


@rowwise(into=0)
def descended(mixed: Floats, g: Floats, y: Floats, gamma: float, n: int) -> Floats:
    r"""Return Di-DGD's :math:`x_i^+ = \sum_j a_{ij} x_j - \frac{\gamma}{n y_i} g_i`, given the mixed models."""
    return mixed - gamma / (n * y) * g


@rowwise(after=0)
def corrected(x: Floats, g: Floats, v: Floats, y: Floats, gamma: float, n: int) -> Floats:
    r"""Return :math:`x_i - \gamma (\frac{1}{n y_i} g_i + v_i)`: a step with the correction in it."""
    return x - gamma * (1 / (n * y) * g + v)  # a division for each agent, not for each number


@rowwise(after=0)
def followed(x: Floats, d: Floats, o: Floats, y: Floats, gamma: float) -> Floats:
    r"""Return :math:`x_i - \gamma (y_i d_i + o_i)`: a local step along a heading with factor y and offset o."""
    return x - gamma * (y * d + o)


@rowwise(after=0)
def shifted(x: Floats, o: Floats, gamma: float) -> Floats:
    r"""Return :math:`x_i - \gamma o_i`: a model after the offset of a heading alone."""
    return x - gamma * o


@rowwise()
def retraced(x: Floats, moved: Floats, o: Floats, y: Floats, gamma: float) -> Floats:
    r"""Return the mean direction :math:`d_i` of local steps from x to another model: what :func:`followed` inverts."""
    return 1 / (gamma * y) * (x - moved) - 1 / y * o


@rowwise()
def correction(v: Floats, m: Floats, mixed: Floats, rate: float) -> Floats:
    r"""Return :math:`v_i + \rho (m_i - \sum_j a_{ij} m_j)`; the sum weighted by :math:`\pi` is conserved."""
    return v + rate * (m - mixed)


@rowwise()
def pushed(q: Floats, v: Floats, y: Floats) -> Floats:
    r"""Return :math:`v_i + y_i q_i`: a correction with y times the momentum."""
    return v + y * q


@rowwise(after=0)
def remembered(q: Floats, x: Floats, gamma: float) -> Floats:
    r"""Return :math:`\frac12 (q_i + x_i / \gamma)`: a momentum of models before they move, which may be in place."""
    return (q + x / gamma) / 2


@rowwise(into=0)
def observed(before: Floats, new: Floats, gamma: float) -> Floats:
    r"""Return that momentum after the move, :math:`\frac12 (q_i + (x_i - x_i^+) / \gamma)`."""
    return before - new / gamma / 2


@rowwise(after=0)
def scaled(r: Floats, g: Floats, y: Floats, old: float, new: float) -> Floats:
    r"""Return Adam's scale :math:`(\beta r_i^2 + (1 - \beta) y_i^2 g_i^2)^{1/2}`; old and new are the weights."""
    return np.sqrt(old * (r * r) + new * (y * g * (y * g)))


@rowwise()
def scaled_direction(
    g: Floats, r: Floats, q: Floats, y: Floats, rest: float, mu: float, unbiased: float, eps: float
) -> Floats:
    r"""Return Adam's direction with another momentum, :math:`(1 - \mu) y_i g_i / (b r_i + \epsilon) + \mu q_i`."""
    return rest * (y * g) / (unbiased * r + eps) + mu * q


@rowwise(into=0)
def decayed(d: Floats, x: Floats, decay: float) -> Floats:
    r"""Return :math:`d_i + \lambda x_i`: a direction with weight decay."""
    return d + decay * x


@rowwise(after=0)
def advanced(x: Floats, d: Floats, v: Floats, gamma: float) -> Floats:
    r"""Return :math:`x_i - \gamma (d_i + v_i)`: a step along a direction, with the correction in it."""
    return x - gamma * (d + v)


def mixed_descent(
    net: Network, a: Floats, sent: Received, x: Floats, g: Floats, y: Floats, *, gamma: float, n: int
) -> Floats:
    r"""Return :math:`\sum_j a_{ij} x_j - \frac{\gamma}{n y_i} g_i`, given what was sent; ``x`` is no longer needed."""
    kernels = net.wide(sent)
    if kernels is None or not x.dtype == g.dtype == y.dtype:
        return descended(net, net.mix(a, sent), g, y, gamma=gamma, n=n)
    new = net.place(x)
    kernels.descend(a, *sent.parts(), g, gamma / (n * y), new)
    return new


def gossiped(net: Network, a: Floats, sent: Received, rounds: int = 1) -> Floats:
    r"""Return :math:`\sum_j (A^r)_{ij} m_j` in double precision, given what was sent in the first of r rounds.

    What rounding takes from a message stays with its sender, so that sums weighted by :math:`\pi` are conserved.
    """
    mixed = net.mix(a, sent, double=True)
    for number in range(1, rounds):
        name, rows = f"m{number}", net.precise(mixed)
        message: dict[str, Any] = {name: rows}
        mixed = net.mix(a, getattr(net.exchange(**message), name), double=True) + net.residual(mixed, rows)
    return mixed


def mixed_correction(
    net: Network, a: Floats, sent: Received, m: Floats, x: Floats, v: Floats, *, rate: float, rounds: int = 1
) -> tuple[Floats, Floats]:
    r"""Return :math:`\sum_j (A^r)_{ij} m_j` and the correction after it; ``x`` is no longer needed."""
    kernels = net.wide(sent) if rounds == 1 else None
    if kernels is None:
        mixed = gossiped(net, a, sent, rounds)
        return net.precise(mixed), correction(net, v, net.echo(a, sent, m), mixed, rate=rate)
    new, after = net.place(x), net.place(v)
    if after is not v:
        after[...] = v
    kernels.correct(a, *sent.parts(), rate, new, after)
    return new, after


@rowwise()
def design_residual(
    mixed: Floats,
    x_hat: Floats,
    g: Floats,
    g_hat: Floats,
    y: Floats,
    gamma: float,
    n: int,
    first: float,
    second: float,
) -> Floats:
    r"""Return D3GD's :math:`v_i = f ((A X)_i - \hat x) - s \frac{\gamma}{n} (g_i / y_i - \hat g)`, f and s factors."""
    return first * (mixed - x_hat) - second * gamma / n * (g / y - g_hat)


@rowwise()
def tracked(mixed: Floats, g: Floats, before: Floats) -> Floats:
    r"""Return a gradient tracker :math:`s_i^k = \sum_j c_{ij} s_j^{k-1} + g_i^k - g_i^{k-1}`, given the mixed ones."""
    return mixed + g - before  # in the precision of the tracker, which may be higher than that of gradients


@rowwise()
def over(q: Floats, y: Floats) -> Floats:
    """Return :math:`q_i / y_i`."""
    return q / y


@rowwise(into=0)
def displaced(mixed: Floats, x: Floats, new: Floats) -> Floats:
    """Return a tracker after the model has moved from ``x`` to ``new``."""
    return mixed + (new - x)
