"""The kernels in PyTorch, for rows of numbers on a device.

Methods are written with the operators of NumPy. Its protocols let another kind of array take part in them, so that the
same lines run on a device. Sums have the order of the other kernels, and products are rounded before they are added, so
that on the CPU, results have the same bits.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.lib.mixins import NDArrayOperatorsMixin

from d3gd.arrays import Array

_PIECE = 1 << 22  # numbers of a row at a time, so that intermediate results are small beside a large model

_UFUNCS: dict[Any, Callable[..., torch.Tensor]] = {
    np.add: torch.add,
    np.subtract: torch.subtract,
    np.multiply: torch.multiply,
    np.divide: torch.divide,
    np.negative: torch.negative,
    np.absolute: torch.absolute,
    np.square: torch.square,
    np.power: torch.pow,
    np.sqrt: torch.sqrt,
    np.exp: torch.exp,
    np.log: torch.log,
    np.maximum: torch.maximum,
    np.minimum: torch.minimum,
}
_DTYPES: dict["np.dtype[Any]", torch.dtype] = {
    np.dtype(np.float64): torch.float64,
    np.dtype(np.float32): torch.float32,
}
_NAMES: dict[torch.dtype, "np.dtype[Any]"] = {theirs: ours for ours, theirs in _DTYPES.items()}


class DeviceRows(NDArrayOperatorsMixin):
    """Rows of numbers on a device, with NumPy's arithmetic and its rules of precision.

    What is not arithmetic is computed by NumPy on a copy, which cannot be written to.

    Args:
        values: The rows, (agents, d), float32 or float64.

    Example:
        >>> rows = DeviceRows(torch.ones(1, 3))
        >>> moved = rows - 0.5 * np.array([[3.0]]) * np.sqrt(rows)
        >>> moved.tensor
        tensor([[-0.5000, -0.5000, -0.5000]], dtype=torch.float64)
    """

    def __init__(self, values: torch.Tensor | Array) -> None:
        self.tensor = torch.as_tensor(values)

    @property
    def shape(self) -> tuple[int, ...]:
        """Their shape."""
        return tuple(self.tensor.shape)

    @property
    def size(self) -> int:
        """The number of numbers."""
        return self.tensor.numel()

    @property
    def dtype(self) -> "np.dtype[Any]":
        """Their precision, as NumPy names it."""
        return _NAMES[self.tensor.dtype]

    def astype(self, dtype: Any, copy: bool = True) -> "DeviceRows":
        """Return them in another precision."""
        return DeviceRows(self.tensor.to(torch_dtype(dtype), copy=copy))

    def copy(self) -> "DeviceRows":
        """Return a copy."""
        return DeviceRows(self.tensor.clone())

    def empty(self) -> "DeviceRows":
        """Return new memory for rows like these."""
        return DeviceRows(torch.empty_like(self.tensor))

    def to(self, device: torch.device) -> "DeviceRows":
        """Return them on a device."""
        return DeviceRows(self.tensor.to(device))

    def __len__(self) -> int:
        return len(self.tensor)

    def __getitem__(self, place: Any) -> Any:
        return _fetched(self)[place]

    def __setitem__(self, place: Any, values: Any) -> None:
        self.tensor[place] = self._operand(values)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # protocols that it does not have
            raise AttributeError(name)
        return getattr(_fetched(self), name)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        host: Array = self.tensor.detach().cpu().numpy()
        return host if dtype is None else host.astype(dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **words: Any) -> Any:
        function = _UFUNCS.get(ufunc)
        if function is None or method != "__call__" or words.keys() - {"out", "dtype"}:
            return self._by_numpy(getattr(ufunc, method), inputs, words)
        operands = [self._operand(value) for value in inputs]
        if "dtype" in words:
            operands = [operand.to(torch_dtype(words["dtype"])) for operand in operands]
        result = DeviceRows(function(*operands))
        if "out" not in words:
            return result
        [out] = words["out"]
        out[...] = result
        return out

    def __array_function__(self, function: Any, types: Any, args: tuple[Any, ...], words: dict[str, Any]) -> Any:
        ours = _FUNCTIONS.get(function)
        if ours is None or not all(isinstance(arg, DeviceRows) for arg in args):
            return self._by_numpy(function, args, words)
        return ours(*args, **words)

    def _operand(self, value: Any) -> torch.Tensor:
        """Return an argument as a tensor that takes part in PyTorch's rules of precision as it does in NumPy's."""
        if isinstance(value, DeviceRows):
            return value.tensor
        if not isinstance(value, np.ndarray | np.generic):
            return torch.tensor(value, dtype=torch.float64)  # a plain number, which changes no precision
        kind, device = torch_dtype(np.result_type(value, np.float32)), self.tensor.device
        if value.size == 1:  # an agent's number: to fill it in needs no copy between memories
            return torch.full((1,) * self.tensor.ndim, float(value.item()), dtype=kind, device=device)
        return torch.as_tensor(value).to(device, kind)

    def _by_numpy(self, function: Callable[..., Any], args: Sequence[Any], words: dict[str, Any]) -> Any:
        """Compute on a copy; rows of the same shape come back to the device."""
        found = function(*map(_fetched, args), **{name: _fetched(value) for name, value in words.items()})
        if isinstance(found, np.ndarray) and found.shape == self.shape and found.dtype in _DTYPES:
            return DeviceRows(found).to(self.tensor.device)
        return found


def _fetched(value: Any) -> Any:
    """Return what NumPy computes with in place of rows: a copy, to which writing would have no effect and so fails."""
    if isinstance(value, list | tuple):
        return type(value)(map(_fetched, value))
    if not isinstance(value, DeviceRows):
        return value
    host = np.asarray(value).view()
    host.flags.writeable = False
    return host


def _zeros_like(rows: DeviceRows, dtype: Any = None, **layout: Any) -> DeviceRows:
    return DeviceRows(torch.zeros_like(rows.tensor, dtype=torch_dtype(rows.dtype if dtype is None else dtype)))


def _array_equal(rows: DeviceRows, others: DeviceRows, equal_nan: bool = False) -> bool:
    same = torch.equal(rows.tensor, others.tensor)
    return same or (equal_nan and torch.allclose(rows.tensor, others.tensor, rtol=0, atol=0, equal_nan=True))


_FUNCTIONS: dict[Any, Callable[..., Any]] = {np.zeros_like: _zeros_like, np.array_equal: _array_equal}


def torch_dtype(dtype: Any) -> torch.dtype:
    """Return PyTorch's name of a precision of models."""
    return _DTYPES[np.dtype(dtype)]


def mixed(a: Array, rows: Sequence[torch.Tensor], dtype: Any) -> DeviceRows:
    r"""Return :math:`\sum_j a_j x_j` as one row, summed in the order of the edges, in a given precision.

    Args:
        a: One weight per edge.
        rows: The row, (d,), along each edge.
        dtype: The precision.
    """
    kind, total = torch_dtype(dtype), torch.zeros_like(rows[0], dtype=torch_dtype(dtype))
    for some in _pieces(len(total)):
        for weight, row in zip(a.astype(dtype).tolist(), rows, strict=True):
            total[some] += weight * row[some].to(kind)
    return DeviceRows(total[None])


def rowwise(equation: Callable[..., DeviceRows], rows: Sequence[Any], out: DeviceRows | None) -> DeviceRows:
    """Evaluate an equation of arithmetic in pieces, without intermediate results as large as its rows.

    Args:
        equation: A function of rows.
        rows: Its arguments; the first one has the shape of the result.
        out: Where to write the result, which may be an argument.

    Example:
        >>> rowwise(lambda x, y: x / y, [DeviceRows(torch.ones(1, 3)), np.array([[2.0]])], None).tensor
        tensor([[0.5000, 0.5000, 0.5000]])
    """
    [device, *_] = [row.tensor.device for row in rows if isinstance(row, DeviceRows)]
    width = rows[0].shape[1]
    wide = [row if isinstance(row, DeviceRows) or row.shape[1] < width else DeviceRows(row).to(device) for row in rows]
    result = out if isinstance(out, DeviceRows) else wide[0].empty()
    for some in _pieces(width):
        pieces = [DeviceRows(row.tensor[:, some]) if isinstance(row, DeviceRows) else row for row in wide]
        result[:, some] = equation(*pieces)
    return result


def _pieces(width: int) -> list[slice]:
    return [slice(first, min(first + _PIECE, width)) for first in range(0, width, _PIECE)]
