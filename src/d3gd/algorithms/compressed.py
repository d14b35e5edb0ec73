"""Compressed messages, under any method."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from d3gd.algorithms.around import Around
from d3gd.algorithms.base import Algorithm, Gradient, Heading
from d3gd.arrays import Floats
from d3gd.conditions import Hardship
from d3gd.distributed.coding import Coding, compressing
from d3gd.distributed.compressors import Compressor, compressor, encoded
from d3gd.errors import SettingsError
from d3gd.network import Network
from d3gd.state import Copies
from d3gd.validation import within


class CompressedState(NamedTuple):
    """The state of :class:`Compressed`."""

    method: Any
    held: Copies  # (agents, d) each: what receivers hold of the agents' messages, by name


@dataclass(frozen=True, kw_only=True)
class Compressed(Around[CompressedState]):
    r"""A method whose messages are compressed differences to what their receivers already hold.

    Agent j sends :math:`q_j = C(m_j - \hat m_j)` in place of :math:`m_j`, and it and its receivers set
    :math:`\hat m_j \leftarrow \hat m_j + q_j`. Where the method mixes, agent i uses

    .. math:: \sum_j \tilde a_{ij} \hat m_j + (m_i - \hat m_i), \qquad \tilde A = (1 - \zeta) I + \zeta A .

    What compression withholds stays with its sender and is part of its next message. So sums weighted by the Perron
    vector are conserved as without compression, corrections and trackers included; where agents push, plain sums are.
    As models come to rest, so do their differences, and what is withheld vanishes: an exact method ends at the same
    stationary point for every compressor, if it converges. Coarse compressors need damping, :math:`\zeta < 1`, since
    copies lag behind; the weights are then closer to the identity, and have the same Perron vector.

    Models and trackers are compressed, each with copies of its own. Perron trackers Y and the mass of push-sum travel
    as they are, n numbers and one. Receivers must not miss a message, so every message must arrive.

    Args:
        method: The method; with local steps, :class:`d3gd.Local` around a method.
        compress: ``"int8"``: a byte per number; ``"int4"``: half of one; ``"bf16"``: two; ``"topk:0.01"``: the largest
            hundredth of the numbers with their places; or an object with ``encode``, ``decode`` and ``damping``, as
            :class:`d3gd.distributed.compressors.Compressor`.
        damping: :math:`\zeta` in (0, 1]; by default that of the compressor: the share for top-k, 1 for the others.

    Example:
        >>> import d3gd
        >>> graph, problem = d3gd.graphs.exponential(8), d3gd.problems.quadratic(agents=8, dim=400)
        >>> plain = d3gd.PerronD3GD(step_size=0.5, perron="known")
        >>> small = d3gd.Compressed(method=plain, compress="int8")
        >>> ends = [d3gd.run(method, graph, problem, iterations=300) for method in (plain, small)]
        >>> [bool(abs(result.x - problem.optimum).max() < 1e-9) for result in ends]
        [True, True]
        >>> sent, less = (float(result.metrics["bytes"][-1]) for result in ends)
        >>> round(sent / less, 1)
        7.8

    References:
        Koloskova, Stich and Jaggi, *Decentralized stochastic optimization and gossip algorithms with compressed
        communication*, International Conference on Machine Learning, 2019: with ``DGD(combine="after")`` this is their
        CHOCO-SGD, and :math:`\zeta` their consensus step size; Seide, Fu, Droppo, Li and Yu,
        *1-bit stochastic gradient descent*, Interspeech, 2014, for error feedback.
    """

    method: Algorithm[Any]
    compress: str | Compressor = "int8"
    damping: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.method, Algorithm) or isinstance(self.method, Compressed):
            raise SettingsError(
                f"method is {type(self.method).__name__}; give a method of the library or of your own, such as "
                "d3gd.PerronD3GD(step_size=0.1)"
            )
        if self.method.needs == "all agents":
            raise SettingsError(
                f"{type(self.method).__name__} sees all agents' values, so that its messages cost nothing and are not "
                "compressed; choose a decentralized method, such as PerronD3GD"
            )
        if self.damping is not None:
            within("damping", self.damping, 0, 1, closed="(]")
        compressor(self.compress)

    @property
    def survives(self) -> frozenset[Hardship]:
        """Nothing: receivers that miss a message would be out of step."""
        return frozenset()

    @property
    def relies_on(self) -> str:
        """The copies."""
        return "receivers adding up all that was sent: one that misses a message is out of step for ever"

    def init(self, net: Network, x0: Floats) -> CompressedState:
        """Start without copies."""
        if not net.reliable:
            raise SettingsError(
                f"compressed messages need every message to arrive at once: Compressed {self.relies_on}; drop "
                "compress, or the conditions (between sites, set patience = inf)"
            )
        with self._compressing(net, {}, x0.shape[1]):
            return CompressedState(self.method.init(net, x0), {})

    def step(self, net: Network, gradient: Gradient, s: CompressedState, k: int) -> CompressedState:
        """Step, with compressed messages."""
        with self._compressing(net, s.held, self.point(s).shape[1]) as coding:
            method = self.method.step(net, gradient, s.method, k)
        return CompressedState(method, net.halo.hold(coding.copies))

    def direction(self, net: Network, s: CompressedState, g: Floats, t: int) -> tuple[CompressedState, Floats]:
        """Return that of the method."""
        method, d = self.method.direction(net, s.method, g, t)
        return s._replace(method=method), d

    def arrive(self, net: Network, s: CompressedState, m: Floats, k: int) -> CompressedState:
        """Arrive, with compressed messages."""
        with self._compressing(net, s.held, self.point(s).shape[1]) as coding:
            method = self.method.arrive(net, s.method, m, k)
        return CompressedState(method, net.halo.hold(coding.copies))

    def heading(self, net: Network, s: CompressedState, k: int) -> Heading:
        """Return that of the method."""
        with self._compressing(net, s.held, 0):
            return super().heading(net, s, k)

    def weights(self, net: Network, s: CompressedState) -> Floats:
        """Return those of the method, damped."""
        with self._compressing(net, s.held, 0):
            return super().weights(net, s)

    def scale(self, net: Network, s: CompressedState) -> Floats | None:
        """Return that of the method."""
        with self._compressing(net, s.held, 0):
            return super().scale(net, s)

    def row_bytes(self, width: int) -> int:
        """Return the bytes of a message with a model of some length."""
        return int(encoded(compressor(self.compress), np.zeros((1, width))).shape[1])

    @contextmanager
    def _compressing(self, net: Network, held: dict[str, Floats], width: int) -> Iterator[Coding]:
        by = compressor(self.compress)
        coding = Coding(by, width, net.halo.copies(held) if width else {})
        with compressing(net, coding, by.damping if self.damping is None else self.damping):
            yield coding
