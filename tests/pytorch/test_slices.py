"""Large models are views of one row that is stepped slice by slice: the same training, to the bit."""

from collections import Counter

import numpy as np
import pytest
import torch
from torch import nn

import d3gd
from d3gd.errors import D3GDError, DivergedError
from d3gd.kernels.buffers import Buffers
from d3gd.torch import DecentralizedOptimizer, network, rows, slices
from d3gd.transports.threads import Thread, on_threads

METHODS = {
    "Di-DGD": d3gd.DiDGD(step_size=0.1),
    "PerronD3GD": d3gd.PerronD3GD(step_size=0.1),
    "PerronD3GD, rounds": d3gd.PerronD3GD(step_size=0.1, rounds=2),
    "FROST": d3gd.FROST(step_size=0.1),
    "SGP": d3gd.SGP(step_size=0.1),  # its models are not part of its state
    "D3GD": d3gd.D3GD(step_size=0.1),  # needs the model whole
}
RANKS = 3


@pytest.fixture
def small_slices(monkeypatch):
    for name in ("_WHOLE", "_SLICE", "_READ"):
        monkeypatch.setattr(slices, name, 7)


def model(dtype=torch.float32):
    net = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)).to(dtype)
    for parameter in net.parameters():  # threads share the random numbers of PyTorch
        parameter.data = torch.arange(parameter.numel()).sin().reshape(parameter.shape).to(dtype)
    return net


def trained(transport, algorithm, *, steps=5, local=None, every=1, dtype=torch.float32, change=lambda net, opt: None):
    """Train on this rank's data; returns the parameters and the state."""
    draws = torch.Generator().manual_seed(transport.rank)
    inputs, target = torch.randn(6, 4, generator=draws, dtype=dtype), torch.arange(6) % 3
    net = model(dtype)
    agent = network(d3gd.graphs.exponential(transport.ranks), transport=transport)
    opt = DecentralizedOptimizer(net.parameters(), algorithm, agent, local=local, every=every)
    for _ in range(steps):
        opt.zero_grad()
        nn.functional.cross_entropy(net(inputs), target).backward()
        opt.step()
        change(net, opt)
    return nn.utils.parameters_to_vector(net.parameters()).detach(), opt


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize(("dtype", "every"), [(torch.float32, 1), (torch.float32, 2), (torch.bfloat16, 1)])
def test_slices_are_the_whole(name, dtype, every, monkeypatch):
    ends = []
    for size in (1 << 19, 7):
        for limit in ("_WHOLE", "_SLICE", "_READ"):
            monkeypatch.setattr(slices, limit, size)
        runs = on_threads(RANKS, lambda rank: trained(rank, METHODS[name], dtype=dtype, every=every))
        ends.append([(vector, opt.state_dict()) for vector, opt in runs])
    for (whole, state), (sliced, parts) in zip(*ends, strict=True):
        assert torch.equal(whole, sliced)
        assert state.keys() == parts.keys()
        same = {n: np.array_equal(state[n], parts[n], equal_nan=True) for n in state}  # also what was sent
        assert all(same[name] or name == "run" for name in state)


LARGE = {
    "momentum": (d3gd.PerronD3GD(step_size=0.1, momentum=0.5), {}),
    "momentum, every": (d3gd.PerronD3GD(step_size=0.1, momentum=0.5), {"every": 2}),
    "QGAdam": (d3gd.QGAdam(step_size=0.1), {}),
    "QGAdam, rounds": (d3gd.QGAdam(step_size=0.1, rounds=2), {}),
    "QGAdam, every": (d3gd.QGAdam(step_size=0.1), {"every": 2, "steered": False}),
}


@pytest.mark.parametrize("name", LARGE)
def test_large_slices_are_the_whole(name, monkeypatch):
    """Rows of this size are updated by compiled kernels, and messages take the place of models."""
    width, ends = slices._WHOLE + 1, []
    algorithm, options = LARGE[name]

    def work(rank):
        x = nn.Parameter(torch.arange(width).sin())
        net = network(d3gd.graphs.exponential(2), transport=rank)
        opt = DecentralizedOptimizer([x], algorithm, net, **options)
        for k in range(4):
            x.grad = (torch.arange(width) + k + 2 * rank.rank).cos()
            opt.step()
        return x.detach()

    for limit in (slices._WHOLE, width):
        monkeypatch.setattr(slices, "_WHOLE", limit)
        ends.append(on_threads(2, work))
    assert all(torch.equal(sliced, whole) for sliced, whole in zip(*ends, strict=True))


@pytest.mark.parametrize("every", [1, 2])
@pytest.mark.parametrize("make", [None, lambda p: torch.optim.AdamW(p, lr=0.01)], ids=["plain", "AdamW"])
def test_a_state_is_resumed_in_slices(make, every, small_slices):
    algorithm = d3gd.PerronD3GD(step_size=0.1 if make is None else 1)

    def resumed(rank):
        _, first = trained(rank, algorithm, steps=3, local=make, every=every)
        saved = first.state_dict()
        net = model()
        opt = DecentralizedOptimizer(net.parameters(), algorithm, first.network, local=make, every=every)
        opt.load_state_dict(saved)
        for optimizer, held in ((first, first.param_groups), (opt, opt.param_groups)):
            for parameter in held[0]["params"]:
                parameter.grad = torch.ones_like(parameter)
            for _ in range(every):
                optimizer.step()
        return [torch.cat([p.detach().ravel() for p in o.param_groups[0]["params"]]) for o in (first, opt)]

    for went_on, again in on_threads(2, resumed):
        assert torch.equal(went_on, again)


@pytest.mark.parametrize("algorithm", [d3gd.DiDGD(step_size=1), d3gd.PerronD3GD(step_size=1)], ids=str)
def test_a_local_optimizer_moves_parameters_only_while_they_are_not_sent(algorithm, small_slices, monkeypatch):
    """Large messages are sent from where the parameters are."""
    start, flying, seen = Thread._start, Counter(), []

    def counted(self, *words):
        finish = start(self, *words)
        flying[self.rank] += 1

        def finished():
            finish()
            flying[self.rank] -= 1

        return finished

    class Watching(torch.optim.SGD):
        rank = None

        def step(self, closure=None):
            seen.append(flying[self.rank])
            return super().step(closure)

    def work(rank):
        def make(params):
            made = Watching(params, lr=0.1)
            made.rank = rank.rank
            return made

        return trained(rank, algorithm, local=make)

    monkeypatch.setattr(Thread, "_start", counted)
    on_threads(RANKS, work)
    assert seen == [0] * 5 * RANKS


def alone(net, every=1):
    graph = d3gd.graphs.complete(1)
    return DecentralizedOptimizer(net.parameters(), METHODS["Di-DGD"], network(graph), every=every)


def backward(net):
    net(torch.ones(2, 4)).square().sum().backward()


def test_parameters_are_views_of_one_row(small_slices):
    net = model()
    opt = alone(net)
    assert len({p.untyped_storage().data_ptr() for p in net.parameters()}) == 1
    backward(net)
    opt.step()
    assert np.array_equal(opt._steps.point[0], nn.utils.parameters_to_vector(net.parameters()).detach())


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p.data.mul_(2),
        lambda p: p.data.view(-1)[1].mul_(2),  # found at the next thorough look, since it leaves no trace
        lambda p: p.mul_(2),
        lambda p: setattr(p, "data", 2 * p.data),
    ],
)
def test_changes_by_others_are_told(change, small_slices):
    net = model()
    opt = alone(net)
    for _ in range(16):
        backward(net)
        opt.step()
        opt.zero_grad()
    with torch.no_grad():
        change(net[0].weight)
    with pytest.raises(D3GDError, match="was changed since the last step"):
        opt.step()


def test_writes_that_leave_no_trace_are_told_before_the_next_step(small_slices):
    net = model()
    opt = alone(net)
    for _ in range(2):
        backward(net)
        opt.step()
    net[0].weight.data.clamp_(-1e-3, 1e-3)
    with pytest.raises(D3GDError, match="was changed since the last step"):
        opt.step()


def test_values_that_come_back_and_memory_that_moves_are_no_change(small_slices):
    net, other = model(), model()
    opts = alone(net), alone(other)
    for k in range(4):
        for each, opt in zip((net, other), opts, strict=True):
            backward(each)
            opt.step()
            opt.zero_grad()
        kept = [p.detach().clone() for p in net.parameters()]
        with torch.no_grad():
            for p, value in zip(net.parameters(), kept, strict=True):
                p.zero_()  # as for an evaluation with other weights
                p.copy_(value)
        if k == 1:
            net[2].weight.data = net[2].weight.data.clone()
    assert torch.equal(*(nn.utils.parameters_to_vector(each.parameters()) for each in (net, other)))
    assert len({p.untyped_storage().data_ptr() for p in net.parameters()}) == 1


def test_a_graph_from_before_a_step_is_not_used_after_it(small_slices):
    net = model()
    opt = alone(net)
    loss = net(torch.ones(2, 4)).sum()
    loss.backward(retain_graph=True)
    opt.step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_nan_changes_nothing_and_overflow_halfway_is_told(small_slices):
    net = model()
    opt = alone(net)
    before = nn.utils.parameters_to_vector(net.parameters()).detach().clone()
    backward(net)
    net[2].bias.grad[0] = float("nan")
    with pytest.raises(DivergedError, match="keep their last values"):
        opt.step()
    assert torch.equal(before, nn.utils.parameters_to_vector(net.parameters()))
    saved = opt.state_dict()
    with torch.no_grad():
        net[2].bias.grad[0] = 0
    opt.param_groups[0]["lr"] = 1e30
    net[2].bias.grad[1] = 1e30
    with pytest.raises(DivergedError, match="part of it has changed"):
        opt.step()
    for call in (opt.step, opt.state_dict):
        with pytest.raises(D3GDError, match="load a saved state"):
            call()
    opt.load_state_dict(saved)
    assert torch.equal(before, nn.utils.parameters_to_vector(net.parameters()))
    assert opt.param_groups[0]["lr"] == 0.1


def test_between_exchanges_a_nan_that_no_sample_has_is_told_before_it_is_sent(small_slices, monkeypatch):
    monkeypatch.setattr(rows, "_MANY", 4)
    net = model()
    opt = alone(net, every=3)
    sent, exchange = [], opt.network.exchange
    monkeypatch.setattr(opt.network, "exchange", lambda **arrays: sent.append(arrays) or exchange(**arrays))
    for step in range(3):
        for parameter in net.parameters():
            parameter.grad = torch.zeros_like(parameter)
        net[0].weight.grad[0, 1] = float("nan") if step == 0 else 0.0
        if step < 2:
            opt.step()
    with pytest.raises(DivergedError, match="NaN or infinite"):
        opt.step()
    assert not sent


def test_changes_by_others_are_told_between_exchanges(small_slices):
    net = model()
    opt = alone(net, every=4)
    for _ in range(2):
        backward(net)
        opt.step()
        opt.zero_grad()
    with torch.no_grad():
        net[0].weight.mul_(2)
    with pytest.raises(D3GDError, match="was changed since the last step"):
        opt.step()


def test_any_part_of_a_row_is_that_of_the_whole():
    tensors = [torch.arange(3.0), torch.empty(0), None, torch.arange(4.0, 6.0).double()]
    row = rows.Row(tensors, [3, 0, 4, 2], np.float32, Buffers(1))
    whole = row.whole().copy()
    assert whole.tolist() == [[0, 1, 2, 0, 0, 0, 0, 4, 5]]
    for first in range(9):
        for last in range(first + 1, 10):
            assert np.array_equal(row.part(first, last), whole[:, first:last])
