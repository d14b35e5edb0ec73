"""Any module is a problem: the same numbers as ordinary autograd, agent by agent."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss
from torch.utils.data import DataLoader, Dataset, TensorDataset

import d3gd
from d3gd.errors import ProblemError
from d3gd.problems import torch_module
from d3gd.problems.torch.networks import Networks
from d3gd.torch import KeyedBatches

pytestmark = pytest.mark.usefixtures("one_thread")
AGENTS, CLASSES = 4, 3


def network(*extra, seed=0, dtype=torch.float64):
    torch.manual_seed(seed)
    layers = [nn.Conv2d(1, 2, 3), *extra, nn.Tanh(), nn.Flatten(), nn.Linear(8, CLASSES)]
    return nn.Sequential(*layers).to(dtype)


def parts(sizes=(6, 6, 6, 6), seed=0):
    draw = np.random.default_rng(seed)
    return [(draw.normal(size=(size, 1, 4, 4)), draw.integers(0, CLASSES, size)) for size in sizes]


def datasets(sizes=(6, 6, 6, 6)):
    return [TensorDataset(torch.tensor(X), torch.tensor(y)) for X, y in parts(sizes)]


def models(problem, seed=1):
    return np.random.default_rng(seed).normal(size=(problem.agents, problem.dim))


def ordinary(module, row, X, y, loss=cross_entropy):
    """The gradient that the familiar loop gives."""
    nn.utils.vector_to_parameters(torch.tensor(row, dtype=next(module.parameters()).dtype), module.parameters())
    module.zero_grad()
    loss(module(torch.as_tensor(X)), torch.as_tensor(y)).backward()
    return np.concatenate([p.grad.double().numpy().ravel() for p in module.parameters()])


class Plain(Dataset):
    """A dataset that hands out one item at a time."""

    def __init__(self, X, y):
        self.X, self.y = X, y

    def __len__(self):
        return len(self.y)

    def __getitem__(self, place):
        return torch.tensor(self.X[place]), torch.tensor(self.y[place])


@pytest.mark.parametrize("sizes", [(6, 6, 6, 6), (6, 1, 6, 9), (3, 530, 3, 1030)], ids=["equal", "ragged", "long"])
@pytest.mark.parametrize("kind", ["arrays", "datasets", "loaders"])
def test_gradients_and_losses_are_those_of_a_loop(kind, sizes):
    data = parts(sizes)
    given = {
        "arrays": data,
        "datasets": [Plain(X, y) for X, y in data],
        "loaders": [DataLoader(dataset, batch_size=4) for dataset in datasets(sizes)],
    }[kind]
    problem = torch_module(network(), given, loss=cross_entropy, regularization=0.3)
    x = models(problem)
    module = network()
    expected = [ordinary(module, row, X, y) + 0.3 * row for row, (X, y) in zip(x, data, strict=True)]
    np.testing.assert_allclose(problem.gradients(x), expected, rtol=0, atol=1e-12)
    for loss, row, (X, y) in zip(problem.losses(x), x, data, strict=True):
        model = problem.model(row)
        by_hand = cross_entropy(model(torch.tensor(X)), torch.tensor(y)).item() + 0.15 * row @ row
        assert loss == pytest.approx(by_hand, abs=1e-12)


def test_in_single_precision_too():
    problem = torch_module(network(dtype=torch.float32), parts(), loss=cross_entropy)
    x = models(problem)
    module = network(dtype=torch.float32)
    expected = [ordinary(module, row, X.astype(np.float32), y) for row, (X, y) in zip(x, parts(), strict=True)]
    np.testing.assert_allclose(problem.gradients(x), expected, rtol=0, atol=1e-5)
    single = problem.gradients(x.astype(np.float32))
    assert single.dtype == np.float32
    assert np.array_equal(single, problem.gradients(x).astype(np.float32))


def test_models_in_the_modules_own_precision_are_not_copied():
    networks = Networks(network(), cross_entropy, seed=0, agent_ids=np.arange(AGENTS))
    x = np.random.default_rng(0).standard_normal((AGENTS, networks.dim))
    views = networks.parameters(networks.models(x))
    assert [view.shape for view in views.values()] == [(AGENTS, *p.shape) for p in network().parameters()]
    ends = x.ctypes.data, x.ctypes.data + x.nbytes
    assert all(ends[0] <= view.data_ptr() < ends[1] for view in views.values())


@pytest.mark.parametrize("batch", [None, 4])
def test_a_linear_module_is_softmax_regression(batch):
    data = [(X.reshape(len(X), -1), y) for X, y in parts((5, 7, 6, 6))]
    settings = {"batch": batch, "seed": 3, "regularization": 0.01, "test": data[0]}
    module = nn.Linear(16, CLASSES, bias=False).double()
    ours = torch_module(module, data, loss=cross_entropy, **settings)
    theirs = d3gd.problems.softmax_regression(data, **settings)
    x = models(ours)
    np.testing.assert_allclose(ours.gradients(x, 2), theirs.gradients(x, 2), rtol=0, atol=1e-13)
    np.testing.assert_allclose(ours.losses(x), theirs.losses(x), rtol=1e-13)
    np.testing.assert_array_equal(ours.accuracies(x), theirs.accuracies(x))
    results = [
        d3gd.run(d3gd.PerronD3GD(step_size=0.1), d3gd.graphs.ring(AGENTS), problem, iterations=30, x0=np.zeros(48))
        for problem in (ours, theirs)
    ]
    np.testing.assert_allclose(results[0].x, results[1].x, rtol=0, atol=1e-12)
    for name, values in results[1].metrics.items():
        np.testing.assert_allclose(results[0].metrics[name], values, rtol=1e-8, atol=1e-12, err_msg=name)


def test_agents_start_from_the_modules_own_parameters():
    problem = torch_module(network(seed=8), parts(), loss=cross_entropy)
    result = d3gd.run(d3gd.DiDGD(step_size=0.1), d3gd.graphs.ring(AGENTS), problem, iterations=0)
    own = nn.utils.parameters_to_vector(network(seed=8).parameters()).detach().numpy()
    assert np.array_equal(result.x, np.tile(own, (AGENTS, 1)))


def test_the_module_and_its_frozen_parameters_stay_as_they_are():
    module = network()
    module[0].requires_grad_(False)
    before = nn.utils.parameters_to_vector(module.parameters()).clone()
    problem = torch_module(module, parts(), loss=cross_entropy)
    assert problem.dim == sum(p.numel() for p in module[-1].parameters())
    x = models(problem)
    problem.gradients(x, 0)
    model = problem.model(x[0])
    assert torch.equal(nn.utils.parameters_to_vector(module.parameters()), before)
    assert torch.equal(model[0].weight, module[0].weight)
    assert np.array_equal(nn.utils.parameters_to_vector(model[-1].parameters()).detach().numpy(), x[0])


def test_several_inputs_any_loss_and_tied_parameters():
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.left = nn.Linear(2, 2, bias=False, dtype=torch.float64)
            self.right = self.left

        def forward(self, a, b):
            return self.left(a) * self.right(b)

    draw = np.random.default_rng(0)
    data = [(draw.normal(size=(5, 2)), draw.normal(size=(5, 2)), draw.normal(size=(5, 2))) for _ in range(2)]
    problem = torch_module(Both(), data, loss=nn.MSELoss())
    assert problem.dim == 4
    x = models(problem)
    for row, gradient, (a, b, target) in zip(x, problem.gradients(x), data, strict=True):
        W = torch.tensor(row.reshape(2, 2), requires_grad=True)
        mse_loss((torch.tensor(a) @ W.T) * (torch.tensor(b) @ W.T), torch.tensor(target)).backward()
        np.testing.assert_allclose(gradient, W.grad.numpy().ravel(), rtol=1e-12)


@pytest.mark.parametrize("kind", ["arrays", "datasets", "loaders"])
def test_mini_batches_are_keyed(kind):
    sizes = (5, 9, 6, 6)
    if kind == "loaders":
        data = [
            DataLoader(dataset, batch_sampler=KeyedBatches(size, 4, agent=agent, seed=3))
            for agent, (dataset, size) in enumerate(zip(datasets(sizes), sizes, strict=True))
        ]
        problem = torch_module(network(), data, loss=cross_entropy)
    else:
        data = parts(sizes) if kind == "arrays" else [Plain(X, y) for X, y in parts(sizes)]
        problem = torch_module(network(), data, loss=cross_entropy, batch=4, seed=3)
    x, module = models(problem), network()
    for k in (7, 2):
        chosen = [KeyedBatches(size, 4, agent=agent, seed=3).at(k) for agent, size in enumerate(sizes)]
        expected = [ordinary(module, x[i], X[chosen[i]], y[chosen[i]]) for i, (X, y) in enumerate(parts(sizes))]
        np.testing.assert_allclose(problem.gradients(x, k), expected, rtol=0, atol=1e-13)
        np.testing.assert_allclose(
            problem.restrict([2, 1]).gradients(x[[2, 1]], k), np.array(expected)[[2, 1]], rtol=0, atol=1e-13
        )


def test_keyed_batches_depend_on_their_key_alone():
    keys = {
        (seed, agent): list(KeyedBatches(50, 8, agent=agent, seed=seed, stop=5)) for seed in (0, 1) for agent in (0, 1)
    }
    assert len({tuple(batch) for batches in keys.values() for batch in batches}) == 20
    assert list(KeyedBatches(50, 8, agent=1, seed=1, start=3, stop=5)) == keys[1, 1][3:]
    assert len(KeyedBatches(50, 8, agent=0, start=3, stop=5)) == 2
    counts = np.bincount(np.ravel(list(KeyedBatches(10, 100, agent=0, stop=100))), minlength=10)
    assert abs(counts - 1000).max() < 5 * np.sqrt(1000 * 0.9)  # five standard deviations of a binomial count


def test_a_loader_of_ones_own_goes_through_its_data_again_and_again():
    problem = torch_module(network(), [DataLoader(d, batch_size=4) for d in datasets()], loss=cross_entropy)
    x, module = models(problem), network()
    for k, places in enumerate([slice(0, 4), slice(4, 6), slice(0, 4)]):
        expected = [ordinary(module, row, X[places], y[places]) for row, (X, y) in zip(x, parts(), strict=True)]
        for _ in range(2):  # the same iteration, the same batch
            np.testing.assert_allclose(problem.gradients(x, k), expected, rtol=0, atol=1e-13)
    np.testing.assert_allclose(problem.gradients(x), torch_module(network(), parts(), loss=cross_entropy).gradients(x))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("extra", [(), (nn.BatchNorm2d(2),), (nn.Dropout(0.5),)], ids=["plain", "norm", "dropout"])
def test_a_resumed_run_is_exact(extra, dtype, tmp_path):
    def problem():
        return torch_module(
            network(*extra, dtype=getattr(torch, dtype)), parts((5, 9, 6, 6)), loss=cross_entropy, batch=4
        )

    def run(iterations, **where):
        algorithm, graph = d3gd.PerronD3GD(step_size=0.1), d3gd.graphs.ring(AGENTS)
        return d3gd.run(
            algorithm, graph, problem(), iterations=iterations, metrics=["loss", "disagreement"], dtype=dtype, **where
        )

    whole = run(20)
    run(11, out=tmp_path / "run")
    torch.manual_seed(5)  # what else the process draws does not matter
    resumed = run(20, out=tmp_path / "run", resume=True)
    assert np.array_equal(whole.x, resumed.x)
    assert np.array_equal(whole.metrics["loss"][-1], resumed.metrics["loss"][-1])


def test_another_module_or_other_data_cannot_resume(tmp_path):
    def run(module, data, **where):
        problem = torch_module(module, data, loss=cross_entropy, batch=4)
        return d3gd.run(
            d3gd.DiDGD(step_size=0.1), d3gd.graphs.ring(AGENTS), problem, iterations=3, out=tmp_path / "run", **where
        )

    run(network(), parts())
    for module, data in [(network(), parts(seed=1)), (network(nn.ReLU()), parts()), (network(seed=1), parts())]:
        with pytest.raises(d3gd.D3GDError, match="another experiment"):
            run(module, data, resume=True)


class TestBuffers:
    """Batch statistics in training; running ones are calibrated when a model is evaluated."""

    def test_training_uses_the_statistics_of_the_batch(self):
        problem = torch_module(network(nn.BatchNorm2d(2)), parts(), loss=cross_entropy)
        x, module = models(problem), network(nn.BatchNorm2d(2))
        expected = [ordinary(module, row, X, y) for row, (X, y) in zip(x, parts(), strict=True)]
        for _ in range(2):  # no call leaves a trace
            np.testing.assert_allclose(problem.gradients(x, 0), expected, rtol=0, atol=1e-12)
        assert problem.stacked

    def test_a_model_is_calibrated_on_its_agents_data(self):
        problem = torch_module(network(nn.BatchNorm2d(2, momentum=0.3)), parts(), loss=cross_entropy, test=parts()[0])
        x = models(problem)
        model = problem.model(x[2], agent=2)
        inputs = model[0](torch.tensor(parts()[2][0]))
        assert not model.training
        assert model[1].momentum == 0.3
        assert torch.allclose(model[1].running_mean, inputs.mean(dim=(0, 2, 3)), rtol=1e-12)
        assert torch.allclose(model[1].running_var, inputs.var(dim=(0, 2, 3)), rtol=1e-12)
        X, y = parts()[0]
        right = [
            (problem.model(row, agent=i)(torch.tensor(X)).argmax(1).numpy() == y).mean() for i, row in enumerate(x)
        ]
        assert np.array_equal(problem.accuracies(x), right)
        pooled = torch_module(
            network(nn.BatchNorm2d(2)), [tuple(map(np.concatenate, zip(*parts(), strict=True)))], loss=cross_entropy
        )
        everyone = problem.model(x[0])
        assert torch.allclose(everyone[1].running_mean, pooled.model(x[0], agent=0)[1].running_mean, rtol=1e-12)

    def test_statistics_that_a_user_froze_stay_frozen(self):
        module = network(nn.BatchNorm2d(2))
        module(torch.randn(20, 1, 4, 4, dtype=torch.float64))
        module.eval()
        problem = torch_module(module, parts(), loss=cross_entropy)
        x = models(problem)
        expected = [ordinary(module, row, X, y) for row, (X, y) in zip(x, parts(), strict=True)]
        np.testing.assert_allclose(problem.gradients(x, 0), expected, rtol=0, atol=1e-12)
        assert torch.equal(problem.model(x[0])[1].running_mean, module[1].running_mean)

    @pytest.mark.parametrize("how", ["in place", "anew", "by one"])
    def test_a_module_that_remembers_is_refused(self, how):
        class Remembering(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = network()
                self.register_buffer("mean", torch.zeros((), dtype=torch.float64))

            def forward(self, x):
                if how == "in place":
                    self.mean += self.net[0].weight.detach().mean()
                elif how == "anew":
                    self.mean = 0.9 * self.mean + self.net[0].weight.detach().mean()
                else:
                    self.mean += 1
                return self.net(x)

        problem = torch_module(Remembering(), parts(), loss=cross_entropy)
        with pytest.raises(ProblemError, match="buffer 'mean'"):
            problem.gradients(models(problem), 0)


def test_dropout_is_keyed_and_off_in_evaluation():
    problem = torch_module(network(nn.Dropout(0.5)), parts(), loss=cross_entropy, seed=1)
    plain = torch_module(network(), parts(), loss=cross_entropy)
    x = models(problem)
    first = problem.gradients(x, 0)
    assert problem.stacked is False
    assert not np.array_equal(first, problem.gradients(x, 1))
    assert np.array_equal(first, problem.gradients(x, 0))
    assert np.array_equal(first[[3, 1]], problem.restrict([3, 1]).gradients(x[[3, 1]], 0))
    np.testing.assert_allclose(problem.gradients(x), plain.gradients(x), rtol=0, atol=1e-13)


def test_control_flow_that_depends_on_data_is_followed_agent_by_agent():
    class Fork(nn.Module):
        def forward(self, x):
            return x if x.detach().mean().item() > 0 else 2 * x

    problem = torch_module(network(Fork()), parts(), loss=cross_entropy)
    x, module = models(problem), network(Fork())
    expected = [ordinary(module, row, X, y) for row, (X, y) in zip(x, parts(), strict=True)]
    np.testing.assert_allclose(problem.gradients(x, 0), expected, rtol=0, atol=1e-13)
    assert problem.stacked is False


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: torch_module(nn.Tanh(), parts(), loss=cross_entropy), "no parameters to train"),
        (lambda: torch_module(nn.LazyLinear(3), parts(), loss=cross_entropy), "lazy layers"),
        (lambda: torch_module(nn.Linear(2, 2, dtype=torch.cfloat), parts(), loss=cross_entropy), "models are real"),
        (
            lambda: torch_module(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2).double()), parts(), loss=cross_entropy),
            "move all to one type",
        ),
        (lambda: torch_module(network(), [], loss=cross_entropy), "data is empty"),
        (lambda: torch_module(network(), [np.ones(3)], loss=cross_entropy), "agent 0 has a ndarray"),
        (lambda: torch_module(network(), [(np.ones((3, 2)), np.ones(2))], loss=cross_entropy), "first axis"),
        (
            lambda: torch_module(network(), [(np.full((3, 2), np.nan), np.ones(3))], loss=cross_entropy),
            "agent 0 has NaN",
        ),
        (lambda: torch_module(network(), parts(), loss=cross_entropy, batch=0), "batch = 0"),
        (lambda: torch_module(network(), parts(), loss=cross_entropy, test=(np.ones(2), np.ones(2))), "test labels"),
        (
            lambda: torch_module(network(), [DataLoader(d) for d in datasets()], loss=cross_entropy, batch=2),
            "makes its own batches",
        ),
        (lambda: torch_module(network(), [Plain([], [])], loss=cross_entropy), "empty dataset"),
    ],
)
def test_mistakes_are_told_at_once(make, message):
    with pytest.raises(ProblemError, match=message):
        make()


def test_a_loss_per_sample_is_refused():
    problem = torch_module(network(), parts(), loss=lambda out, y: cross_entropy(out, y, reduction="none"))
    with pytest.raises(ProblemError, match="reduction='mean'"):
        problem.gradients(models(problem), 0)


def test_an_error_of_the_module_itself_comes_through():
    problem = torch_module(nn.Linear(5, 3).double(), parts(), loss=cross_entropy)
    with pytest.raises(RuntimeError, match="shape"):
        problem.gradients(models(problem), 0)
