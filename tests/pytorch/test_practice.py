"""What training scripts do: each has the effect that it has in one process."""

import os
import shutil
import warnings

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import d3gd
from d3gd.torch import DecentralizedOptimizer, network, sample_weight
from d3gd.transports.threads import on_threads

X = torch.randn(12, 4, generator=torch.Generator().manual_seed(0))
Y = torch.arange(12) % 3


def model(*extra):
    net = nn.Sequential(nn.Linear(4, 5), *extra, nn.Tanh(), nn.Linear(5, 3))
    for parameter in net.parameters():  # threads share the random numbers of PyTorch
        parameter.data = torch.arange(1, parameter.numel() + 1).sin().reshape(parameter.shape)
    return net


def vector(net):
    return nn.utils.parameters_to_vector(net.parameters()).detach()


def alone(net, step_size=0.1):
    return DecentralizedOptimizer(net.parameters(), d3gd.PerronD3GD(step_size=step_size), network(d3gd.graphs.ring(1)))


def pair(work):
    """Two agents on threads; each has half of the data."""

    def agent(rank):
        net = network(d3gd.graphs.exponential(2), transport=rank)
        return work(net, X[rank.rank :: 2], Y[rank.rank :: 2])

    return on_threads(2, agent)


def trained(make, net, steps=8, **options):
    opt = make(net)
    for _ in range(steps):
        opt.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, **options):
            loss = cross_entropy(net(X), Y)
        loss.backward()
        opt.step()
    return vector(net)


def test_autocast_is_that_of_one_process():
    ours, theirs = (trained(make, model()) for make in (alone, lambda net: torch.optim.SGD(net.parameters(), lr=0.1)))
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-6)
    assert not torch.allclose(ours, trained(alone, model(), enabled=False), rtol=0, atol=1e-6)


def test_models_in_bfloat16_keep_their_small_steps():
    """A step of 1e-4 is lost in bfloat16 itself; the optimizer keeps float32."""
    net = model().bfloat16()
    before, opt = vector(net), alone(net, step_size=1e-4)
    for _ in range(300):
        for parameter in net.parameters():
            parameter.grad = torch.ones_like(parameter)
        opt.step()
    assert net[0].weight.dtype == torch.bfloat16
    torch.testing.assert_close(vector(net).float(), before.float() - 0.03, rtol=0, atol=5e-3)


def test_accumulated_gradients_are_those_of_the_large_batch():
    def accumulated(parts):
        def work(agent, inputs, target):
            net = model()
            opt = DecentralizedOptimizer(net.parameters(), d3gd.PerronD3GD(step_size=0.1), agent)
            for _ in range(5):
                opt.zero_grad()
                for some, wanted in zip(inputs.chunk(parts), target.chunk(parts), strict=True):
                    (cross_entropy(net(some), wanted) / parts).backward()
                opt.step()
            return vector(net)

        return pair(work)

    for whole, pieces in zip(accumulated(1), accumulated(3), strict=True):
        torch.testing.assert_close(whole, pieces, rtol=0, atol=1e-6)


NO_COMPILER = not any(map(shutil.which, (os.environ.get("CXX", "g++"), "g++", "clang++")))


@pytest.mark.parametrize(
    ("backend", "tolerance"),
    [
        ("eager", 0),
        pytest.param(
            "inductor",
            1e-6,
            marks=pytest.mark.skipif(NO_COMPILER, reason="inductor needs a C++ compiler, and none is here"),
        ),
    ],
)
@pytest.mark.filterwarnings("ignore")  # PyTorch's compiler warns of PyTorch
def test_a_compiled_model_is_trained(backend, tolerance, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TORCHINDUCTOR_COMPILE_THREADS", "1")
    nets = model(), model()
    for net, run in zip(nets, (nets[0], torch.compile(nets[1], backend=backend)), strict=True):
        opt = alone(net)
        for _ in range(3):
            opt.zero_grad()
            cross_entropy(run(X), Y).backward()
            opt.step()
    torch.testing.assert_close(*map(vector, nets), rtol=0, atol=tolerance)
    assert not torch.equal(vector(nets[0]), vector(model()))


@pytest.mark.parametrize(
    ("layer", "wanted"),
    [(nn.LayerNorm(5), 0), (nn.BatchNorm1d(5), 1), (nn.BatchNorm1d(5, track_running_stats=False), 0)],
)
def test_statistics_that_stay_local_are_told_once(layer, wanted):
    def work(agent, inputs, target):
        net = model(layer)
        return net, DecentralizedOptimizer(net.parameters(), d3gd.DiDGD(step_size=0.1), agent)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pair(work)
    told = [warning.filename for warning in caught if "opt.mix_buffers(model)" in str(warning.message)]
    assert told == [__file__] * wanted  # where the optimizer is created


def test_a_frozen_base_is_neither_changed_nor_sent():
    def work(agent, inputs, target):
        net = model()
        net[0].requires_grad_(False)
        opt = DecentralizedOptimizer(net.parameters(), d3gd.PerronD3GD(step_size=0.1), agent)
        sent = agent.bytes_sent
        cross_entropy(net(inputs), target).backward()
        opt.step()
        return net, agent.bytes_sent - sent

    for net, sent in pair(work):
        assert torch.equal(vector(net[0]), vector(model()[0]))
        assert not torch.equal(vector(net[2]), vector(model()[2]))
        assert sent == 4 * sum(p.numel() for p in net[2].parameters())


def test_within_join_samples_count_alike_without_weights():
    """An agent whose samples, four times as many, are one, and one whose samples are zero: the mean is 0.8."""

    def work(rank):
        batches, value = ((1, 0.0), (4, 1.0))[rank.rank]
        mean = nn.Parameter(torch.zeros(1))
        agent = network(d3gd.graphs.exponential(2), transport=rank)
        opt = DecentralizedOptimizer([mean], d3gd.PerronD3GD(step_size=0.02), agent)
        for _ in range(150):
            with opt.join():
                for _ in range(batches):
                    opt.zero_grad()
                    (0.5 * (mean - value).square().sum()).backward()
                    opt.step()
        return mean.item()

    assert on_threads(2, work) == pytest.approx([0.8, 0.8], abs=0.02)


def test_where_agents_take_equal_steps_losses_weighted_by_samples_make_all_samples_count_alike():
    """The limit is the minimum over all samples: that of the mean over agents is elsewhere."""

    def work(rank):
        part = slice(0, 9) if rank.rank == 0 else slice(9, 12)
        agent = network(d3gd.graphs.exponential(2), transport=rank)
        mean = nn.Parameter(torch.zeros(4, dtype=torch.float64))
        opt = DecentralizedOptimizer([mean], d3gd.PerronD3GD(step_size=0.3), agent)
        weight = sample_weight(len(X[part]), agent)
        for _ in range(150):
            opt.zero_grad()
            (weight * 0.5 * (mean - X[part].double()).square().sum(dim=1).mean()).backward()
            opt.step()
        return mean.detach()

    for mean in on_threads(2, work):
        torch.testing.assert_close(mean, X.double().mean(dim=0), rtol=0, atol=1e-8)
