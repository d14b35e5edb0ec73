"""The optimizer on one process: arguments, state, and errors."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import d3gd
from d3gd.algorithms.catalogue import methods, variants
from d3gd.errors import D3GDError, RecordError, SettingsError
from d3gd.network import Network
from d3gd.torch import DecentralizedOptimizer, network
from d3gd.transports.threads import on_threads
from tests.helpers.own_methods import LocalSteps, VarianceReduced

X, Y = torch.randn(12, 4, generator=torch.Generator().manual_seed(0)), torch.arange(12) % 3


def alone():
    """A world of one agent, where Di-DGD is gradient descent."""
    return network(d3gd.graphs.complete(1))


def model(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))


def optimizer(parameters, step_size=0.25, **options):
    return DecentralizedOptimizer(parameters, d3gd.DiDGD(step_size=step_size), alone(), **options)


def descend(net, opt, steps=1):
    for _ in range(steps):
        opt.zero_grad()
        cross_entropy(net(X), Y).backward()
        opt.step()
    return nn.utils.parameters_to_vector(net.parameters()).detach().clone()


def test_one_agent_alone_is_gradient_descent():
    ours, theirs = model(), model()
    ends = (
        descend(ours, optimizer(ours.parameters()), 5),
        descend(theirs, torch.optim.SGD(theirs.parameters(), 0.25), 5),
    )
    torch.testing.assert_close(*ends, rtol=0, atol=1e-6)


def test_groups_frozen_and_unused_parameters():
    ours, theirs = model(), model()
    for net in (ours, theirs):
        net[0].bias.requires_grad_(False)
    unused = nn.Parameter(torch.ones(2))
    opt = optimizer([{"params": ours[0].parameters()}, {"params": [*ours[2].parameters(), unused]}])
    descend(ours, opt, 3)
    descend(theirs, torch.optim.SGD(theirs.parameters(), 0.25), 3)
    for own, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(own, other, rtol=0, atol=1e-6)
    assert torch.equal(ours[0].bias, model()[0].bias)
    assert torch.equal(unused, torch.ones(2))


def test_sparse_gradients_and_parameters_out_of_order():
    ours, theirs = nn.Embedding(6, 3, sparse=True), nn.Embedding(6, 3)
    theirs.load_state_dict(ours.state_dict())
    ours.weight = nn.Parameter(ours.weight.detach().T.contiguous().T)
    assert not ours.weight.is_contiguous()
    opt = optimizer(ours.parameters())
    ours(torch.tensor([1, 4])).square().sum().backward()
    opt.step()
    theirs(torch.tensor([1, 4])).square().sum().backward()
    torch.testing.assert_close(ours.weight, theirs.weight - 0.25 * theirs.weight.grad, rtol=0, atol=1e-6)


def test_a_closure_is_called_and_its_value_returned():
    net = model()
    opt = optimizer(net.parameters())

    def closure():
        opt.zero_grad()
        loss = cross_entropy(net(X), Y)
        loss.backward()
        return loss

    expected = cross_entropy(model()(X), Y)
    assert torch.equal(opt.step(closure), expected)
    assert opt.iteration == 1


class TestOtherPoints:
    """Methods that ask for gradients elsewhere than at the model."""

    def closure(self, net, opt):
        def evaluate():
            opt.zero_grad()
            loss = cross_entropy(net(X), Y)
            loss.backward()
            return loss

        return evaluate

    def test_a_closure_computes_them_there_and_the_model_is_put_back(self):
        ours, theirs = model(), model()
        opt = DecentralizedOptimizer(ours.parameters(), LocalSteps(0.25, 3), alone())
        loss = opt.step(self.closure(ours, opt))
        assert torch.equal(loss, cross_entropy(theirs(X), Y))
        end = descend(theirs, torch.optim.SGD(theirs.parameters(), 0.25), 3)
        torch.testing.assert_close(nn.utils.parameters_to_vector(ours.parameters()), end, rtol=0, atol=1e-6)
        opt.step(self.closure(ours, opt))

    def test_without_a_closure_they_are_refused(self):
        net = model()
        opt = DecentralizedOptimizer(net.parameters(), LocalSteps(0.25, 2), alone())
        cross_entropy(net(X), Y).backward()
        with pytest.raises(SettingsError, match="closure"):
            opt.step()

    def test_all_data_are_not_a_closure_s_to_give(self):
        net = model()
        opt = DecentralizedOptimizer(net.parameters(), VarianceReduced(0.25, 2), alone())
        with pytest.raises(SettingsError, match="all data"):
            opt.step(self.closure(net, opt))


class TestStepSizes:
    def test_a_scheduler_of_torch_is_obeyed(self):
        ends = []
        for make in (optimizer, lambda p: torch.optim.SGD(p, 0.25)):
            net = model()
            opt = make(net.parameters())
            schedule = torch.optim.lr_scheduler.ExponentialLR(opt, 0.5)
            for _ in range(4):
                end = descend(net, opt)
                schedule.step()
            ends.append(end)
        torch.testing.assert_close(*ends, rtol=0, atol=1e-6)

    def test_a_schedule_of_the_algorithm_shows_in_the_groups(self):
        net = model()
        opt = optimizer(net.parameters(), step_size=lambda k: 0.25 / (1 + k))
        descend(net, opt)
        assert opt.param_groups[0]["lr"] == 0.125
        opt.param_groups[0]["lr"] = 0.5
        with pytest.raises(SettingsError, match="has its own schedule"):
            descend(net, opt)

    def test_a_scheduler_may_begin_and_end_at_zero(self):
        ends = []
        for make in (optimizer, lambda p: torch.optim.SGD(p, 0.25)):
            net = model()
            opt = make(net.parameters())
            schedule = torch.optim.lr_scheduler.LambdaLR(opt, lambda k: min(k, 4 - k) / 2)
            for _ in range(5):
                end = descend(net, opt)
                schedule.step()
            ends.append(end)
            if make is optimizer:
                assert (opt.iteration, opt.skipped) == (5, 2)
        torch.testing.assert_close(*ends, rtol=0, atol=1e-6)

    @pytest.mark.parametrize("lr", [-1.0, float("nan")])
    def test_a_step_size_must_not_be_negative(self, lr):
        net = model()
        opt = optimizer(net.parameters())
        opt.param_groups[0]["lr"] = lr
        with pytest.raises(SettingsError, match="positive finite"):
            descend(net, opt)

    def test_groups_cannot_have_their_own(self):
        net = model()
        opt = optimizer([{"params": net[0].parameters(), "lr": 0.1}, {"params": net[2].parameters()}])
        with pytest.raises(SettingsError, match="one step size"):
            descend(net, opt)


METHODS = [
    method(step_size=0.1, **words)
    for method in methods().values()
    for words in variants(method)
    # K-GT evaluates gradients elsewhere; as an optimizer it is DIGing with every=.
    if method(step_size=0.1, **words).needs != "all agents" and method is not d3gd.KGT
]


class TestState:
    @pytest.mark.parametrize("algorithm", METHODS, ids=str)
    def test_every_method_resumes_to_the_bit(self, algorithm):
        net, again = model(), model(seed=1)
        opt = DecentralizedOptimizer(net.parameters(), algorithm, alone())
        descend(net, opt, 8)
        saved = opt.state_dict()
        end = descend(net, opt, 3)
        other = DecentralizedOptimizer(again.parameters(), algorithm, alone())
        other.load_state_dict(saved)
        assert torch.equal(descend(again, other, 3), end)
        assert end.isfinite().all()

    def test_it_resumes_to_the_bit(self):
        net, again = model(), model(seed=1)
        opt = optimizer(net.parameters())
        descend(net, opt, 3)
        saved = opt.state_dict()
        end = descend(net, opt, 4)
        other = optimizer(again.parameters())
        other.load_state_dict(saved)
        assert torch.equal(descend(again, other, 4), end)
        assert other.iteration == 7

    def test_it_is_a_copy_in_tensors_of_their_own(self):
        net = model()
        opt = optimizer(net.parameters())
        saved = opt.state_dict()
        before = {name: tensor.clone() for name, tensor in saved.items()}
        descend(net, opt, 2)
        assert all(torch.equal(saved[name], before[name]) for name in saved if "lr" not in name)
        places = [tensor.untyped_storage().data_ptr() for tensor in saved.values()]
        assert len(set(places)) == len(places)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda s: s.pop("state.x"), "lacks 'state.x'"),
            (lambda s: s.update(more=torch.ones(1)), "has 'more'"),
            (lambda s: s.update({"state.x": torch.ones(1, 3, dtype=torch.float64)}), "instead of float32"),
            (lambda s: s.update({"state.x": s["state.x"].bfloat16()}), r"'state\.x' of the state is torch\.bfloat16"),
            (lambda s: s["state.Y"].fill_(float("nan")), "'state.Y' of the state has numbers that are NaN"),
            (lambda s: s["skipped"].fill_(2), "state counts contradict"),
            (lambda s: s.update(every=torch.ones(2)), "'every' of the state is"),
            (lambda s: s.update(agent=torch.tensor(3)), "of agent 3"),
            (lambda s: s.update(param_groups=[]), "'param_groups', as those of PyTorch's own"),
        ],
    )
    def test_a_state_of_another_experiment_is_refused(self, change, message):
        opt = optimizer(model().parameters())
        state = opt.state_dict()
        change(state)
        with pytest.raises(RecordError, match=message):
            opt.load_state_dict(state)

    def test_a_path_is_no_state(self):
        with pytest.raises(RecordError, match=r"the state is a str; .* torch\.load"):
            optimizer(model().parameters()).load_state_dict("agent_0_of_4.pt")

    def test_parameters_that_others_changed_are_not_overwritten(self):
        net = model()
        opt = optimizer(net.parameters())
        net.load_state_dict(model().state_dict())  # to the same values
        descend(net, opt)
        net.load_state_dict(model(seed=1).state_dict())
        with pytest.raises(D3GDError, match="changed since the last step"):
            descend(net, opt)

    def test_numbers_that_are_not_finite_reach_neither_the_model_nor_its_state(self):
        net = model()
        opt = optimizer(net.parameters())
        descend(net, opt)
        before, state = [p.clone() for p in net.parameters()], opt.state_dict()
        for p in net.parameters():
            p.grad = torch.full_like(p, float("nan"))
        with pytest.raises(d3gd.errors.DivergedError, match="this step would make the model NaN or infinite"):
            opt.step()
        assert opt.status == "diverged"
        assert all(torch.equal(p, b) for p, b in zip(net.parameters(), before, strict=True))
        after = opt.state_dict()
        assert all(np.array_equal(after[name].numpy(), state[name].numpy(), equal_nan=True) for name in state)
        descend(net, opt)
        assert opt.status == "running"


class TestNothingInSilence:
    """What would have no effect is refused."""

    @pytest.mark.parametrize("option", ["weight_decay", "momentum"])
    def test_options_of_groups(self, option):
        net = model()
        with pytest.raises(SettingsError, match=f"'{option}', which has no effect"):
            optimizer([{"params": net.parameters(), option: 0.1}])
        opt = optimizer(net.parameters())
        opt.param_groups[0][option] = 0.1
        with pytest.raises(SettingsError, match=f"'{option}', which has no effect.*with QGAdam, to its settings"):
            descend(net, opt)

    @pytest.mark.parametrize("trainable", [True, False])
    def test_layers_frozen_or_unfrozen_later(self, trainable):
        net = model()
        net[0].requires_grad_(not trainable)
        opt = optimizer(net.parameters())
        descend(net, opt)
        net[0].requires_grad_(trainable)
        with pytest.raises(SettingsError, match=f"was {'un' * trainable}frozen after"):
            descend(net, opt)

    def test_layers_taken_out_later(self):
        net = model()
        opt = optimizer([{"params": net[0].parameters()}, {"params": net[2].parameters()}])
        opt.param_groups.pop()
        with pytest.raises(SettingsError, match=r"of shape \(3, 5\) was taken out"):
            descend(net, opt)

    def test_join_within_join(self):
        opt = optimizer(model().parameters())
        with opt.join(), pytest.raises(SettingsError, match="entered already"), opt.join():
            pass


class TestGradScaler:
    @pytest.mark.parametrize("unscale", [True, False])
    def test_gradients_are_unscaled_once_and_a_step_that_overflows_is_skipped(self, unscale):
        ends, scales = [], []
        for make in (optimizer, lambda p: torch.optim.SGD(p, 0.25)):
            net = model()
            opt = make(net.parameters())
            scaler = torch.amp.GradScaler("cpu", init_scale=64.0, growth_interval=2)
            for k in range(5):
                opt.zero_grad()
                scaler.scale(cross_entropy(net(X), Y)).backward()
                if k == 2:
                    net[0].bias.grad[0] = float("inf")
                if unscale:
                    scaler.unscale_(opt)
                scaler.step(opt)
                scaler.update()
            ends.append(nn.utils.parameters_to_vector(net.parameters()))
            scales.append(scaler.get_scale())
            if make is optimizer:
                assert (opt.iteration, opt.skipped) == (5, 1)
        torch.testing.assert_close(*ends, rtol=0, atol=1e-6)
        assert scales[0] == scales[1]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: network(d3gd.graphs.ring(4)), "1 process for 4 agents.*nproc-per-node 4"),
        (
            lambda: DecentralizedOptimizer(
                model().parameters(),
                d3gd.DiDGD(step_size=0.1),
                Network(d3gd.graphs.ring(4), d3gd.weights.metropolis(d3gd.graphs.ring(4))),
            ),
            "this process has 4 agents",
        ),
        (
            lambda: DecentralizedOptimizer(model().parameters(), d3gd.D3GD(step_size=0.1, rule="global"), alone()),
            "values of all agents",
        ),
        (
            lambda: DecentralizedOptimizer(model().parameters(), d3gd.DiDGD(step_size=0.1), d3gd.graphs.ring(1)),
            "network is a Digraph; .* d3gd.torch.network",
        ),
        (lambda: DecentralizedOptimizer(model().parameters(), "DiDGD", alone()), "str has no 'exact'"),
        (lambda: optimizer(nn.Linear(2, 2).requires_grad_(False).parameters()), "no parameter"),
        (lambda: optimizer(nn.LazyLinear(2).parameters()), "lazy layer"),
        (lambda: optimizer([nn.Parameter(torch.ones(2, dtype=torch.cfloat))]), "models are real"),
        (lambda: optimizer(model().parameters()).add_param_group({"params": [nn.Parameter(torch.ones(1))]}), "grow"),
    ],
)
def test_mistakes_are_told_at_once(make, message):
    with pytest.raises(SettingsError, match=message):
        make()


def test_without_torch_the_message_says_what_to_install():
    import subprocess
    import sys

    code = "import sys; sys.modules['torch'] = None\nimport d3gd\nd3gd.torch"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "pip install 'd3gd[torch]'" in answer.stderr.splitlines()[-1]


class TestPrecision:
    @pytest.mark.parametrize(
        ("parameters", "travels"),
        [
            ([torch.float32], torch.float32),
            ([torch.float64], torch.float64),
            ([torch.float32, torch.float64], torch.float64),
            ([torch.bfloat16, torch.float16], torch.float32),
        ],
    )
    def test_a_model_travels_as_its_parameters_are_and_trackers_in_double(self, parameters, travels):
        opt = optimizer([nn.Parameter(torch.ones(2, dtype=dtype)) for dtype in parameters])
        state = opt.state_dict()
        assert state["state.x"].dtype == travels
        assert state["state.Y"].dtype == torch.float64

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_it_is_rounded_nowhere_but_in_the_arithmetic(self, dtype):
        net = model().to(dtype)
        opt = optimizer(net.parameters())
        opt.zero_grad()
        cross_entropy(net(X.to(dtype)), Y).backward()
        opt.step()
        flat = nn.utils.parameters_to_vector(net.parameters())
        assert torch.equal(opt.state_dict()["state.x"][0], flat)

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_another_may_be_asked_for(self, dtype):
        world = network(d3gd.graphs.complete(1), dtype=dtype)
        mixed = nn.ParameterList([torch.ones(1), torch.ones(1, dtype=torch.float64)])
        opt = DecentralizedOptimizer(mixed.parameters(), d3gd.DiDGD(step_size=0.25), world)
        assert opt.state_dict()["state.x"].dtype == getattr(torch, dtype)

    def test_a_network_carries_one(self):
        world = alone()
        method = d3gd.DiDGD(step_size=0.25)
        DecentralizedOptimizer(model().parameters(), method, world)
        DecentralizedOptimizer(model().parameters(), method, world)
        with pytest.raises(SettingsError, match="has a float32 model, and this one is float64"):
            DecentralizedOptimizer(model().double().parameters(), method, world)


def test_a_scheduler_does_not_move_models_apart_that_have_come_to_rest():
    """PerronD3GD on four agents, each a thread with an objective of its own."""
    centres = torch.randn(4, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)

    def train(transport):
        net = network(d3gd.graphs.ring(4), transport=transport)
        own = nn.Parameter(torch.zeros(3, dtype=torch.float64))
        opt = DecentralizedOptimizer([own], d3gd.PerronD3GD(step_size=0.2), net)
        schedule = torch.optim.lr_scheduler.MultiStepLR(opt, [600, 620, 640], gamma=0.1)
        path = []
        for _ in range(700):
            opt.zero_grad()
            (0.5 * (own - centres[int(net.agents[0])]).square().sum()).backward()
            opt.step()
            schedule.step()
            path.append(own.detach().clone())
        return torch.stack(path)

    models = torch.stack(on_threads(4, train))
    apart = (models - centres.mean(dim=0)).abs().amax(dim=(0, 2))
    assert apart[0] > 0.1
    assert apart[590:].max() < 1e-9
