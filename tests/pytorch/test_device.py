"""Models and state on the device of the parameters: the same training as on arrays, to the bit.

No accelerator is needed: the CPU is taken for one, and PyTorch's device without numbers shows that nothing but messages
leaves a device.
"""

import threading
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import d3gd
from d3gd.algorithms.catalogue import methods, variants
from d3gd.errors import D3GDError, DivergedError
from d3gd.kernels.tensors import DeviceRows
from d3gd.network import Network
from d3gd.state import PerAgent
from d3gd.torch import DecentralizedOptimizer, device, network, slices
from d3gd.transports.threads import on_threads
from tests.helpers.launching import ROOT, launch
from tests.pytorch.device_worker import CASES, LAUNCHED, SAVED, STEPS, data, model, on_the_device, trained, vector

pytestmark = pytest.mark.usefixtures("one_thread")
# PyTorch's square root is not that of NumPy; the others agree to the bit. Relative to a model's size, after 7 steps.
ROUNDING = {"QGAdam": 1e-6, "QGAdam every": 1e-6}
PRECISIONS = [(case, dtype) for case in CASES for dtype in (torch.float32, torch.float64)]
PRECISIONS += [(case, torch.bfloat16) for case in CASES if case not in ROUNDING]  # it would show rounding as steps


def assert_same(case, found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=ROUNDING.get(case, 0) * np.abs(expected).max())


@pytest.mark.parametrize(("case", "dtype"), PRECISIONS)
def test_training_is_that_on_arrays(case, dtype):
    runs = []
    for there in (False, True):
        with on_the_device(there):
            runs.append(on_threads(3, lambda rank: trained(rank, case, dtype=dtype)))
    for (path, states, sent), (other, there, bytes_sent) in zip(*runs, strict=True):
        assert path.dtype == dtype
        assert (path[-1] - path[0]).abs().max() > 0.01  # or else agreement would mean little
        assert sent == bytes_sent
        assert_same(case, other.double().numpy(), path.double().numpy())
        for state, parts in zip(states, there, strict=True):
            assert_same_state(case, state, parts)


def assert_same_state(case, found, expected):
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert (found[name].dtype, found[name].shape) == (tensor.dtype, tensor.shape), name
        if case not in ROUNDING and name != "run":
            assert np.array_equal(found[name].double(), tensor.double(), equal_nan=True), name  # NumPy has no bfloat16


@pytest.mark.parametrize("first", [False, True], ids=["from arrays", "from the device"])
@pytest.mark.parametrize("case", CASES)
def test_a_state_goes_on_to_the_bit_on_both(case, first):
    with on_the_device(first):
        whole = on_threads(2, lambda rank: trained(rank, case))
    for there in (False, True):
        with on_the_device(there):
            rest = on_threads(2, lambda r: trained(r, case, steps=STEPS - SAVED, state=whole[r.rank][1][0]))
        for (path, states, _), (again, ends, _) in zip(whole, rest, strict=True):
            if there == first:
                assert torch.equal(again, path[SAVED:])
                assert all(np.array_equal(ends[-1][n], t, equal_nan=True) for n, t in states[-1].items())
            assert_same(case, again.numpy(), path[SAVED:].numpy())


@pytest.mark.xdist_group("launches")
@pytest.mark.parametrize(("launcher", "ranks"), [("fork", 2), ("torch", 4)])
def test_processes_train_save_and_continue_as_on_arrays(launcher, ranks, tmp_path):
    script = ROOT / "tests/pytorch/device_worker.py"
    code, out, err = launch(launcher, ranks, script, tmp_path / "numbers.npz", cwd=tmp_path)
    assert code == 0, out + err
    with np.load(tmp_path / "numbers.npz") as file:
        for case in LAUNCHED:
            path, there = file[f"{case} False"], file[f"{case} True"]
            assert_same(case, there, path)
            assert np.array_equal(file[f"{case} False bytes"], file[f"{case} True bytes"])
            for first in (False, True):
                assert np.array_equal(file[f"{case} {first} then {first}"], file[f"{case} {first}"][:, SAVED:])
                assert_same(case, file[f"{case} {first} then {not first}"], path[:, SAVED:])


COORDINATEWISE = {
    str(made): made
    for method in methods().values()
    for made in (method(step_size=0.1, **words) for words in variants(method))
    if made.coordinatewise
}
COMPRESSED = {
    "int8": d3gd.Compressed(method=d3gd.PerronD3GD(step_size=0.1), compress="int8"),
    "topk": d3gd.Compressed(method=d3gd.SGP(step_size=0.1), compress="topk:0.5"),
}


def leaves(state):
    """What a nested state consists of."""
    for value in state:
        yield from leaves(value) if isinstance(value, tuple) else [value]


@pytest.mark.parametrize("name", [*COORDINATEWISE, *COMPRESSED])
def test_nothing_but_messages_leaves_the_device(name, monkeypatch):
    """On PyTorch's device without numbers, every operation with the CPU's memory fails."""
    algorithm, sending, plain = {**COORDINATEWISE, **COMPRESSED}[name], threading.local(), device.OneAgent.exchange

    def exchange(self, **arrays):
        sending.now = True
        try:
            return plain(self, **arrays)
        finally:
            sending.now = False

    def fetched(self, dtype=None, copy=None):
        assert getattr(sending, "now", False), "rows were read elsewhere than for a message"
        return np.zeros(self.shape, self.dtype)

    monkeypatch.setattr(device.OneAgent, "exchange", exchange)
    monkeypatch.setattr(DeviceRows, "__array__", fetched)

    def work(rank):
        net = network(d3gd.graphs.complete(2), transport=rank, dtype="float32")
        net.permit(algorithm.needs)

        def row():
            return DeviceRows(torch.empty(1, 6, device="meta"))

        s = algorithm.init(net, row())
        for k in range(3):
            s = algorithm.step(net, row, s, k)
            if type(algorithm).heading is not d3gd.Algorithm.heading:
                heading = algorithm.heading(net, s, k)
                assert heading.retrace(net, row(), heading.follow(net, row(), row(), 0.1), 0.1).shape == (1, 6)
        return algorithm.point(s), s

    for point, state in on_threads(2, work):
        assert point.tensor.device.type == "meta"
        assert point.dtype == np.float32
        assert not any(isinstance(value, np.ndarray) and value.shape == (1, 6) for value in leaves(state))


class Clipped(NamedTuple):
    """The state of a method of one's own."""

    x: PerAgent
    moved: PerAgent


@dataclass(frozen=True, kw_only=True)
class Clipping(d3gd.Algorithm):
    """A coordinate-wise method that uses more of NumPy than arithmetic."""

    step_size: float
    coordinatewise = True

    def init(self, net, x0):
        return Clipped(x0, np.zeros(x0.shape))

    def step(self, net, gradient, s, k):
        g = np.clip(np.tanh(gradient()), -0.5, np.float32(0.5))
        x = s.x.copy()
        x -= self.step_size * g
        x[:, :1] = 0.25
        x = net.mix(net.a0, net.exchange(x=net.precise(x)).x)
        return Clipped(x, s.moved + np.where(g > 0, x, 0 * s.x) / (1 + s.x.shape[1]))


def alone(net, method=d3gd.PerronD3GD, *, there=True, params=None, **options):
    with on_the_device(there):
        agent = network(d3gd.graphs.ring(1))
        return DecentralizedOptimizer(params or net.parameters(), method(step_size=0.1), agent, **options)


def backward(net, rank=0):
    inputs, target = data(rank)
    loss = cross_entropy(net(inputs), target)
    loss.backward()
    return loss


def scheduled(there):
    net = model()
    opt = alone(net, there=there)
    schedule = torch.optim.lr_scheduler.LambdaLR(opt, lambda k: min(k, 4 - k) / 2)  # from zero to zero
    for _ in range(5):
        opt.zero_grad()
        backward(net)
        opt.step()
        schedule.step()
    assert (opt.iteration, opt.skipped) == (5, 2)
    return vector(net)


def scaled(there):
    net = model()
    opt, scaler = alone(net, there=there), torch.amp.GradScaler("cpu", init_scale=64.0)
    for k in range(5):
        opt.zero_grad()
        scaler.scale(cross_entropy(net(data(0)[0]), data(0)[1])).backward()
        if k == 2:
            net[0].bias.grad[0] = float("inf")
        scaler.step(opt)
        scaler.update()
    assert opt.skipped == 1
    return vector(net)


def frozen(there):
    net = model()
    net[0].weight.requires_grad_(False)
    unused = nn.Parameter(torch.ones(2))
    groups = [{"params": net[0].parameters()}, {"params": [*net[2].parameters(), unused]}]
    opt = alone(net, there=there, params=groups)
    for _ in range(3):
        opt.zero_grad()
        backward(net)
        opt.step()
    assert torch.equal(net[0].weight, model()[0].weight)
    assert torch.equal(unused, torch.ones(2))
    return vector(net)


def sparse(there):
    net = nn.Embedding(6, 3, sparse=True, _weight=torch.arange(18).sin().reshape(3, 6).T)  # and out of order
    opt = alone(net, there=there)
    net(torch.tensor([1, 4])).square().sum().backward()
    opt.step()
    return net.weight.detach().clone()


def closed(there):
    net = model()
    opt = alone(net, d3gd.DiDGD, there=there)
    for _ in range(3):

        def closure():
            opt.zero_grad()
            return backward(net)

        assert opt.step(closure) > 0
    return vector(net)


def joined(there):
    def work(rank):
        net, agent = model(), network(d3gd.graphs.exponential(2), transport=rank)
        opt = DecentralizedOptimizer(net.parameters(), d3gd.PerronD3GD(step_size=0.1), agent)
        with opt.join():
            for _ in range(3 + 2 * rank.rank):
                opt.zero_grad()
                backward(net, rank.rank)
                opt.step()
        assert opt.iteration == 5
        return vector(net)

    with on_the_device(there):
        return torch.stack(on_threads(2, work))


@pytest.mark.parametrize("practice", [scheduled, scaled, frozen, sparse, closed, joined])
def test_practice_is_that_on_arrays(practice):
    assert torch.equal(practice(there=False), practice(there=True))


def test_parameters_are_views_of_one_row_which_others_must_not_change():
    net = model()
    opt = alone(net)
    backward(net)
    opt.step()
    assert len({p.untyped_storage().data_ptr() for p in net.parameters()}) == 1
    assert torch.equal(opt._steps.point.tensor[0], vector(net))
    net[0].weight.data = net[0].weight.data.clone()  # other memory with the same values
    opt.step()
    assert len({p.untyped_storage().data_ptr() for p in net.parameters()}) == 1
    with torch.no_grad():
        net[0].weight.mul_(2)
    with pytest.raises(D3GDError, match="was changed since the last step"):
        opt.step()


@pytest.mark.parametrize("every", [1, 2])
def test_numbers_that_are_not_finite_change_nothing(every):
    net = model()
    opt = alone(net, every=every)
    before, state = vector(net), opt.state_dict()
    for bad in (float("nan"), 1e38):  # the latter overflows in the step itself
        for parameter in net.parameters():
            parameter.grad = torch.full_like(parameter, bad)
        opt.param_groups[0]["lr"] = 10.0
        with pytest.raises(DivergedError, match="keep their last values"):
            opt.step()
        assert opt.status == "diverged"
        assert torch.equal(before, vector(net))
    opt.param_groups[0]["lr"] = 0.1
    assert all(np.array_equal(state[name], tensor, equal_nan=True) for name, tensor in opt.state_dict().items())


@pytest.mark.parametrize("name", ["DiDGD", "PerronD3GD", "momentum", "SGP", "every"])
def test_large_models_are_those_stepped_in_slices(name):
    """On arrays, models of this size are updated by compiled kernels, in place."""
    width, ends = slices._WHOLE + 1, []
    algorithm, options = CASES[name]

    def work(rank):
        x = nn.Parameter(torch.arange(width).sin())
        agent = network(d3gd.graphs.exponential(2), transport=rank)
        opt = DecentralizedOptimizer([x], algorithm, agent, **options)
        for k in range(4):
            x.grad = (torch.arange(width) + k + 2 * rank.rank).cos()
            opt.step()
        return x.detach()

    for there in (False, True):
        with on_the_device(there):
            ends.append(on_threads(2, work))
    for on_arrays, on_device in zip(*ends, strict=True):
        assert torch.equal(on_arrays, on_device)


def test_large_models_train_where_only_some_ranks_have_an_accelerator(monkeypatch):
    """A slice is a message of its own, so nobody slices then."""
    width, here = 2 * slices._SLICE + 2, threading.local()
    monkeypatch.setattr(device, "accelerator", lambda parameters: torch.device("cpu") if here.any else None)

    def work(rank):
        here.any = rank.rank == 1
        halves = [nn.Parameter(torch.ones(width // 2)) for _ in range(2)]
        agent = network(d3gd.graphs.ring(2), transport=rank)
        opt = DecentralizedOptimizer(halves, d3gd.PerronD3GD(step_size=0.1), agent)
        for half in halves:
            half.grad = torch.full_like(half, 1.0 + rank.rank)
        opt.step()
        return halves[0].detach()[:2]

    one, other = on_threads(2, work)
    assert torch.equal(one, other)
    torch.testing.assert_close(one, torch.full((2,), 0.85))


class TestChoice:
    """Parameters decide, and the method."""

    def test_the_cpu_is_no_accelerator_and_two_devices_are_not_one(self):
        here, there = torch.ones(2), torch.ones(2, device="meta")
        assert device.accelerator([here, here]) is None
        assert device.accelerator([here, there]) is None
        assert device.accelerator([there, there]) == torch.device("meta")

    def test_a_device_without_double_precision_is_left_alone(self, monkeypatch):
        def zeros(*shape, **options):
            raise TypeError("this device has no float64")

        monkeypatch.setattr(torch, "zeros", zeros)
        assert device.accelerator([torch.ones(2, device="meta")]) is None

    @pytest.mark.parametrize("algorithm", [d3gd.D3GD(step_size=0.1), d3gd.PerronD3GD(step_size=0.1, rule="planned")])
    def test_methods_that_are_not_coordinatewise_are_computed_on_arrays(self, algorithm):
        net = model()
        opt = alone(net, lambda step_size: algorithm)
        assert type(opt._steps.point) is np.ndarray
        for _ in range(8):
            opt.zero_grad()
            backward(net)
            opt.step()
        assert not torch.equal(vector(net), vector(model()))

    def test_networks_of_other_kinds_too(self):
        net, graph = model(), d3gd.graphs.complete(1)
        with on_the_device():
            agent = Network(graph, d3gd.weights.metropolis(graph), dtype=np.float32)
            opt = DecentralizedOptimizer(net.parameters(), d3gd.DiDGD(step_size=0.1), agent)
        assert type(opt._steps.point) is np.ndarray

    def test_a_method_of_ones_own_may_use_all_of_numpy(self):
        ends = []
        for there in (False, True):
            net = model()
            opt = alone(net, Clipping, there=there)
            for _ in range(3):
                opt.zero_grad()
                backward(net)
                opt.step()
            ends.append(vector(net))
        assert torch.equal(*ends)
        assert isinstance(opt._steps.memory.moved, DeviceRows)
