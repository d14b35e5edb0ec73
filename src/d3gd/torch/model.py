"""The parameters that are trained, as an agent's model."""

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, TypeVar

import numpy as np
import torch

from d3gd.arrays import Floats, Ints
from d3gd.errors import D3GDError, SettingsError
from d3gd.kernels.buffers import LARGE, Buffers
from d3gd.torch.checks import require_real
from d3gd.torch.rows import Row, parts

S = TypeVar("S")

_SOME = 16  # numbers of each parameter that are looked at before every step


class Model:
    """The trainable parameters, in the order of their groups, as views of one row of numbers.

    Parameters of another precision, device or layout keep their own memory, and take the values of the row. Where it is
    on their device, see :class:`d3gd.torch.device.DeviceModel`.

    Args:
        groups: The groups of parameters.

    Attributes:
        parameters: The parameters.
        sizes: The number of numbers of each.
        dim: The number of all.
        buffers: Memory for rows that are not needed for long.
        device: Where the row is.
        sliced: Whether it may be stepped in slices.
    """

    device = torch.device("cpu")
    sliced = True

    def __init__(self, groups: Sequence[dict[str, Any]]) -> None:
        self.parameters = [p for group in groups for p in group["params"] if p.requires_grad]
        require_real(self.parameters)
        self.sizes = [parameter.numel() for parameter in self.parameters]
        self.dim = sum(self.sizes)
        self._dtypes = [parameter.dtype for parameter in self.parameters]
        self.buffers = Buffers(LARGE)
        self._views: list[torch.Tensor] = []
        self._own: list[tuple[torch.Tensor, torch.Tensor]] = []  # parameters with memory of their own, and their part
        self._row: Floats = np.empty((1, 0))
        self._seen: list[tuple[int, int]] = []
        starts = [0, *accumulate(self.sizes)]
        self._places = np.concatenate([_spread(*each) for each in zip(starts, self.sizes, strict=False)])
        self._some = b""

    @property
    def form(self) -> list[tuple[list[int], str]]:
        """The shape and precision of each parameter."""
        return [(list(parameter.shape), str(parameter.dtype)) for parameter in self.parameters]

    def start(self, dtype: Any) -> Floats:
        """Return a new row of the parameters' values; they move there one by one, so that no two models are needed."""
        row: Floats = np.empty((1, self.dim), dtype=dtype)
        for parameter, view in zip(self.parameters, parts(row, self.parameters), strict=True):
            view.copy_(parameter.detach())
            if _can_share(parameter, view):
                parameter.data = view
        return row

    def gradients(self, dtype: Any) -> Row:
        """Return the parameters' gradients: dense, and zero where there is none."""
        return self._row_of([parameter.grad for parameter in self.parameters], self.sizes, dtype)

    def row(self, numbers: torch.Tensor | None, dtype: Any) -> Row:
        """Return one tensor for all parameters, or zeros."""
        return self._row_of([numbers], [self.dim], dtype)

    def _row_of(self, tensors: Sequence[torch.Tensor | None], sizes: Sequence[int], dtype: Any) -> Row:
        return Row(tensors, sizes, dtype, self.buffers)

    def placed(self, row: Floats) -> Floats:
        """Return a row where the model is."""
        return row

    def restored(self, state: S) -> S:
        """Return a state of arrays where the model is."""
        return state

    def fetched(self, state: S) -> S:
        """Return a state as arrays."""
        return state

    def share(self, row: Floats) -> None:
        """Make the parameters views of a row where possible; the others take its values."""
        self._row, self._own = row, []
        self._views = parts(row, self.parameters)
        for parameter, view in zip(self.parameters, self._views, strict=True):
            if _can_share(parameter, view):
                parameter.data = view
            else:
                self._own.append((parameter, view))
        self.written()

    def write(self, row: Floats) -> None:
        """Write a row into the parameters."""
        if row is not self._row:
            self._row[...] = row
        self.written()

    @torch.no_grad()
    def written(self) -> None:
        """Note that the row has changed."""
        for parameter, part in self._own:
            parameter.copy_(part)
        torch.autograd.graph.increment_version(self.parameters)  # a graph from before it must not be used any more
        self._seen, self._some = self._marks(), self._sample()

    def require_untouched(
        self, groups: Sequence[dict[str, Any]], is_same: Callable[[Floats], bool], *, thorough: bool
    ) -> None:
        """Raise an error if other code has changed the parameters, or which of them are trainable.

        Args:
            groups: The groups of parameters.
            is_same: Whether the row has the values of the last step.
            thorough: Whether to look at all values if versions, addresses and some values have not changed.
        """
        wanted, place = self.parameters, 0
        for parameter in (p for group in groups for p in group["params"]):
            was = place < len(wanted) and wanted[place] is parameter
            place += was
            if was != parameter.requires_grad:
                raise SettingsError(
                    f"a parameter of shape {tuple(parameter.shape)} was {'un' * parameter.requires_grad}frozen after "
                    "the optimizer was created, and its model cannot change; create a new optimizer on all ranks"
                )
        if place < len(wanted):
            raise SettingsError(
                f"a parameter of shape {tuple(wanted[place].shape)} was taken out of its group after the optimizer was "
                "created, and its model cannot change; create a new optimizer on all ranks"
            )
        marks, same = self._marks(), self._sample() == self._some
        if not thorough and marks == self._seen and same:
            return
        moved = False
        for i, (parameter, view, (_, now), (_, before)) in enumerate(
            zip(wanted, self._views, marks, self._seen, strict=True)
        ):
            if now != before:
                _require_precision(parameter, self._dtypes[i], view.dtype)
                _require_equal(parameter, view)  # other memory with the same values is taken back
                moved = True
        if not (same and is_same(self._row)):
            raise D3GDError(_CHANGED.format("a parameter"))
        for parameter, part in self._own:
            _require_equal(parameter, part)
        if moved:
            self.share(self._row)
        self._seen = self._marks()

    def _marks(self) -> list[tuple[int, int]]:
        """Return what tells that a parameter was written to, or has other memory."""
        return [(parameter._version, parameter.data_ptr()) for parameter in self.parameters]

    def _sample(self) -> bytes:
        """Return some numbers of each parameter, by which writes that leave no other trace are found."""
        return self._row[0].take(self._places).tobytes() if self.sliced else b""


_CHANGED = (
    "{} was changed since the last step; the optimizer keeps the model and would overwrite it: load its state_dict "
    "too, or create a new optimizer"
)


def _spread(start: int, size: int) -> Ints:
    """Return some places of a parameter in the row."""
    places: Ints = start + np.linspace(0, size - 1, min(size, _SOME)).astype(np.int64)
    return places


def _can_share(parameter: torch.Tensor, view: torch.Tensor) -> bool:
    plain = type(parameter.data) is torch.Tensor and parameter.layout == torch.strided
    if not plain or (parameter.device.type == "cpu" and parameter.is_shared()):  # type: ignore[no-untyped-call]
        return False  # other processes read it there; on a GPU, all memory counts as shared
    return parameter.device == view.device and parameter.dtype == view.dtype and parameter.is_contiguous()


def _require_precision(parameter: torch.Tensor, before: torch.dtype, kept: torch.dtype) -> None:
    """Raise an error for a parameter that has become more precise than what is kept of it."""
    if parameter.dtype != before and torch.promote_types(parameter.dtype, kept) != kept:
        raise SettingsError(
            f"a parameter has become {parameter.dtype}, and the optimizer keeps {kept}; convert the model before the "
            "optimizer and its network are created"
        )


def _require_equal(parameter: torch.Tensor, expected: torch.Tensor) -> None:
    found, kept = parameter.detach(), expected.to(parameter.device, parameter.dtype)
    if not (torch.equal(found, kept) or torch.allclose(found, kept, rtol=0, atol=0, equal_nan=True)):
        raise D3GDError(_CHANGED.format(f"a parameter of shape {tuple(found.shape)}"))
