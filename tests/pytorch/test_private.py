import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import d3gd  # noqa: E402
from d3gd.errors import ProblemError, SettingsError  # noqa: E402
from d3gd.torch import PrivateGradients  # noqa: E402

LOSS = torch.nn.functional.cross_entropy
CLIP = 0.3


def data(seed=0, size=30):
    drawn = torch.Generator().manual_seed(seed)
    return torch.randn(size, 4, generator=drawn), torch.randint(0, 3, (size,), generator=drawn)


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3))


def gradient(model):
    return torch.cat([p.grad.flatten() for p in model.parameters()]).double()


def private(model, examples, clip=CLIP, noise=1e-12, **more):
    return PrivateGradients(model, LOSS, examples, d3gd.Privacy(clip=clip, noise=noise), **more)


@pytest.mark.parametrize("kind", ["tensors", "dataset"])
def test_without_a_bound_it_is_the_gradient(kind):
    model, (X, y) = network(), data()
    private(
        model, (X, y) if kind == "tensors" else torch.utils.data.TensorDataset(X, y), clip=1e6, noise=1e-15
    ).backward()
    found = gradient(model)
    model.zero_grad()
    LOSS(model(X), y).backward()
    assert torch.allclose(found, gradient(model), atol=1e-6)


def test_one_example_changes_the_sum_by_at_most_the_bound():
    X, y = data()
    sums = []
    for last in (0.0, 1.0, 1e6):  # nothing, another example, and one far from all others
        model = network()
        private(model, (torch.cat([X, last * torch.ones(1, 4)]), torch.cat([y, y[:1]]))).backward()
        sums.append(31 * gradient(model))
    model = network()
    private(model, (X, y)).backward()
    without = 30 * gradient(model)
    assert all((each - without).norm() <= CLIP * (1 + 1e-5) for each in sums)
    assert max((each - without).norm() for each in sums) == pytest.approx(CLIP, rel=1e-4)


def test_noise_has_the_declared_size_and_comes_from_the_system_unless_it_is_keyed():
    def noises(steps=2, **more):
        # The gradient of an example is at most 1e-9, and the noise has the size 3e-9.
        model = torch.nn.Linear(400, 3)
        examples = torch.zeros(30, 400), torch.zeros(30).long()
        work, drawn = private(model, examples, noise=3.0, clip=1e-9, **more), []
        for _ in range(steps):
            model.zero_grad()
            work.backward()
            drawn.append(gradient(model)[:1200])  # without the offsets, which alone have a gradient here
        return torch.cat(drawn) * 30 / 3e-9

    one, two = noises(4), noises(4)
    assert not torch.isclose(one, two).any()
    assert torch.equal(noises(seed=1), noises(seed=1))
    assert float(one.var()) == pytest.approx(1, abs=4 * math.sqrt(2 / len(one)))


def test_a_restart_goes_on_counting():
    work = private(network(), data(), noise=2.0, batch=6)
    for _ in range(5):
        work.backward()
    again = private(network(), data(), noise=2.0, batch=6)
    again.load_state_dict(work.state_dict())
    again.backward()
    assert again.epsilon() == d3gd.Privacy(clip=CLIP, noise=2.0).epsilon(steps=6, sample=0.2)
    with pytest.raises(SettingsError, match="noise was 2"):
        private(network(), data(), noise=3.0, batch=6).load_state_dict(work.state_dict())


def test_layers_that_mix_examples_are_refused():
    model = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.BatchNorm1d(5), torch.nn.Linear(5, 3))
    with pytest.raises(ProblemError, match="BatchNorm1d"):
        private(model, data())
    problem = d3gd.problems.torch_module(model, [data(0), data(1)], loss=LOSS)
    with pytest.raises(ProblemError, match="BatchNorm1d"):
        d3gd.run(
            d3gd.DiDGD(step_size=0.1),
            d3gd.graphs.ring(2),
            problem,
            iterations=1,
            privacy=d3gd.Privacy(clip=1.0, noise=1.0),
        )


def test_stacked_modules_have_the_same_examples():
    problem = d3gd.problems.torch_module(network().double(), [data(0), data(1, size=20)], loss=LOSS, regularization=0.1)
    examples = problem.examples()
    x = np.stack([problem.start(), 2 * problem.start()])
    chosen = np.arange(30) < examples.sizes[:, None]
    whole = examples.sums(x, chosen, 1e9) / examples.sizes[:, None] + examples.rest(x)
    assert np.allclose(whole, problem.gradients(x), atol=1e-12)
    fewer = chosen.copy()
    fewer[:, 7] = False
    change = np.linalg.norm(examples.sums(x, chosen, CLIP) - examples.sums(x, fewer, CLIP), axis=1)
    assert (change <= CLIP * (1 + 1e-12)).all()
    assert (change > 0).all()
