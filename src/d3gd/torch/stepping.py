"""The steps of an algorithm on this process's model."""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, cast

import numpy as np
from threadpoolctl import ThreadpoolController

from d3gd.algorithms.around import makes_directions, resized
from d3gd.algorithms.base import Algorithm, Given, Heading, is_coordinatewise
from d3gd.arrays import Array, Floats
from d3gd.engine.checks import require_state
from d3gd.engine.gradients import Gradients
from d3gd.errors import D3GDError
from d3gd.network import Network
from d3gd.schedules import at
from d3gd.torch import slices
from d3gd.torch.between import Arriving, Between, SoFar, continued
from d3gd.torch.checks import require_computable, require_finite
from d3gd.torch.local import Local
from d3gd.torch.model import Model
from d3gd.torch.plain import Plain
from d3gd.torch.rows import Row, is_finite
from d3gd.torch.saving import restored
from d3gd.torch.turn import Turn


class Steps:
    """The state of an algorithm, and the model in it: stepped whole, or slice by slice if it is large.

    Args:
        algorithm: The method.
        net: This process's agent.
        model: The parameters.
        source: Where displacements come from.
        x0: The model before the first iteration.
        every: The number of local steps per exchange.
        steered: Whether the algorithm's offset steers them.

    Attributes:
        memory: The state.
    """

    def __init__(
        self,
        algorithm: Algorithm[Any],
        net: Network,
        model: Model,
        source: Plain | Local,
        x0: Floats,
        every: int = 1,
        *,
        steered: bool = True,
    ) -> None:
        self._algorithm, self._net, self._model, self._source = algorithm, net, model, source
        # As in d3gd.run, one thread keeps results bitwise equal; coordinate-wise methods do not use BLAS.
        self._blas = ThreadpoolController()
        with self._blas.limit(limits=1, user_api="blas"):
            self.memory = algorithm.init(net, model.placed(x0))
        self._require_state(algorithm, "init")
        self._every, self._steered = every, steered
        self._cuts = slices.bounds(algorithm, net, model.sizes) if model.sliced else None
        self._seams = slices.seams(model.sizes)  # between exchanges
        self._inside = net if self._cuts is None else cast(Network, slices.Sliced(net))
        self._sums: list[float] | None = None  # of the slices of a large model, after an exchange
        self._heading: tuple[Algorithm[Any], Heading] | None = None
        self._torn, self._sizes = False, list[tuple[Algorithm[Any], float, Algorithm[Any]]]()
        self._keep(self.memory)

    @property
    def point(self) -> Floats:
        """The model, after the last local step."""
        return self._algorithm.point(self.memory) if self._every == 1 else self._so_far.x

    def saved(self) -> dict[str, Array]:
        """Return the local steps since the last exchange as arrays, if there may be any."""
        return {} if self._every == 1 else self._so_far.arrays()

    def load(self, arrays: dict[str, Array]) -> None:
        """Continue from the arrays of a saved state."""
        so_far = continued(arrays) if self._every > 1 else None
        if so_far is not None:
            so_far = so_far._replace(x=self._model.placed(so_far.x))
        self._keep(self._model.restored(restored(self.memory, arrays)), so_far)
        self._torn = False

    def renew(self) -> None:
        """Start the method again from the model if the network has changed."""
        memory = self._net.renewed(self._algorithm, self.memory)
        if memory is not self.memory:
            self._keep(memory)

    def _keep(self, memory: Any, so_far: SoFar | None = None) -> None:
        """Keep a state that no step has made, and the local steps since then."""
        if self._cuts is not None:
            memory = slices.separate(memory, self._model.dim)
        self.memory, self._heading = memory, None
        if self._every > 1:
            self._so_far = so_far or SoFar(self._algorithm.point(memory).copy())
        if self._cuts is None:
            self._model.share(self.point.copy())
        else:
            self._model.share(self.point)
            self._sums = slices.sums(self.point, self._cuts)

    def require_untouched(self, groups: Sequence[dict[str, Any]], *, thorough: bool) -> None:
        """Raise an error if other code has changed the parameters since the last step.

        Args:
            groups: The groups of parameters.
            thorough: Whether to look at the numbers of a large model if nothing hints at a change.
        """
        self._model.require_untouched(groups, self._is_same, thorough=thorough or self._cuts is None)

    def _is_same(self, row: Floats) -> bool:
        if self._cuts is not None:
            # Between exchanges the model is not added up; it has some numbers of its own to look at.
            return self._sums is None or slices.sums(row, self._cuts) == self._sums
        return np.array_equal(row, self.point) or np.array_equal(row, self.point, equal_nan=True)

    def require_whole(self) -> None:
        """Raise an error if the last step ended halfway."""
        if self._torn:
            raise D3GDError("the last step was interrupted, and part of the model has changed; load a saved state")

    def direction(self, turn: Turn, k: int) -> Row:
        """Return the gradient, or what a local optimizer proposes per unit of the step size."""
        return turn.direction(self._source, self._model, self._net.dtype, k)

    def take(self, algorithm: Algorithm[Any], k: int, turn: Turn) -> None:
        """Take a step of iteration ``k``, and write the new model to the parameters.

        Args:
            algorithm: The method, with the step size of this step.
            k: The iteration.
            turn: The call of the optimizer.
        """
        one = nullcontext() if is_coordinatewise(algorithm) else self._blas.limit(limits=1, user_api="blas")
        with one, np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # divergence shows in the numbers
            if self._every > 1:
                self._take_local(algorithm, k, turn)
            elif self._cuts is not None:
                self._take_slices(self._cuts, algorithm, k, turn)
            else:
                self._take_whole(algorithm, k, turn)
        if turn.waiting:
            self.direction(turn, k)
        if k == 0 and (self._every == 1 or self._so_far.steps == 0):
            self._require_state(algorithm, "step")

    def _require_state(self, algorithm: Algorithm[Any], verb: str) -> None:
        memory, name = self._model.fetched(self.memory), type(algorithm).__name__
        require_state(algorithm, self._net, memory, self._model.dim, name, verb)

    def _take_whole(self, algorithm: Algorithm[Any], k: int, turn: Turn) -> None:
        here, model = self.point, self._model

        def evaluate(x: Floats, key: int | None) -> Floats:
            elsewhere = x is not here and not turn.idle
            require_computable(elsewhere, key is None, turn.has_closure, isinstance(self._source, Local))
            if elsewhere:
                model.write(x)
            found = self.direction(turn, k).whole()
            if elsewhere:
                model.write(here)
            require_finite(is_finite(found))
            return found

        gradients = Gradients(evaluate, here.shape, here.dtype, source="the model", agents=self._net.agents)
        gradients.begin(here, k)
        memory = self._net.take(algorithm, gradients, self.memory, k)
        require_finite(is_finite(algorithm.point(memory)))
        self.memory = memory
        model.write(self.point)

    def _take_slices(self, cuts: list[int], algorithm: Algorithm[Any], k: int, turn: Turn) -> None:
        row: list[Row] = []

        def direction(part: Any, first: int, last: int) -> Floats:
            if not row:
                row.append(self.direction(turn, k))
                require_finite(row[0].is_finite())
                self._torn = True  # from here on, until the last slice is written
            return row[0].part(first, last)

        if isinstance(self._source, Local):  # it moves the parameters and puts them back: not while they are sent
            direction(None, 0, 0)
        self.memory, self._sums = slices.step(algorithm, self._net, self.memory, k, direction, cuts)
        self._torn = False
        self._model.write(self.point)

    def _take_local(self, algorithm: Algorithm[Any], k: int, turn: Turn) -> None:
        """Take a local step, and after the last of them exchange."""
        d = self.direction(turn, k)
        require_finite(d.is_finite() if self._cuts is None else d.looks_finite())
        gamma = at(getattr(algorithm, "step_size"), k)  # noqa: B009 - it has one, see require_steerable
        x, size, steps = self._so_far
        t, size, steps = self._net.age(k) * self._every + steps, size + gamma, steps + 1
        self._torn = self._cuts is not None
        memory, x = self._followed(
            Between(self._sized(algorithm, self._every * gamma), self._inside, k, t, gamma, self._steered), x, d
        )
        if steps == self._every:
            memory, x = self._exchanged(
                Between(self._sized(algorithm, size), self._inside, k, t, size, self._steered), memory, x
            )
            size, steps = 0.0, 0
        self.memory, self._so_far = memory, SoFar(x, size, steps)
        self._model.write(x)
        self._torn = False

    def _sized(self, algorithm: Algorithm[Any], size: float) -> Algorithm[Any]:
        """Return a method with another step size, the same as in the last steps if that has not changed."""
        for given, step_size, made in self._sizes:
            if given is algorithm and step_size == size:
                return made
        made = resized(algorithm, size)
        self._sizes = [*self._sizes[-1:], (algorithm, size, made)]  # in local steps and in the exchange
        return made

    def _followed(self, local: Between, x: Floats, g: Row) -> tuple[Any, Floats]:
        """Return state and model after a local step; large ones change in place."""
        heading = self._course(local)
        if self._cuts is None:
            memory, x = local.follow(heading, self.memory, x, g.whole())
            require_finite(is_finite(x))
            return memory, x

        def move(part: Any, first: int, last: int) -> Any:
            here = x[:, first:last]
            after, new = local.follow(heading.part(first, last), part, here, g.part(first, last))
            slices.put(new, here)
            return after

        memory = slices.follow(self.memory, self._seams, move, changes=makes_directions(local.algorithm))
        self._sums = None
        return memory, x

    def _course(self, local: Between) -> Heading:
        """Return where local steps go, which changes with an exchange, or with the step size, only."""
        if self._heading is None or self._heading[0] is not local.algorithm:
            self._heading = local.algorithm, local.heading(self.memory)
        return self._heading[1]

    def _exchanged(self, local: Between, memory: Any, x: Floats) -> tuple[Any, Floats]:
        """Return state and model after an exchange at the end of local steps; large ones change in place."""
        algorithm, k, self._heading = cast(Algorithm[Any], Arriving(local.algorithm)), local.k, None
        if self._cuts is None:
            memory = self._net.take(algorithm, Given(local.led(memory, x)), memory, k)
            require_finite(is_finite(algorithm.point(memory)))
            return memory, algorithm.point(memory)

        def led(part: Any, first: int, last: int) -> Floats:
            slices.finite_sum(x[:, first:last])  # before others hear it
            return local.led(part, x[:, first:last])

        memory, self._sums = slices.step(algorithm, self._net, memory, k, led, self._cuts, into=x)
        return memory, x
