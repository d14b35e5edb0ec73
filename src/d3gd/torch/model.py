"""The parameters that are trained, as an agent's model."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from d3gd.arrays import Floats
from d3gd.errors import D3GDError, SettingsError
from d3gd.torch.checks import require_real
from d3gd.torch.rows import Row, gathered, parts, torch_dtype, write


class Model:
    """The trainable parameters, in the order of their groups, and the row of numbers that they are.

    The row of a small model is a copy. That of a large one, :meth:`shared`, is the memory that parameters are views of,
    so that there is no second copy; those of another precision, device or layout keep their own memory.

    Args:
        groups: The groups of parameters.
    """

    def __init__(self, groups: Sequence[dict[str, Any]]) -> None:
        self.parameters = _trainable(groups)
        require_real(self.parameters)
        self.sizes = [parameter.numel() for parameter in self.parameters]
        self.dim = sum(self.sizes)
        self._views: list[torch.Tensor] = []
        self._own: list[tuple[torch.Tensor, torch.Tensor]] = []  # parameters with memory of their own, and their part
        self._row: Floats | None = None
        self._bounds: list[int] = []
        self._seen: list[tuple[int, int]] = []
        self._sums: list[float] = []

    def start(self, dtype: Any) -> Floats:
        """Return a new row of the parameters' values."""
        return gathered(self.parameters, dtype)

    def gradients(self, dtype: Any) -> Row:
        """Return the parameters' gradients: dense, and zero where there is none."""
        return Row([parameter.grad for parameter in self.parameters], self.sizes, dtype)

    def share(self, row: Floats, bounds: list[int]) -> None:
        """Make the parameters views of a row where possible; the others take its values.

        Args:
            row: The row.
            bounds: Where its slices start, and its end.
        """
        self._row, self._bounds, self._own = row, bounds, []
        self._views = parts(row, self.parameters)
        for parameter, view in zip(self.parameters, self._views, strict=True):
            if _can_share(parameter, torch_dtype(row.dtype)):
                parameter.data = view
            else:
                self._own.append((parameter, view))
        self.written()

    def write(self, row: Floats) -> None:
        """Write a row into the parameters."""
        write(row, self.parameters)

    @torch.no_grad()
    def written(self, sums: list[float] | None = None) -> None:
        """Note that the row has changed, with the sums of its slices."""
        for parameter, part in self._own:
            parameter.copy_(part)
        torch.autograd.graph.increment_version(self.parameters)  # a graph from before it must not be used any more
        self._sums, self._seen = sums or self._slice_sums(), self._marks()

    def require_untouched(self, groups: Sequence[dict[str, Any]], row: Floats, *, thorough: bool) -> None:
        """Raise an error if other code has changed the parameters, or which of them are trainable.

        Args:
            groups: The groups of parameters.
            row: Their values after the last step.
            thorough: Whether to compare numbers where neither versions nor addresses of a shared row have changed.
        """
        changed = {id(p) for p in _trainable(groups)} ^ {id(p) for p in self.parameters}
        for parameter in (p for group in groups for p in group["params"] if id(p) in changed):
            raise SettingsError(
                f"a parameter of shape {tuple(parameter.shape)} was {'un' * parameter.requires_grad}frozen after the "
                "optimizer was created, and its model cannot change; create a new optimizer on all ranks"
            )
        if self._row is None:
            for parameter, part in zip(self.parameters, parts(row, self.parameters), strict=True):
                _require_equal(parameter, part)
            return
        marks = self._marks()
        if marks == self._seen and not thorough:
            return
        for place, (parameter, view) in enumerate(zip(self.parameters, self._views, strict=True)):
            if marks[place][1] != self._seen[place][1]:  # other memory with the same values is taken back
                _require_equal(parameter, view)
        if self._slice_sums() != self._sums:
            raise D3GDError(_CHANGED.format("a parameter"))
        for parameter, part in self._own:
            _require_equal(parameter, part)
        if any(mark[1] != seen[1] for mark, seen in zip(marks, self._seen, strict=True)):
            self.share(self._row, self._bounds)
        self._seen = self._marks()

    def _marks(self) -> list[tuple[int, int]]:
        """Return what tells that a parameter was written to, or has other memory."""
        return [(parameter._version, parameter.data_ptr()) for parameter in self.parameters]

    def _slice_sums(self) -> list[float]:
        assert self._row is not None
        return [slice_sum(self._row[:, first:last]) for first, last in pairwise(self._bounds)]


_CHANGED = (
    "{} was changed since the last step; the optimizer keeps the model and would overwrite it: load its state_dict "
    "too, or create a new optimizer"
)


def slice_sum(numbers: Floats) -> float:
    """Return a sum that tells whether numbers have changed, and whether they are finite."""
    return float(np.add.reduce(numbers[0]))


def _trainable(groups: Sequence[dict[str, Any]]) -> list[torch.Tensor]:
    """Return the parameters that are not frozen."""
    return [p for group in groups for p in group["params"] if p.requires_grad]


def _can_share(parameter: torch.Tensor, dtype: torch.dtype) -> bool:
    plain = type(parameter.data) is torch.Tensor and parameter.layout == torch.strided
    return plain and parameter.device.type == "cpu" and parameter.dtype == dtype and parameter.is_contiguous()


def _require_equal(parameter: torch.Tensor, expected: torch.Tensor) -> None:
    found, kept = parameter.detach(), expected.to(parameter.device, parameter.dtype)
    if not (torch.equal(found, kept) or torch.allclose(found, kept, rtol=0, atol=0, equal_nan=True)):
        raise D3GDError(_CHANGED.format(f"a parameter of shape {tuple(found.shape)}"))
