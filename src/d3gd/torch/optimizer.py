"""A PyTorch optimizer for one agent per process."""

import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, overload

import torch

from d3gd.algorithms.base import Algorithm
from d3gd.algorithms.compressed import Compressed
from d3gd.algorithms.identity import describe
from d3gd.algorithms.local import require_steerable
from d3gd.arrays import Array
from d3gd.digest import digest
from d3gd.distributed.compressors import Compressor
from d3gd.distributed.traffic import Traffic
from d3gd.errors import D3GDError, DivergedError, SettingsError
from d3gd.network import Network
from d3gd.torch import device
from d3gd.torch.agreement import EVERY, Agreed, agree
from d3gd.torch.checks import require_in_step, require_network, require_one_agent, warn_without_gradients
from d3gd.torch.layers import require_apart, warn_of_statistics
from d3gd.torch.local import Local, Make
from d3gd.torch.networks import Following
from d3gd.torch.plain import Plain, sizes
from d3gd.torch.rows import frozen, gathered, unscale, write
from d3gd.torch.saving import key_of, read, saved
from d3gd.torch.stepping import Steps
from d3gd.torch.turn import Turn
from d3gd.validation import count

_RUN = 48  # bits of the number by which states of one run are recognized; a double holds them


class DecentralizedOptimizer(torch.optim.Optimizer):
    r"""An optimizer that trains one agent's model jointly with its neighbours', one agent per process.

    Every process runs the same script: ``loss.backward()`` on its own data, then ``step()``, which exchanges models
    with the neighbours as the algorithm requires and writes the new model into the parameters. Steps are collective:
    all processes take the same number of them, or use :meth:`join`. Now and then they compare their iteration and
    ``lr``, and a difference is an error.

    All trainable parameters together are the agent's model, regardless of their groups; a parameter without a gradient
    has gradient zero, and is mixed like all others. The algorithm owns the model: changing parameters other than by
    ``step`` is an error, and so is freezing or unfreezing them later. Buffers, such as running statistics, stay with
    the process; see :meth:`mix_buffers`.

    If all parameters are on one accelerator, models and state are tensors there, and only messages travel; methods that
    are not coordinate-wise (:attr:`d3gd.Algorithm.coordinatewise`) are computed on the CPU. No GPU was used to test it.

    The step size is the algorithm's, and every group's ``lr`` shows it. If it is a constant, ``lr`` may be changed, as
    the schedulers of ``torch.optim.lr_scheduler`` do: equally in all groups and processes. A step with ``lr = 0`` moves
    and sends nothing. With ``torch.amp.GradScaler``, a step that one process must skip is skipped by all.

    Args:
        params: The parameters, or groups of them. Frozen ones (``requires_grad=False``) are ignored.
        algorithm: The method, e.g. ``d3gd.PerronD3GD(step_size=0.1)``.
        network: This process's agent, from :func:`network`.
        same_start: Whether all agents start from the parameters of the first process, not each from its own.
        local: Creates an optimizer of PyTorch, given ``params``, e.g. ``lambda p: torch.optim.AdamW(p, lr=1e-3)``. What
            it would add to the parameters takes the place of the algorithm's step size times gradient; the algorithm
            has ``step_size=1``. Groups then have its options, such as ``weight_decay``, and ``lr`` of their own.
        every: The number of local steps per exchange: the others move this process's model alone, steered by the
            algorithm as in :class:`d3gd.Local`. A schedule of the algorithm counts exchanges.
        steered: Whether the algorithm's offset steers local steps, or acts with the exchange, as in
            :class:`d3gd.Local`.
        compress: How messages are compressed, as in :class:`d3gd.Compressed`: ``"int8"``, ``"int4"``,
            ``"bf16"``, ``"topk:0.01"``, or a compressor of your own; by default not at all.

    Attributes:
        algorithm: The method.
        network: This process's agent and its links.
        agent: The index of the agent.
        iteration: The number of steps, including skipped ones.
        skipped: The number of steps that were skipped by all, or had ``lr = 0``.
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

    status: Literal["running", "diverged"] = "running"
    _step_supports_amp_scaling = True  # so that GradScaler calls step() in any case, and says what it found
    _made = False
    _together = _out = False  # in join(); out of data in it
    _behind = False  # whether a step has failed after it had sent
    _asked = True  # whether the next step is the first, or that after loading a state: it compares in any case

    def __init__(
        self,
        params: Iterable[Any],
        algorithm: Algorithm[Any],
        network: Network,
        *,
        same_start: bool = True,
        local: Make | None = None,
        every: int = 1,
        steered: bool = True,
        compress: str | Compressor | None = None,
    ) -> None:
        require_network(network)
        transport = network.halo.transport
        with transport.together():
            if count("every", every, least=1) > 1:
                require_steerable(algorithm)
            if compress is not None:
                algorithm = Compressed(method=algorithm, compress=compress)
            require_one_agent(algorithm, network)
            self.every = every
            network.permit(algorithm.needs)
            self._source: Plain | Local = Plain(algorithm) if local is None else Local(algorithm, local, params)
            super().__init__(self._source.groups(params), self._source.defaults)
            self._source.share(self)
            self.algorithm, self.network, self.agent = algorithm, network, int(network.agents[0])
            self.iteration = self.skipped = 0
            self._made = True
            self._model = device.model(self.param_groups, algorithm, network)
            require_apart(self._model.parameters)
            if isinstance(network, Following):
                network.follow(self._model.parameters)
        given = network.given
        names = [group.get("param_names") for group in self.param_groups]
        for what, *parts in [
            ("an algorithm or settings of it", describe(algorithm), every, steered),
            ("a network", given.graph.indptr, given.graph.sources, given.a0, str(network.dtype), network.seed),
            ("an order, shapes, names or precision of parameters", self._model.form, names),
            ("a local optimizer, groups of parameters or same_start", same_start, *self._source.plan()),
            ("frozen parameters", *frozen(self.param_groups)),
        ]:
            transport.require_same(digest(*parts), what)
        self._run = int(transport.broadcast(str(secrets.randbits(_RUN))))
        # A slice is a message of its own, so all ranks slice or none, also where only some have an accelerator.
        self._model.sliced = not transport.any(not self._model.sliced)
        x0 = self._model.start(network.dtype)
        if same_start:
            x0 = network.halo.first(x0)
        self._steps = Steps(algorithm, network, self._model, self._source, x0, every, steered=steered)
        if transport.rank == 0 and transport.ranks > 1:
            warn_of_statistics(self._model.parameters)

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
            DivergedError: The new model would not be finite; parameters and state stay as they are, unless the model
                is large and the message says that part of it has changed.
        """
        self._steps.require_whole()
        require_in_step(self._behind)
        self._steps.require_untouched(self.param_groups, thorough=self.iteration % EVERY == 0)
        k = self._exchanges
        algorithm = self._source.current(k)
        if closure is None and not self._out:  # before anything is sent, since warnings may be errors
            warn_without_gradients(self._model.parameters)
        transport = self.network.halo.transport
        posts, agreed = transport.posts, self._agreed()
        if agreed.finished:
            self._together = False
            return None
        turn = Turn(closure, idle=self._out)
        try:
            if agreed.skip or algorithm is None:
                if not (agreed.skip or self._out):
                    self._steps.direction(turn, k)  # a local optimizer goes on, a closure is called
                self.skipped += 1
            else:
                self._steps.take(*self._begun(k), turn)
            if turn.losses:
                warn_without_gradients(self._model.parameters)
        except BaseException as error:
            if isinstance(error, DivergedError):
                self.status = "diverged"
            self._behind = transport.posts > posts
            raise
        self.status = "running"
        self.iteration += 1
        self._source.show(self._exchanges)
        return turn.losses[0] if turn.losses else None

    @property
    def _exchanges(self) -> int:
        """The number of exchanges so far, the iterations of the algorithm."""
        return (self.iteration - self.skipped) // self.every

    def _begun(self, k: int) -> tuple[Any, int]:
        """Return the algorithm of the iteration that begins, and its number: a site may have left some out."""
        begun = self.network.begin(k)
        self._steps.renew()
        if begun != k:
            self.iteration = begun * self.every + self.skipped
            self._source.show(begun)
        return self._source.current(begun), begun

    @contextmanager
    def join(self, *schedulers: Any) -> Iterator[None]:
        """Let processes take different numbers of steps: one that is out of data goes on for the sake of the others.

        It sends, receives and mixes, with gradients of zero, until all are out of data. Within, each step begins with
        one small message to every other process. All processes enter it together, e.g. once per epoch::

            for epoch in range(epochs):
                with opt.join():
                    for inputs, target in loader:  # of any length, also empty
                        ...
                        opt.step()

        Args:
            *schedulers: Schedulers that are stepped after every batch; they are stepped with the added steps, too.
        """
        if self._together:
            raise SettingsError("join is entered already; enter it once around the loop over batches")
        if not self.network.repeatable:
            raise SettingsError(
                "sites step by themselves, so join has nobody to wait for; leave it out, and with patience = inf take "
                "as many steps at every site"
            )
        self._together = True
        try:
            yield
            self._out = True
            while True:
                self.step()
                if not self._together:
                    break
                for scheduler in schedulers:
                    scheduler.step()
        finally:
            self._together = self._out = False

    def mix_buffers(self, module: torch.nn.Module) -> None:
        """Average the module's real buffers, such as running statistics, with those of the in-neighbours, once.

        Not done automatically, since agents see different data and so have different statistics. Collective: all
        processes call it. Repeated calls converge to a common (weighted) average.

        Args:
            module: The module, of equal structure on all processes.
        """
        buffers = [buffer for buffer in module.buffers() if buffer.is_floating_point()]
        if buffers:
            a = self.algorithm.weights(self.network, self._steps.memory)
            received = self.network.exchange(buffers=gathered(buffers, self.network.dtype)).buffers
            with torch.no_grad():
                write(self.network.mix(a, received), buffers)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of this process's agent, including its model, as named tensors.

        Each process saves its own; ``torch.load(..., weights_only=True)`` and safetensors read it.
        """
        self._steps.require_whole()
        tensors = {name: torch.tensor(array) for name, array in self._saved().items()}
        return tensors | self._source.state()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue exactly from the point of :meth:`state_dict`, including parameters.

        Collective: every process loads the state that it saved, all of them at the same step of the same run.

        Args:
            state_dict: The result of this agent's :meth:`state_dict`.
        """
        transport = self.network.halo.transport
        agree(transport, "loads a state", 0, [0.0] * len(self.param_groups))
        with transport.together():
            arrays, local = read(state_dict, self._saved(), self._steps.memory, local=self.local is not None)
        transport.require_same(arrays["version"].tobytes().hex(), "a state of a version of d3gd")
        iteration, run = int(arrays["iteration"]), int(arrays["run"])
        agree(transport, "loads a state", iteration, arrays["lr"].tolist(), run=run)
        with transport.together():
            self._source.load(arrays, local)
        self._source.share(self)
        self._steps.load(arrays)
        self._run, self.iteration, self.skipped = run, iteration, int(arrays["skipped"])
        before = int(arrays["bytes_sent"])
        self.network.traffic = Traffic(self.network.traffic.links, elsewhere=before, known=False)
        self._asked, self._behind = True, False

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group during construction; afterwards the model's length is fixed."""
        if self._made:
            raise SettingsError("a model in training cannot grow; pass all groups of parameters to the constructor")
        super().add_param_group(param_group)

    @property
    def local(self) -> torch.optim.Optimizer | None:
        """The local optimizer, or None."""
        return self._source.optimizer

    def _saved(self) -> dict[str, Array]:
        counts = {"agent": self.agent, "iteration": self.iteration, "skipped": self.skipped}
        counts |= {"bytes_sent": self.network.bytes_sent, "every": self.every, "network": key_of(self.network)}
        counts["run"] = self._run
        return saved(self._steps.memory, counts, self.param_groups) | self._steps.saved()

    def __getstate__(self) -> dict[str, Any]:
        """Refuse a copy, whose steps no other process would join."""
        raise D3GDError("an optimizer cannot be copied or pickled: its steps are collective; save its state_dict()")

    def _agreed(self) -> Agreed:
        """Compare with the other ranks where it is due, and undo a loss scale."""
        overflow, scale = getattr(self, "found_inf", None), getattr(self, "grad_scale", None)  # set by GradScaler
        if not (self._together or self._asked or overflow is not None or self.iteration % EVERY == 0):
            return Agreed()
        if self._asked:  # a model may have been wrapped after the optimizer was created
            require_apart(self._model.parameters)
        self._asked = False
        skip = overflow is not None and bool(overflow)
        transport, lr = self.network.halo.transport, sizes(self.param_groups)["lr"].tolist()
        agreed = agree(transport, "takes a step", self.iteration, lr, skip=skip, out=self._out)
        if scale is not None and not agreed.skip:
            unscale(self._model.parameters, scale)
        return agreed
