"""A PyTorch optimizer for one agent per process."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal, overload

import numpy as np
from threadpoolctl import ThreadpoolController

from d3gd import weights as weighting
from d3gd.algorithms.base import Algorithm, require_admissible
from d3gd.algorithms.identity import describe
from d3gd.arrays import CSR, Array, Floats
from d3gd.digest import digest
from d3gd.digraph import require_graph
from d3gd.engine.checks import require_declared, require_state
from d3gd.engine.gradients import Gradients
from d3gd.errors import D3GDError, DivergedError, RecordError, SettingsError
from d3gd.graphs import Digraph
from d3gd.network import Network
from d3gd.problems.torch.batches import KeyedBatches
from d3gd.schedules import at
from d3gd.state import flatten, restore
from d3gd.transports import Transport, connect
from d3gd.validation import one_of

try:
    import torch
except ImportError as error:
    raise D3GDError(f"d3gd.torch needs PyTorch ({error}); install it with: pip install 'd3gd[torch]'") from error

__all__ = ["DecentralizedOptimizer", "KeyedBatches", "network"]

_PREFIX = "state."  # of the algorithm's arrays in a state_dict
_SIZES = ("lr", "initial_lr")  # step sizes of a group; a scheduler adds the second


def network(
    graph: Digraph,
    *,
    transport: Transport | None = None,
    weights: CSR | None = None,
    seed: int = 0,
    dtype: Literal["float64", "float32"] | None = None,
) -> Network:
    """Return this process's agent in a network of one agent per process.

    Args:
        graph: The network; strongly connected, one agent per process.
        transport: The processes, from ``d3gd.transports.connect()``; by default those of the launcher.
        weights: The initial weights; Metropolis weights by default.
        seed: The seed of the algorithm's random draws.
        dtype: The precision of models while they are mixed, and of messages; by default that of the parameters, or
            float32 if theirs is lower. Edge weights and Perron weights are always in double precision.

    Returns:
        The network to pass to :class:`DecentralizedOptimizer`; ``int(network.agents[0])`` is this process's agent.
    """
    if dtype is not None:
        one_of("dtype", dtype, ("float64", "float32"))
    ranks = transport or connect()
    ranks.require_same_versions()
    with ranks.together():
        require_graph(graph)
        if ranks.ranks != graph.n:
            raise SettingsError(
                f"{ranks.ranks} process{'es' * (ranks.ranks > 1)} for {graph.n} agents: an optimizer trains one agent; "
                f"start torchrun --nproc-per-node {graph.n}, or train all in one process with "
                "d3gd.problems.torch_module and d3gd.run"
            )
        graph.require_strongly_connected()
        matrix = weighting.metropolis(graph) if weights is None else weighting.check(weights, graph)
    kind = _Following if dtype is None else Network
    return kind(graph, matrix, seed=seed, needs="in-neighbours", transport=ranks, dtype=dtype or np.float64)


class _Following(Network):
    """A network that adopts the precision of its model."""

    settled = False

    def follow(self, parameters: Sequence[torch.Tensor]) -> None:
        """Adopt the lowest supported precision that represents all parameters exactly."""
        double = any(parameter.dtype == torch.float64 for parameter in parameters)
        wanted = np.dtype(np.float64 if double else np.float32)
        if self.settled and self.dtype != wanted:
            raise SettingsError(
                f"the network already has a {self.dtype} model, and this one is {wanted}; create a network for each, "
                'or set the precision: d3gd.torch.network(..., dtype="float64")'
            )
        self.dtype, self.settled = wanted, True


class DecentralizedOptimizer(torch.optim.Optimizer):
    r"""An optimizer that trains one agent's model jointly with its neighbours', one agent per process.

    Every process runs the same script: ``loss.backward()`` on its own data, then ``step()``, which exchanges models
    with the neighbours as the algorithm requires and writes the new model into the parameters. Steps are collective:
    all processes take the same number of them.

    All trainable parameters together are the agent's model, regardless of their groups; a parameter without a gradient
    has gradient zero, and is mixed like all others. The algorithm owns the model: changing parameters other than by
    ``step`` is an error. Buffers, such as running statistics, stay with the process; see :meth:`mix_buffers`.

    The step size is the algorithm's, and every group's ``lr`` shows it. If it is a constant, ``lr`` may be changed, as
    the schedulers of ``torch.optim.lr_scheduler`` do: equally in all groups and processes, and never to zero.

    Args:
        params: The parameters, or groups of them. Frozen ones (``requires_grad=False``) are ignored.
        algorithm: The method, e.g. ``d3gd.PerronD3GD(step_size=0.1)``.
        network: This process's agent, from :func:`network`.
        same_start: Whether all agents start from the parameters of the first process, not each from its own.

    Attributes:
        algorithm: The method.
        network: This process's agent and its links.
        agent: The index of the agent.
        iteration: The number of steps taken.
        status: ``"running"``, or ``"diverged"`` after a step that would have made the model NaN or infinite.

    Example:
        Under ``torchrun --nproc-per-node 4``::

            with d3gd.transports.connect() as transport:
                net = d3gd.torch.network(d3gd.graphs.exponential(4), transport=transport)
                opt = d3gd.torch.DecentralizedOptimizer(
                    model.parameters(), algorithm=d3gd.PerronD3GD(step_size=0.1), network=net
                )
                for inputs, target in loader:
                    opt.zero_grad()
                    loss(model(inputs), target).backward()
                    opt.step()
    """

    _made = False
    status: Literal["running", "diverged"] = "running"

    def __init__(
        self,
        params: Iterable[Any],
        algorithm: Algorithm[Any],
        network: Network,
        *,
        same_start: bool = True,
    ) -> None:
        transport = network.halo.transport
        with transport.together():
            _require_one_agent(algorithm, network)
            network.permit(algorithm.needs)
            size = getattr(algorithm, "step_size", None)
            super().__init__(params, {} if size is None else {"lr": at(size, 0)})
            self.algorithm, self.network, self.agent, self.iteration = algorithm, network, int(network.agents[0]), 0
            self._made = True
            self._trained = [p for group in self.param_groups for p in group["params"] if p.requires_grad]
            _require_real(self._trained)
            if isinstance(network, _Following):
                network.follow(self._trained)
        self._dim = sum(p.numel() for p in self._trained)
        given = network.given
        plan = [describe(algorithm), given.graph.indptr, given.graph.sources, given.a0, self._dim]
        transport.require_same(
            digest(*plan, str(network.dtype), same_start), "an algorithm, network, or number or precision of parameters"
        )
        x0 = self._gathered(self._trained)
        if same_start:
            x0 = network.halo.first(x0)
        self._blas = ThreadpoolController()
        with self._blas.limit(limits=1, user_api="blas"):
            self._memory = algorithm.init(network, x0)
        require_state(algorithm, network, self._memory, self._dim, type(algorithm).__name__, "init")
        _write(algorithm.point(self._memory), self._trained)

    @overload
    def step(self, closure: None = None) -> None: ...

    @overload
    def step(self, closure: Callable[[], float]) -> float: ...

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """Use the gradients of ``backward``, exchange, and write the new model to the parameters.

        Args:
            closure: Computes the loss and its gradients, as for any optimizer of PyTorch. Methods that send models
                before gradients, such as Di-DGD, have messages in flight meanwhile. A method that evaluates gradients
                at other points, ``gradient(x)``, needs a closure, which then finds these points in the parameters and
                chooses the data.

        Returns:
            The result of the first call of the closure.

        Raises:
            DivergedError: The new model would not be finite; parameters and state stay as they are.
        """
        self._require_untouched()
        self.iteration = k = self.network.begin(self.iteration)  # a site may have left some out
        algorithm = self._current()
        losses: list[float] = []
        here = algorithm.point(self._memory)

        def evaluate(x: Floats, key: int | None) -> Floats:
            _require_computable(elsewhere=x is not here, whole=key is None, closure=closure is not None)
            if x is not here:
                _write(x, self._trained)
            if closure is not None:
                with torch.enable_grad():
                    losses.append(closure())
            found = self._gathered([_gradient(p) for p in self._trained])
            if x is not here:
                _write(here, self._trained)
            return found

        gradient = Gradients(evaluate, here.shape, here.dtype, source="the model", agents=self.network.agents)
        gradient.begin(here, k)
        # As in d3gd.run: one thread keeps results bitwise equal, and divergence shows in the numbers.
        with self._blas.limit(limits=1, user_api="blas"), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            memory = algorithm.step(self.network, gradient, self._memory, k)
        finite = bool(np.isfinite(algorithm.point(memory)).all())
        self.status = "running" if finite else "diverged"
        if not finite:
            raise DivergedError(
                f"step {k} would make the model NaN or infinite; the parameters keep their last values: try a smaller "
                "step size, or look for such numbers in the data, the loss and the gradients"
            )
        self._memory = memory
        if closure is not None and not losses:
            gradient()  # a caller expects its closure to be called
        if k == 0:
            require_state(algorithm, self.network, self._memory, self._dim, type(algorithm).__name__, "step")
        self.iteration = k + 1
        _write(algorithm.point(self._memory), self._trained)
        self._show_step_size()
        return losses[0] if losses else None

    def mix_buffers(self, module: torch.nn.Module) -> None:
        """Average the module's real buffers, such as running statistics, with those of the in-neighbours, once.

        Not done automatically, since agents see different data and so have different statistics. Collective: all
        processes call it. Repeated calls converge to a common (weighted) average.

        Args:
            module: The module, of equal structure on all processes.
        """
        buffers = [buffer for buffer in module.buffers() if buffer.is_floating_point()]
        if buffers:
            a = self.algorithm.weights(self.network, self._memory)
            received = self.network.exchange(buffers=self._gathered(buffers)).buffers
            _write(self.network.mix(a, received), buffers)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of this process's agent, including its model, as named tensors.

        Each process saves its own; ``torch.load(..., weights_only=True)`` and safetensors read it.
        """
        arrays = {_PREFIX + name: array for name, array in flatten(self._memory).items()}
        arrays |= {"agent": np.array(self.agent), "iteration": np.array(self.iteration)}
        arrays["bytes_sent"] = np.array(self.network.bytes_sent)
        for name in _SIZES:
            arrays[name] = np.array([float(group.get(name, np.nan)) for group in self.param_groups])
        return {name: torch.tensor(array) for name, array in arrays.items()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue exactly from the point of :meth:`state_dict`, including parameters.

        Args:
            state_dict: The result of this agent's :meth:`state_dict`.
        """
        arrays = {name: tensor.detach().cpu().numpy().copy() for name, tensor in state_dict.items()}
        own = {name: torch.tensor(array).numpy() for name, array in flatten(self._memory).items()}
        with self.network.halo.transport.together():
            _require_fitting(arrays, {_PREFIX + name: array for name, array in own.items()}, len(self.param_groups))
            if int(arrays["agent"]) != self.agent:
                raise RecordError(
                    f"this state is of agent {int(arrays['agent'])}, but this process trains agent {self.agent}; "
                    "load the file that this process saved"
                )
        self._memory = restore(self._memory, {name: arrays[_PREFIX + name] for name in own})
        self.iteration, self.network.bytes_sent = int(arrays["iteration"]), int(arrays["bytes_sent"])
        for name in _SIZES:
            for group, size in zip(self.param_groups, arrays[name].tolist(), strict=True):
                if not np.isnan(size):
                    group[name] = size
        _write(self.algorithm.point(self._memory), self._trained)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group during construction; afterwards the model's length is fixed."""
        if self._made:
            raise SettingsError("a model in training cannot grow; pass all groups of parameters to the constructor")
        super().add_param_group(param_group)

    def _current(self) -> Algorithm[Any]:
        """The algorithm with the step size of the groups."""
        size = getattr(self.algorithm, "step_size", None)
        shown = {float(group["lr"]) for group in self.param_groups if "lr" in group}
        if size is None or shown == {at(size, self.iteration)}:
            return self.algorithm
        if len(shown) > 1:
            raise SettingsError(
                f"groups have the lr {sorted(shown)}; a model has one step size: give all groups the same"
            )
        if callable(size):
            raise SettingsError(
                f"lr was changed to {shown.pop()}, but the algorithm has its own schedule; give it a number as "
                "step_size, or use no lr_scheduler"
            )
        changed: Algorithm[Any] = replace(self.algorithm, step_size=shown.pop())  # type: ignore[type-var]
        return changed

    def _show_step_size(self) -> None:
        size = getattr(self.algorithm, "step_size", None)
        if callable(size):
            for group in self.param_groups:
                group["lr"] = size(self.iteration)

    def _require_untouched(self) -> None:
        """Raise an error if other code has changed the parameters."""
        point = self.algorithm.point(self._memory)
        for parameter, expected in zip(self._trained, _parts(point, self._trained), strict=True):
            found, kept = parameter.detach(), expected.to(parameter.device, parameter.dtype)
            if not (torch.equal(found, kept) or torch.allclose(found, kept, rtol=0, atol=0, equal_nan=True)):
                raise D3GDError(
                    f"a parameter of shape {tuple(found.shape)} was changed since the last step; the optimizer keeps "
                    "the model and would overwrite it: load its state_dict too, or create a new optimizer"
                )

    def _gathered(self, tensors: Sequence[torch.Tensor]) -> Floats:
        """The numbers of some tensors as one row."""
        row: Floats = np.empty((1, sum(tensor.numel() for tensor in tensors)), dtype=self.network.dtype)
        for part, tensor in zip(_parts(row, tensors), tensors, strict=True):
            part.copy_(tensor.detach())
        return row


def _parts(row: Array, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Views of a row in the shapes of some tensors."""
    flat = torch.from_numpy(np.ascontiguousarray(row[0]))
    parts = torch.split(flat, [tensor.numel() for tensor in tensors])
    return [part.view(tensor.shape) for part, tensor in zip(parts, tensors, strict=True)]


@torch.no_grad()
def _write(row: Array, tensors: Sequence[torch.Tensor]) -> None:
    for part, tensor in zip(_parts(row, tensors), tensors, strict=True):
        tensor.copy_(part)


def _gradient(parameter: torch.Tensor) -> torch.Tensor:
    if parameter.grad is None:
        return torch.zeros_like(parameter)
    return parameter.grad.to_dense() if parameter.grad.is_sparse else parameter.grad


def _require_computable(*, elsewhere: bool, whole: bool, closure: bool) -> None:
    """Raise an error for gradients at other points, or on all data, if nothing computes them."""
    if elsewhere and not closure:
        raise SettingsError(
            "this method evaluates gradients at other points, and backward() computes those at the model; pass step a "
            "closure that computes the loss and calls backward()"
        )
    if whole:
        raise SettingsError(
            "this method evaluates gradients on all data (draw=None), which an optimizer does not have; run it with "
            "d3gd.problems.torch_module and d3gd.run"
        )


def _require_one_agent(algorithm: Algorithm[Any], net: Network) -> None:
    if len(net.agents) != 1:
        raise SettingsError(
            f"this process has {len(net.agents)} agents, and an optimizer trains one; start one process per agent, or "
            "train all in one with d3gd.problems.torch_module and d3gd.run"
        )
    if algorithm.needs == "all agents":
        raise SettingsError(
            f"{type(algorithm).__name__} needs the values of all agents, which a process does not have; choose a "
            "decentralized method, such as PerronD3GD, or simulate with d3gd.run"
        )
    require_admissible(algorithm, net.given.graph, net.given.graph.matrix(net.given.a0))
    require_declared(algorithm)


def _require_real(parameters: Sequence[torch.Tensor]) -> None:
    if not parameters:
        raise SettingsError("no parameter is trainable; set requires_grad on some of them")
    for parameter in parameters:
        if isinstance(parameter, torch.nn.parameter.UninitializedParameter):
            raise SettingsError("a lazy layer has no parameters yet; call the model once on some inputs first")
        if not parameter.is_floating_point():
            raise SettingsError(f"a parameter is {parameter.dtype}; models are real: use float32 or float64 parameters")


def _require_fitting(arrays: dict[str, Array], own: dict[str, Array], groups: int) -> None:
    """Raise an error for the state of another algorithm, network or model."""
    own = own | {name: np.array(0) for name in ("agent", "iteration", "bytes_sent")}
    own = own | {name: np.zeros(groups) for name in _SIZES}
    other = sorted(own.keys() ^ arrays.keys())
    if other:
        raise RecordError(
            f"the state {'lacks' if other[0] in own else 'has'} {other[0]!r}: it is of another algorithm; create the "
            "optimizer as when the state was saved"
        )
    wrong = [name for name in own if own[name].shape != arrays[name].shape or own[name].dtype != arrays[name].dtype]
    if wrong:
        found, wanted = arrays[wrong[0]], own[wrong[0]]
        raise RecordError(
            f"{wrong[0]!r} of the state is {found.dtype}{list(found.shape)} instead of {wanted.dtype}"
            f"{list(wanted.shape)}; create model, network and optimizer as when the state was saved"
        )
