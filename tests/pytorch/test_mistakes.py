"""Mistakes that PyTorch or a network would accept: each is told, and what is no mistake goes on."""

import copy
import pickle
import sys
import threading
from contextlib import nullcontext
from functools import partial

import pytest
import torch
from torch import nn
from torch.testing._internal.two_tensor import TwoTensor

import d3gd
from d3gd.errors import D3GDError, DivergedError, RecordError, SettingsError, TransportError
from d3gd.torch import DecentralizedOptimizer, network
from d3gd.torch.layers import warn_of_statistics
from d3gd.transports.threads import on_threads

METHOD = d3gd.PerronD3GD(step_size=0.1)


def model(*shape):
    net = nn.Linear(*shape or (3, 2))
    for parameter in net.parameters():  # threads share the random numbers of PyTorch
        parameter.data = torch.arange(parameter.numel()).sin().reshape(parameter.shape)
    return net


def optimizer(parameters, algorithm=METHOD, graph=None, transport=None, seed=0, **options):
    net = network(graph or d3gd.graphs.ring(transport.ranks if transport else 1), transport=transport, seed=seed)
    return DecentralizedOptimizer(parameters, algorithm, net, **options)


def descend(net, opt, steps=1):
    for _ in range(steps):
        opt.zero_grad()
        net(torch.eye(3, dtype=net.weight.dtype)).square().sum().backward()
        opt.step()


@pytest.fixture
def world():
    """A process group of this process alone."""
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


class TestParameters:
    def test_layers_tied_by_memory_are_told_and_by_a_parameter_trained(self):
        tied, shared = (nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3)) for _ in range(2))
        tied[2].weight.data = tied[0].weight.data
        with pytest.raises(SettingsError, match="share memory"):
            optimizer(tied.parameters())
        shared[2].weight = shared[0].weight
        optimizer(shared.parameters())
        optimizer(shared.parameters())  # by now parts of one row

    @pytest.mark.parametrize(
        ("parameter", "message"),
        [(torch.empty(0, 3), "all trainable parameters are empty"), (torch.empty(2, device="meta"), "meta device")],
    )
    def test_parameters_without_numbers(self, parameter, message):
        with pytest.raises(SettingsError, match=message):
            optimizer([nn.Parameter(parameter)])

    @pytest.mark.filterwarnings("ignore:FSDP")  # of a single process
    def test_a_model_that_is_wrapped_in_ddp_or_fsdp_before_or_after(self, world):
        from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard

        sharding = partial(FullyShardedDataParallel, device_id=torch.device("cpu"))
        for name, wrap in {"Distributed": nn.parallel.DistributedDataParallel, "Fully": sharding}.items():
            wrapper = wrap(model())
            with pytest.raises(SettingsError, match=f"wrapped in {name}"):
                optimizer(wrapper.parameters())
        net = model()
        opt = optimizer(net.parameters())
        wrapper = nn.parallel.DistributedDataParallel(net)
        with pytest.raises(SettingsError, match="wrapped in DistributedDataParallel"):
            descend(net, opt)
        assert wrapper.module is net
        sharded = fully_shard(model(), mesh=torch.distributed.device_mesh.init_device_mesh("cpu", (1,)))
        with pytest.raises(SettingsError, match="a DTensor"):
            optimizer(sharded.parameters())
        descend(net := model(), optimizer(net.parameters()))

    def test_wrappers_around_other_tensors_have_no_memory_to_share(self):
        nets = [nn.Parameter(TwoTensor(torch.ones(size), torch.ones(size))) for size in (3, 4)]
        opt = optimizer(nets)
        for parameter in nets:
            parameter.square().sum().backward()
        opt.step()
        assert all(parameter.a.tolist() == [pytest.approx(0.8)] * len(parameter) for parameter in nets)

    def test_memory_that_other_processes_read_stays_where_it_is(self):
        net = model().share_memory()
        place, before = net.weight.data_ptr(), net.weight.detach().clone()
        descend(net, optimizer(net.parameters()), 2)
        assert net.weight.data_ptr() == place
        assert not torch.equal(net.weight, before)

    def test_a_model_made_more_precise_later(self):
        net = model()
        opt = optimizer(net.parameters())
        descend(net.bfloat16(), opt)  # less: the optimizer keeps single precision
        with pytest.raises(SettingsError, match=r"become torch\.float64, and the optimizer keeps torch\.float32"):
            descend(net.double(), opt)

    def test_a_step_without_any_gradient(self):
        net = model()
        opt = optimizer(net.parameters())
        net.load_state_dict(model().state_dict(), assign=True)  # other parameters, which the optimizer does not have
        for closure in (None, lambda: 0.0):
            with pytest.warns(UserWarning, match="no parameter has a gradient") as told:
                opt.step(closure)
            assert told[0].filename == __file__


def test_an_optimizer_is_not_copied():
    opt = optimizer(model().parameters())
    for copied in (copy.deepcopy, pickle.dumps):
        with pytest.raises(D3GDError, match="cannot be copied"):
            copied(opt)


class TestErrorsThatAScriptCatches:
    """A step that failed may be tried again unless it has sent: others would take its messages for the next ones."""

    @pytest.mark.parametrize(("algorithm", "step"), [(d3gd.DiDGD(step_size=0.1), 2), (METHOD, 0)])
    def test_after_messages_were_sent_a_state_must_be_loaded(self, algorithm, step):
        def train(rank):
            net = model()
            opt = optimizer(net.parameters(), algorithm, transport=rank)

            def closure():
                if rank.rank == 1 and opt.iteration == step:
                    raise ValueError("a broken batch")
                opt.zero_grad()
                loss = net(torch.eye(3)).square().sum()
                loss.backward()
                return loss

            for k in range(4):
                if rank.rank == 1 and k == step:
                    with pytest.raises(ValueError, match="broken"):
                        opt.step(closure)
                opt.step(closure)

        with pytest.raises(D3GDError, match="failed after this process had sent"):
            on_threads(2, train, timeout=5.0)

    def test_before_that_it_may_go_on(self):
        def train(rank):
            net = model()
            opt = optimizer(net.parameters(), transport=rank)
            descend(net, opt)
            if rank.rank == 1:
                net.weight.grad = torch.full_like(net.weight, float("nan"))
                with pytest.raises(DivergedError):
                    opt.step()
            descend(net, opt, 2)
            return opt.iteration

        assert on_threads(2, train) == [3, 3]


class TestLocal:
    def test_a_local_optimizer_takes_all_parameters_and_no_others(self):
        for make, message in [
            (lambda p: torch.optim.SGD(p[:1]), "leaves out a parameter"),
            (lambda p: torch.optim.SGD([*p, nn.Parameter(torch.ones(7))]), r"has another parameter, of shape \(7,\)"),
        ]:
            with pytest.raises(SettingsError, match=message):
                optimizer(model().parameters(), d3gd.DiDGD(step_size=1), local=make)
        net = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
        net[0].requires_grad_(False)
        for params in (net.named_parameters(), [{"params": net[0].parameters()}, {"params": net[1].weight}]):
            optimizer(params, d3gd.DiDGD(step_size=1), local=torch.optim.SGD)

    def test_nan_from_a_closure_does_not_enter_its_moments(self):
        net, factor = model(), 1.0
        opt = optimizer(net.parameters(), d3gd.DiDGD(step_size=1), local=torch.optim.AdamW)

        def closure():
            opt.zero_grad()
            loss = factor * net(torch.eye(3)).square().sum()
            loss.backward()
            return loss

        opt.step(closure)
        factor = float("nan")
        with pytest.raises(DivergedError):
            opt.step(closure)
        factor = 1.0
        opt.step(closure)
        assert opt.status == "running"


class TestStates:
    def test_those_of_other_local_steps(self):
        net = model()
        opt = optimizer(net.parameters(), every=8)
        descend(net, opt, 5)
        with pytest.raises(RecordError, match="every = 8, and this optimizer has every = 4"):
            optimizer(model().parameters(), every=4).load_state_dict(opt.state_dict())

    def test_those_of_another_network(self):
        """Corrections weighted by the Perron vector of other links would not cancel."""

        def saved(graph, rank, state=None):
            net = model()
            opt = optimizer(net.parameters(), graph=graph, transport=rank)
            if state is not None:
                opt.load_state_dict(state[rank.rank])
            descend(net, opt)
            return opt.state_dict()

        one, other = (d3gd.Digraph.from_edges(3, [(0, 1), (1, 2), (2, 0), link]) for link in ((0, 2), (2, 1)))
        states = on_threads(3, partial(saved, one))
        on_threads(3, lambda rank: saved(one, rank, states))
        with pytest.raises(RecordError, match="on another network"):
            on_threads(3, lambda rank: saved(other, rank, states))
        with pytest.raises(RecordError, match="on another network"):  # with more links, too
            on_threads(3, lambda rank: saved(d3gd.graphs.complete(3), rank, states))
        states = [states[0]] * 3  # agent 2 hears more than agent 0
        with pytest.raises(RecordError, match=r"of agent 0, but this process trains agent [12]"):
            on_threads(3, lambda rank: saved(one, rank, states))

    def test_those_of_different_runs(self):
        """What agents have learnt of each other in one run does not cancel what they have learnt in another."""

        def saved(rank, states=None):
            net = model()
            opt = optimizer(net.parameters(), transport=rank)
            if states is not None:
                opt.load_state_dict(states[rank.rank])
            descend(net, opt, 2)
            return opt.state_dict()

        one, other = on_threads(2, saved), on_threads(2, saved)
        on_threads(2, lambda rank: saved(rank, one))
        with pytest.raises(SettingsError, match="rank 1 loads a state of another run than rank 0"):
            on_threads(2, lambda rank: saved(rank, [one[0], other[1]]))

    def test_a_rank_that_neither_loads_nor_steps(self):
        def load(rank):
            opt = optimizer(model().parameters(), transport=rank)
            if rank.rank == 0:
                opt.load_state_dict(opt.state_dict())

        optimizer(model().parameters())  # what it imports takes longer than ranks wait
        with pytest.raises(TransportError, match=r"no message from rank 1.*is the file of another rank missing\?"):
            on_threads(2, load, timeout=3.0)


def test_comparisons_that_only_one_rank_makes_are_told_in_words():
    def train(rank):
        net = model()
        opt = optimizer(net.parameters(), transport=rank)
        with pytest.raises(TransportError) as told, opt.join() if rank.rank else nullcontext():
            descend(net, opt, 3)
        return str(told.value)

    words = "what rank 0 sent is not (comparing iteration and lr: every 16th step, within join"
    assert words in on_threads(2, train, timeout=5.0)[1]


HALF = torch.float, torch.half


def _frozen(value, dtype=torch.float):
    return nn.Parameter(torch.full((5,), value, dtype=dtype), requires_grad=False)


@pytest.mark.parametrize(
    ("made", "what"),
    [
        (lambda r: optimizer([nn.Parameter(torch.ones((3, 2) if r.rank else (2, 3)))], transport=r), "parameters"),
        (lambda r: optimizer([nn.Parameter(torch.ones(2, dtype=HALF[r.rank]))], transport=r), "parameters"),
        (lambda r: optimizer([("ab"[r.rank], nn.Parameter(torch.ones(2)))], transport=r), "precision of parameters"),
        (lambda r: optimizer([nn.Parameter(torch.ones(2))], seed=r.rank, transport=r), "a network"),
        (lambda r: optimizer([nn.Parameter(torch.ones(2))], every=1 + r.rank, transport=r), "settings of it"),
        (lambda r: optimizer([nn.Parameter(torch.ones(2)), _frozen(r.rank)], transport=r), "frozen parameters"),
        (lambda r: optimizer([nn.Parameter(torch.ones(2)), _frozen(r.rank, torch.bfloat16)], transport=r), "frozen"),
    ],
    ids=["shape", "precision", "name", "seed", "every", "frozen", "frozen bfloat16"],
)
def test_ranks_with_other_parameters_or_draws_are_told(made, what):
    with pytest.raises(TransportError, match=f"rank 1 has .*{what}.* other than rank 0"):
        on_threads(2, made)


def test_equal_frozen_parameters_of_any_kind_are_no_mistake():
    kinds = torch.bfloat16, torch.int8, torch.float64, torch.cfloat
    on_threads(2, lambda r: optimizer([nn.Parameter(torch.ones(2)), *(_frozen(1, k) for k in kinds)], transport=r))


def test_looking_for_statistics_leaves_other_threads_alone():
    """A tuple that another thread is making must not be held: CPython then cannot complete it."""
    interval, ended, errors = sys.getswitchinterval(), threading.Event(), []

    def busy():
        try:
            while not ended.is_set():
                tuple(number for number in range(40))
        except SystemError as error:
            errors.append(error)

    other = threading.Thread(target=busy)
    sys.setswitchinterval(1e-6)
    try:
        other.start()
        for _ in range(5):
            warn_of_statistics([nn.LayerNorm(3).weight])
    finally:
        sys.setswitchinterval(interval)
        ended.set()
        other.join()
    assert not errors
