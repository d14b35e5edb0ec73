"""The gradients that a step evaluates, and their number."""

from collections.abc import Callable
from typing import Any

import numpy as np

from d3gd.algorithms.base import Draw
from d3gd.arrays import Array, Floats, Ints
from d3gd.errors import D3GDError
from d3gd.problems.checks import check_returned
from d3gd.random import draw_key


class Gradients:
    """A block's gradients, a :class:`d3gd.algorithms.base.Gradient`; one object serves all steps of a run.

    Args:
        evaluate: Computes the gradients at given points, (agents, dim), on the mini-batches of a key, or on all data.
            Methods may keep gradients, so those of a user's function, which may reuse its buffer, are copied.
        shape: The shape of its result.
        dtype: The precision of the models.
        source: The name of the problem, for messages.
        agents: The indices of the agents.
        bound: The largest entry of a model at which gradients must be finite.

    Attributes:
        count: Evaluations per agent so far.
        trouble: Describes the first non-finite gradient at a point within bounds, or that points were changed.
    """

    def __init__(
        self,
        evaluate: Callable[[Floats, int | None], Any],
        shape: tuple[int, ...],
        dtype: Any,
        *,
        source: str,
        agents: Ints,
        bound: float = np.inf,
    ) -> None:
        self._evaluate, self._shape, self._dtype = evaluate, shape, dtype
        self._copy = not str(getattr(evaluate, "__module__", "")).startswith("d3gd.")  # d3gd returns new arrays
        self._source, self._what, self._agents, self._bound = source, f"{source}.gradients", agents, bound
        self.count = 0
        self.trouble = ""
        self._point: Floats | None = None
        self._k = self._drawn = 0
        self._watched = False

    def begin(self, point: Floats, k: int, *, watched: bool = False) -> None:
        """Start an iteration.

        Args:
            point: The agents' models.
            k: The iteration.
            watched: Whether to check that gradients are finite and their points unchanged.
        """
        self._point, self._k, self._drawn, self._watched = point, k, 0, watched

    def __call__(self, x: Floats | None = None, *, draw: Draw = "new") -> Floats:
        """Return the gradients at the models, or at other points."""
        key: int | None = self._k
        if x is not None:
            key = self._key(draw)
            _require_points(x, self._shape)
        elif draw != "new":
            raise D3GDError(f"gradient(draw={draw!r}) has no point; write gradient(x, draw={draw!r})")
        elif self._point is None:
            raise D3GDError(
                "gradient() was called twice in a step, for the same gradients at the same models; keep what it "
                "returned, or evaluate at other points: gradient(x)"
            )
        else:
            x, self._point = self._point, None
        self.count += 1
        before = x.copy() if self._watched else x
        returned = self._evaluate(x, key)
        valid = type(returned) is type(x) and returned.dtype == self._dtype and returned.shape == self._shape
        gradients = returned if valid else check_returned(returned, self._shape, self._what)
        if self._watched:
            self._watch(before, x, gradients)
        if valid and not self._copy:
            return gradients
        precise: Floats = gradients.astype(self._dtype, copy=self._copy, subok=False)
        return precise

    def _key(self, draw: Draw) -> int | None:
        if draw is None:
            return None
        if draw == "new":
            self._drawn += 1
            return draw_key(self._k, self._drawn)
        if isinstance(draw, bool) or not isinstance(draw, (int, np.integer)) or draw < 0:
            raise D3GDError(f"draw = {draw!r}: it must be a whole number of at least 0, or None for all data")
        return draw_key(self._k, int(draw))

    def _watch(self, before: Floats, x: Floats, gradients: Array) -> None:
        if not self.trouble and not np.array_equal(x, before, equal_nan=True):
            self.trouble = f"{self._what}(x) changed x, the agents' models; work on a copy"
        finite = np.isfinite(gradients)
        if self.trouble or finite.all():
            return
        largest = np.abs(before).max(axis=1)
        bad = np.flatnonzero((largest <= self._bound) & ~finite.all(axis=1))
        if bad.size:
            row = bad[0]
            self.trouble = (
                f"the gradient of agent {self._agents[row]} in {self._source} is {gradients[row][~finite[row]][0]} at "
                f"iteration {self._k}, at a model of finite numbers up to {largest[row]:.3g}"
            )


def _require_points(x: Any, shape: tuple[int, ...]) -> None:
    if not isinstance(x, np.ndarray) or x.shape != shape or x.dtype.kind != "f":
        raise D3GDError(f"gradient(x) was given {_described(x)}; give one point per agent, floats of shape {shape}")


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} numbers of shape {value.shape}"
    return f"a {type(value).__name__}"
