"""Any optimizer of PyTorch as the local one: alone it is that optimizer; states, schedulers and groups are its own."""

import copy
from functools import partial

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.optim import lr_scheduler

import d3gd
from d3gd.errors import DivergedError, RecordError, SettingsError
from d3gd.torch import DecentralizedOptimizer, network
from tests.helpers.own_methods import LocalSteps

pytestmark = pytest.mark.usefixtures("one_thread")
X = torch.randn(12, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
Y = torch.arange(12) % 3
OPTIMIZERS = {
    "SGD": partial(torch.optim.SGD, lr=0.1),
    "momentum": partial(torch.optim.SGD, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
    "AdamW": partial(torch.optim.AdamW, lr=0.01, weight_decay=0.1),
    "amsgrad": partial(torch.optim.Adam, lr=0.01, amsgrad=True),
    "tensor lr": partial(torch.optim.Adam, lr=torch.tensor(0.01)),
    "RMSprop": partial(torch.optim.RMSprop, lr=0.01, centered=True),
    "Adagrad": partial(torch.optim.Adagrad, lr=0.01),
    "Adadelta": partial(torch.optim.Adadelta, lr=1.0, rho=0.5),
    "Adafactor": partial(torch.optim.Adafactor, lr=0.01),
    "Adamax": partial(torch.optim.Adamax, lr=0.01),
    "ASGD": partial(torch.optim.ASGD, lr=0.1),
    "NAdam": partial(torch.optim.NAdam, lr=0.01),  # keeps a single number in single precision
    "RAdam": partial(torch.optim.RAdam, lr=0.1),
    "Rprop": partial(torch.optim.Rprop, lr=0.01),
    "fused": partial(torch.optim.AdamW, lr=0.01, fused=True),
    "foreach": partial(torch.optim.AdamW, lr=0.01, foreach=True, maximize=True),
    "LBFGS": partial(torch.optim.LBFGS, lr=0.5, max_iter=3),
}


def model(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)).double()


def ours(params, make, algorithm=d3gd.DiDGD):
    return DecentralizedOptimizer(params, algorithm(step_size=1), network(d3gd.graphs.complete(1)), local=make)


def descend(net, opt, steps=1, schedule=None, clip=None):
    def closure():
        opt.zero_grad()
        loss = cross_entropy(net(X), Y)
        loss.backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(net.parameters(), clip)
        return loss

    for _ in range(steps):
        loss = opt.step(closure)
        assert loss is not None
        if schedule is not None:
            schedule.step()
    return nn.utils.parameters_to_vector(net.parameters()).detach().clone()


@pytest.mark.parametrize(
    ("name", "algorithm"),
    [(name, d3gd.DiDGD) for name in OPTIMIZERS]
    + [("momentum", other) for other in (d3gd.PerronD3GD, d3gd.FROST, d3gd.SGP)],
)
def test_alone_it_is_that_optimizer(name, algorithm):
    nets = model(), model()
    ends = [
        descend(net, made, 6, clip=0.5)
        for net, made in zip(
            nets,
            (ours(nets[0].parameters(), OPTIMIZERS[name], algorithm), OPTIMIZERS[name](nets[1].parameters())),
            strict=True,
        )
    ]
    torch.testing.assert_close(*ends, rtol=0, atol=1e-12)
    assert (ends[0] - nn.utils.parameters_to_vector(model().parameters())).abs().max() > 0.01


@pytest.mark.parametrize(
    ("make", "layer", "inputs"),
    [
        (partial(torch.optim.Muon, lr=0.1), nn.Linear(4, 3, bias=False), X.float()),
        (partial(torch.optim.SparseAdam, lr=0.1), nn.Embedding(5, 3, sparse=True), Y),
    ],
    ids=["Muon", "SparseAdam"],
)
def test_optimizers_for_some_layers(make, layer, inputs):
    nets = copy.deepcopy(layer), copy.deepcopy(layer)
    for net, opt in zip(nets, (ours(nets[0].parameters(), make), make(nets[1].parameters())), strict=True):
        for _ in range(4):
            opt.zero_grad()
            cross_entropy(net(inputs), Y).backward()
            opt.step()
    torch.testing.assert_close(nets[0].weight, nets[1].weight, rtol=0, atol=1e-6)
    assert not torch.allclose(nets[0].weight, layer.weight, rtol=0, atol=0.1)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_it_resumes_to_the_bit(name, tmp_path):
    net, again = model(), model(seed=1)
    opt = ours(net.parameters(), OPTIMIZERS[name], d3gd.PerronD3GD)
    descend(net, opt, 3)
    torch.save(opt.state_dict(), tmp_path / "state.pt")
    end = descend(net, opt, 4)
    other = ours(again.parameters(), OPTIMIZERS[name], d3gd.PerronD3GD)
    state = torch.load(tmp_path / "state.pt", weights_only=True)
    assert all(isinstance(value, torch.Tensor) for value in state.values())
    other.load_state_dict(state)
    torch.testing.assert_close(other.state_dict(), state, rtol=0, atol=0, equal_nan=True)
    assert torch.equal(descend(again, other, 4), end)


SCHEDULES = {
    "from zero": lambda opt: lr_scheduler.LambdaLR(opt, lambda k: min(k, 8 - k) / 4),
    "one cycle": lambda opt: lr_scheduler.OneCycleLR(opt, max_lr=[0.1, 0.3], total_steps=9),
    "cosine": lambda opt: lr_scheduler.CosineAnnealingLR(opt, T_max=8),
    "warm-up": lambda opt: lr_scheduler.LinearLR(opt, start_factor=0.1, total_iters=4),
}


def grouped(net):
    return [{"params": net[0].parameters()}, {"params": net[2].parameters(), "lr": 0.02, "weight_decay": 0.3}]


@pytest.mark.parametrize("name", ["momentum", "AdamW"])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_groups_and_schedulers_are_those_of_the_optimizer(schedule, name):
    ends = []
    for make in (partial(ours, make=OPTIMIZERS[name]), OPTIMIZERS[name]):
        net = model()
        opt = make(grouped(net))
        ends.append(descend(net, opt, 9, SCHEDULES[schedule](opt)))
    torch.testing.assert_close(*ends, rtol=0, atol=1e-12)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_with_a_scheduler_it_resumes_to_the_bit(schedule):
    net, again = model(), model(seed=1)
    opt = ours(grouped(net), OPTIMIZERS["momentum"], d3gd.PerronD3GD)
    plan = SCHEDULES[schedule](opt)
    descend(net, opt, 5, plan)
    saved, planned = opt.state_dict(), plan.state_dict()
    end = descend(net, opt, 4, plan)
    other = ours(grouped(again), OPTIMIZERS["momentum"], d3gd.PerronD3GD)
    later = SCHEDULES[schedule](other)
    other.load_state_dict(saved)
    later.load_state_dict(planned)
    assert torch.equal(descend(again, other, 4, later), end)


def test_without_a_closure_and_with_a_loss_scale():
    ends = []
    for make in (partial(ours, make=OPTIMIZERS["AdamW"]), OPTIMIZERS["AdamW"]):
        net = model()
        opt = make(net.parameters())
        scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
        for k in range(5):
            opt.zero_grad()
            scaler.scale(cross_entropy(net(X), Y)).backward()
            if k == 2:
                net[0].bias.grad[0] = float("inf")
            scaler.step(opt)
            scaler.update()
        ends.append(nn.utils.parameters_to_vector(net.parameters()))
    torch.testing.assert_close(*ends, rtol=0, atol=1e-12)


def test_nan_does_not_enter_its_moments():
    net = model()
    opt = ours(net.parameters(), OPTIMIZERS["AdamW"])
    descend(net, opt, 2)
    before = opt.state_dict()
    net[0].weight.grad[0] = float("nan")
    with pytest.raises(DivergedError):
        opt.step()
    after = opt.state_dict()
    assert all(before[name].equal(after[name]) for name in before if not before[name].isnan().any())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: ours(p, lambda q: None), "local returned a NoneType"),
        (lambda p: ours(p, torch.optim.SGD(model().parameters(), lr=0.1)), "local is a SGD; give a function"),
        (lambda p: ours(p, OPTIMIZERS["SGD"], lambda step_size: d3gd.DiDGD(step_size=0.1)), "write step_size=1"),
    ],
)
def test_mistakes_are_told_at_once(make, message):
    with pytest.raises(SettingsError, match=message):
        make(model().parameters())


def test_methods_with_gradients_elsewhere_are_refused():
    net = model()
    opt = ours(net.parameters(), OPTIMIZERS["SGD"], lambda step_size: LocalSteps(step_size, 2))
    with pytest.raises(SettingsError, match="leave local out"):
        descend(net, opt)


def test_states_with_and_without_one_are_told_apart():
    alone = network(d3gd.graphs.complete(1))
    plain = DecentralizedOptimizer(model().parameters(), d3gd.DiDGD(step_size=1), alone)
    local = ours(model().parameters(), OPTIMIZERS["AdamW"])
    with pytest.raises(RecordError, match="saved with a local optimizer"):
        plain.load_state_dict(local.state_dict())
    with pytest.raises(RecordError, match="saved without a local optimizer"):
        local.load_state_dict(plain.state_dict())
    state = ours(grouped(model()), OPTIMIZERS["AdamW"]).state_dict()
    state = {name: state[name] if name.startswith("local.") else tensor for name, tensor in local.state_dict().items()}
    with pytest.raises(RecordError, match="cannot continue from this state"):
        local.load_state_dict(state)
