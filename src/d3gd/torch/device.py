"""Models and state on an accelerator, if parameters are there: only messages travel."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import torch

from d3gd.algorithms.base import Algorithm, is_coordinatewise
from d3gd.algorithms.compressed import Compressed
from d3gd.arrays import Array, Bools, Floats
from d3gd.distributed.coding import Held
from d3gd.distributed.inbox import Inbox
from d3gd.distributed.received import Received
from d3gd.kernels import tensors
from d3gd.kernels.buffers import Buffers
from d3gd.kernels.tensors import DeviceRows, torch_dtype
from d3gd.network import Network
from d3gd.torch.model import Model
from d3gd.torch.rows import Row

S = TypeVar("S")


class OneAgent(Network):
    """The network of one agent, whose rows may be arrays or on a device: operations give what they are given."""

    def exchange(self, *, over: Bools | None = None, **arrays: Any) -> Inbox:
        """Send rows; those on a device through the memory of this process, where transports find them."""
        placed = {name: rows for name, rows in arrays.items() if isinstance(rows, DeviceRows)}
        if not placed:
            return super().exchange(over=over, **arrays)
        inbox = super().exchange(over=over, **{**arrays, **{name: np.asarray(rows) for name, rows in placed.items()}})
        found: dict[str, Received] = {}

        def wait() -> None:
            for name in arrays:
                received = getattr(inbox, name)
                found[name] = Heard(placed[name], received) if name in placed else received

        return Inbox(found, wait)

    def mix(self, a: Floats, received: Received, *, double: bool = False, kept: Floats | float = 1.0) -> Any:
        """Mix where the agent's own row is."""
        if not isinstance(received, Heard):
            return super().mix(a, received, double=double, kept=kept)
        self._require(received, a)
        rows, dtype = [received.own.tensor[0], *received.others], np.float64 if double else received.dtype
        mixed = tensors.mixed(a, [rows[column] for column in self._columns], dtype)
        return mixed if received.withheld is None else (mixed + kept * received.withheld).astype(dtype)

    def wide(self, received: Received) -> Any:
        """Return the kernels of large models; None on a device."""
        return None if isinstance(received, Heard) else super().wide(received)

    def place(self, like: Any) -> Any:
        """Return new memory where rows of the state are."""
        return like.empty() if isinstance(like, DeviceRows) else super().place(like)

    def rowwise(self, equation: Callable[..., Any], *rows: Any, out: Any = None, **numbers: float) -> Any:
        """Evaluate an equation where its rows are."""
        if not any(isinstance(row, DeviceRows) for row in rows):
            return super().rowwise(equation, *rows, out=out, **numbers)
        return tensors.rowwise(partial(equation, **numbers), rows, out)

    def precise(self, values: Any) -> Any:
        """Return values in the precision of the models, where they are."""
        return values.astype(self.dtype, copy=False) if isinstance(values, DeviceRows) else super().precise(values)


class Heard(Received):
    """What arrived for an agent whose own row is on a device.

    Args:
        sent: The agent's own row.
        received: All rows, in the memory of this process.

    Attributes:
        own: Its own row, as others hold it.
        others: The rows of others, on the device.
        withheld: What compression withheld of its own row, if anything.
    """

    __slots__ = ("_received", "others", "own", "withheld")

    def __init__(self, sent: DeviceRows, received: Received) -> None:
        first, rest = received.parts()
        device, held = sent.tensor.device, isinstance(received, Held)
        self._received = received
        self.own = DeviceRows(first[:1]).to(device) if held else sent
        self.withheld: Any = sent - self.own if held else None
        self.others = torch.as_tensor(rest if received.apart else first[1:]).to(device)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of all rows in one array."""
        return self._received.shape

    @property
    def dtype(self) -> Any:
        """Their dtype."""
        return self._received.dtype

    @property
    def apart(self) -> bool:
        """Whether the agent's own row is separate."""
        return self._received.apart

    def parts(self) -> tuple[Array, Array]:
        """Return the agent's own row, and the received rows, as arrays."""
        return self._received.parts()

    def joined(self) -> Array:
        """Return all rows in one array."""
        return self._received.joined()


class DeviceModel(Model):
    """The trainable parameters as views of one row on their device.

    Args:
        groups: The groups of parameters.
        device: The device.
    """

    sliced = False  # slices are for the caches of a CPU

    def __init__(self, groups: Sequence[dict[str, Any]], device: torch.device) -> None:
        super().__init__(groups)
        self.device = device

    def placed(self, row: Floats) -> Any:
        """Return a row on the device."""
        return DeviceRows(row).to(self.device)

    def restored(self, state: S) -> S:
        """Return a state whose rows were made from arrays, with these on the device."""
        return _each(state, lambda rows: rows.to(self.device))

    def fetched(self, state: S) -> S:
        """Return a state with arrays in place of rows on the device."""
        return _each(state, np.asarray)

    def _row_of(self, tensors: Sequence[torch.Tensor | None], sizes: Sequence[int], dtype: Any) -> Row:
        return _Whole(tensors, sizes, dtype, self.buffers, self.device)


def model(groups: Sequence[dict[str, Any]], algorithm: Algorithm[Any], net: Network) -> Model:
    """Return the parameters, on their device if the method can compute there.

    Coordinate-wise methods can, on a network of :func:`d3gd.torch.network`; all others are computed on the CPU.
    """
    made = Model(groups)
    method = algorithm.method if isinstance(algorithm, Compressed) else algorithm
    device = accelerator(made.parameters) if is_coordinatewise(method) and isinstance(net, OneAgent) else None
    return made if device is None else DeviceModel(groups, device)


def accelerator(parameters: Sequence[torch.Tensor]) -> torch.device | None:
    """Return the one device of all parameters, if it is not the CPU and knows double precision."""
    device, *others = {parameter.device for parameter in parameters}
    if others or device.type == "cpu":
        return None
    try:
        torch.zeros(1, dtype=torch.float64, device=device)  # in which corrections and trackers are kept
    except (RuntimeError, TypeError):
        return None
    return device


class _Whole(Row):
    """Tensors as one row on a device, which is read whole."""

    def __init__(
        self, tensors: Sequence[torch.Tensor | None], sizes: Sequence[int], dtype: Any, buffers: Buffers, device: Any
    ) -> None:
        super().__init__(tensors, sizes, dtype, buffers)
        self._where = {"dtype": torch_dtype(dtype), "device": device}

    def whole(self) -> Any:
        """Return all numbers in new memory."""
        sizes = [last - first for first, last in pairwise(self._ends)]
        flat = [
            torch.zeros(size, **self._where) if tensor is None else tensor.to(**self._where)
            for tensor, size in zip(self._tensors, sizes, strict=True)
        ]
        return DeviceRows(torch.cat(flat)[None])


def _each(state: S, change: Callable[[DeviceRows], Any]) -> S:
    """Return a (nested) state with each of its rows on a device changed."""
    fields = [
        _each(value, change) if isinstance(value, tuple) else change(value) if isinstance(value, DeviceRows) else value
        for value in state  # type: ignore[attr-defined]
    ]
    return type(state)(*fields)
