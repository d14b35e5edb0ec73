r"""Messages as compressed differences to what receivers already hold.

Agent j and those who hear it keep equal copies :math:`\hat m_j` of what it sent so far. To send :math:`m_j`, it sends
:math:`q_j = C(m_j - \hat m_j)`, and all set :math:`\hat m_j \leftarrow \hat m_j + q_j`. In place of
:math:`\sum_j a_{ij} m_j`, agent i then uses

.. math:: \sum_j a_{ij} \hat m_j + s_i (m_i - \hat m_i) .

What compression withholds stays with its sender, with the factor :math:`s_i` that conserves the sum that the method
needs: 1 if rows of the weights sum to one, for the sum weighted by their Perron vector; the sum of column i where
agents push. As models come to rest, copies approach them, and nothing is withheld.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from d3gd.arrays import Array, Bools, Floats, Ints
from d3gd.distributed.compressors import Compressor, decoded, encoded
from d3gd.distributed.halo import Halo
from d3gd.distributed.inbox import Inbox
from d3gd.distributed.received import Received
from d3gd.errors import SettingsError

if TYPE_CHECKING:
    from d3gd.network import Network

Carry: TypeAlias = Callable[[dict[str, Array], Bools | None], Inbox]


class Held(Received):
    """The copies that a block holds of what it hears.

    Args:
        rows: The copies, of the block's own agents first.
        withheld: What its own agents have not sent.
    """

    __slots__ = ("withheld",)

    def __init__(self, rows: Array, withheld: Array) -> None:
        super().__init__(rows)
        self.withheld = withheld


class Coding:
    """The compression of one iteration's messages.

    Rows of the models' shape are compressed, except those whose names are capitals: these are shares, such as the
    Perron trackers Y, which must not be estimated.

    Args:
        by: The compressor.
        width: The length of a model.
        copies: What the block holds of what it hears, its own agents first.
    """

    def __init__(self, by: Compressor, width: int, copies: Mapping[str, Array]) -> None:
        self._by, self._width = by, width
        self.copies = dict(copies)
        self._arrive: Callable[[], None] | None = None

    def exchange(self, halo: Halo, carry: Carry, arrays: dict[str, Array], over: Bools | None) -> Inbox:
        """Send the rows, those of models as compressed differences.

        Args:
            halo: The exchange with other ranks.
            carry: Exchanges arrays as they are.
            arrays: The rows, by name.
            over: The edges in use, which must be all.
        """
        if over is not None:
            raise SettingsError(
                "a method prunes links, and what a link did not carry its receiver could not add to its copy; choose "
                "one that does not, such as DIGing, or no compression"
            )
        self.close()
        coded = [name for name, array in arrays.items() if array.shape[1:] == (self._width,) and not name.isupper()]
        before: dict[str, Array] = {}
        messages: dict[str, Array] = {}
        for name in coded:
            rows = arrays[name]
            held = self.copies.get(name)
            shape = (len(halo.block.heard), self._width)
            before[name] = np.zeros(shape, rows.dtype) if held is None else held.astype(rows.dtype, copy=False)
            messages[name] = encoded(self._by, rows - before[name][: len(rows)])
        inbox = carry({**arrays, **messages}, None)
        if not coded:
            return inbox
        found: dict[str, Received] = {}

        def arrive() -> None:
            self._arrive = None
            for name, rows in arrays.items():
                received = getattr(inbox, name)
                if name in before:
                    news = decoded(self._by, received.joined(), self._width).astype(rows.dtype)
                    copy = self.copies[name] = before[name] + news
                    received = Held(copy, rows - copy[: len(rows)])
                found[name] = received
            halo.decoded({name: (arrays[name], self.copies[name]) for name in coded})

        def wait() -> None:
            if self._arrive is arrive:
                arrive()

        self._arrive = arrive
        return Inbox(found, wait)

    def close(self) -> None:
        """Wait for messages that were not read, and add them to the copies."""
        if self._arrive is not None:
            self._arrive()


@contextmanager
def compressing(net: "Network", coding: Coding, damping: float) -> Iterator[None]:
    """Let a network compress its messages, and damp its weights.

    Args:
        net: The network.
        coding: The compression.
        damping: The factor of the weights; the rest stays with the agent.
    """
    net.coding, net.damping, a0 = coding, damping, net.a0
    if damping < 1:
        net.a0 = damped(a0, net.loops, damping)
    try:
        yield
        coding.close()
    finally:
        net.coding, net.damping, net.a0 = None, 1.0, a0


def damped(a: Floats, loops: Bools | Ints, damping: float) -> Floats:
    r"""Return :math:`(1 - \zeta) I + \zeta A` over edges; it has the Perron vector of A."""
    if damping == 1:
        return a
    lazy = damping * a
    lazy[loops] += 1 - damping
    return lazy


def require_undamped(net: "Network", method: str) -> None:
    """Raise an error under a compressor that needs damping, for a method whose correction has gain one.

    Copies then lag, and a correction that follows with a lag of some iterations is unstable unless its gain is small.
    """
    if net.damping < 1:
        raise SettingsError(
            f"{method} corrects at once what it hears, which is unstable if copies lag behind, as under a compressor "
            'with damping; use "int8", "int4" or "bf16", or PerronD3GD, whose gain follows the damping'
        )
