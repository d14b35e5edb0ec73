import json

import numpy as np
import pytest
from scipy import stats

import d3gd
from d3gd.errors import D3GDError, ProblemError, SettingsError
from d3gd.privacy.mechanism import Private, normal, uniform

CLIP = 0.7
MAKERS = {
    "softmax": d3gd.problems.mixture_classification,
    "sigmoid": d3gd.problems.sigmoid_classification,
}


def made(kind, **more):
    return MAKERS[kind](agents=3, samples=12, features=4, classes=3, test_samples=0, seed=2, **more)


def points(problem, seed=0, scale=3.0):
    return scale * np.random.default_rng(seed).normal(size=(problem.agents, problem.dim))


@pytest.mark.parametrize("kind", MAKERS)
def test_without_a_bound_the_examples_add_up_to_the_gradient(kind):
    problem = made(kind)
    examples, x = problem.examples(), points(problem)
    everything = np.ones((3, 12), dtype=bool)
    gradients = examples.sums(x, everything, 1e9) / examples.sizes[:, None] + examples.rest(x)
    assert np.allclose(gradients, problem.gradients(x), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("kind", MAKERS)
def test_one_example_changes_the_sum_by_at_most_the_bound(kind):
    problem = made(kind)
    examples = problem.examples()
    reached = 0.0
    for seed in range(5):
        x, chosen = points(problem, seed), np.random.default_rng(seed).random((3, 12)) < 0.5
        before = examples.sums(x, chosen, CLIP)
        for example in range(12):
            other = chosen.copy()
            other[:, example] ^= True
            change = np.linalg.norm(examples.sums(x, other, CLIP) - before, axis=1)
            assert (change <= CLIP * (1 + 1e-12)).all()
            reached = max(reached, change.max())
    assert reached == pytest.approx(CLIP)  # so the bound is the sensitivity, not more


def test_an_example_of_any_size_is_bounded():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(10, 3)), rng.integers(0, 2, 10)
    wild = X.copy()
    wild[4] *= 1e150
    sums = []
    for features in (X, wild):
        problem = d3gd.problems.softmax_regression([(features, y)], classes=2)
        others = np.ones((1, 10), dtype=bool)
        others[0, 4] = False
        x = points(problem, scale=0.1)
        all_of_them = problem.examples().sums(x, np.ones((1, 10), dtype=bool), CLIP)
        sums.append(all_of_them - problem.examples().sums(x, others, CLIP))
    assert np.linalg.norm(sums[1]) <= CLIP * (1 + 1e-12)


@pytest.mark.parametrize("batch", [None, 4])
def test_the_noise_has_the_declared_distribution(batch):
    problem, noise = made("softmax", batch=batch), 2.5
    quiet, loud = (Private(problem, d3gd.Privacy(clip=CLIP, noise=s), b"key") for s in (1e-12, noise))
    x = points(problem)
    if batch is None:  # every example is drawn, so that nothing but noise differs
        drawn = np.concatenate([loud.gradients(x, k) - quiet.gradients(x, k) for k in range(300)])
        scaled = drawn.ravel() * 12 / (noise * CLIP)
    else:
        # Far from any data nothing is left of the examples: their gradients vanish at a perfect fit.
        parts = [(np.zeros((12, 4)), np.zeros(12, dtype=int))] * 3
        empty = d3gd.problems.softmax_regression(parts, classes=3, batch=batch, regularization=0.0)
        private = Private(empty, d3gd.Privacy(clip=CLIP, noise=noise), b"key")
        drawn = np.concatenate([private.gradients(x, k) for k in range(300)])
        scaled = drawn.ravel() * batch / (noise * CLIP)
    assert stats.kstest(scaled, "norm").pvalue > 1e-3
    assert scaled.var() == pytest.approx(1, abs=4 * np.sqrt(2 / scaled.size))


def test_examples_are_drawn_with_the_declared_probability():
    parts = [(np.eye(12), np.zeros(12, dtype=int)), (np.eye(12)[:6], np.zeros(6, dtype=int))]
    problem = d3gd.problems.softmax_regression(parts, classes=2, batch=3, regularization=0.0)
    private = Private(problem, d3gd.Privacy(clip=1.0, noise=1e-9), b"key")
    assert private.sample == 0.5  # of the agent with fewer examples
    drawn = np.stack([np.abs(private.gradients(np.zeros((2, 24)), k)[:, :12]) > 1e-6 for k in range(2000)])
    shares = drawn.mean(axis=0)
    assert shares[0] == pytest.approx(3 / 12, abs=0.05)
    assert shares[1, :6] == pytest.approx(3 / 6, abs=0.05)
    sizes = drawn[:, 0].sum(axis=1)
    assert sizes.var() == pytest.approx(12 * 0.25 * 0.75, rel=0.15)  # independent draws, not a fixed number


def test_a_draw_depends_on_everything_that_it_must_not_be_repeated_for():
    problem, privacy = made("softmax"), d3gd.Privacy(clip=CLIP, noise=1.0)
    x = points(problem)
    here = Private(problem, privacy, b"key").gradients(x, 5)
    assert np.array_equal(Private(problem, privacy, b"key").gradients(x, 5), here)  # computed again: nothing new
    exact = Private(problem, d3gd.Privacy(clip=CLIP, noise=1e-300), b"key").gradients(x, 5)
    for secret, k, change in ((b"other", 5, 0.0), (b"key", 6, 0.0), (b"key", 5, 1e-12)):
        again = Private(problem, privacy, secret).gradients(x + change, k)
        correlation = np.corrcoef((again - exact).ravel(), (here - exact).ravel())[0, 1]
        assert abs(correlation) < 0.6  # of 36 numbers, less than four standard deviations
    stronger = Private(problem, d3gd.Privacy(clip=CLIP, noise=2.0), b"key").gradients(x, 5)
    assert not np.allclose(stronger - exact, 2 * (here - exact))


def test_agents_have_noise_of_their_own_whatever_block_they_are_in():
    problem, privacy = made("softmax", batch=4), d3gd.Privacy(clip=CLIP, noise=1.0)
    x = points(problem)
    whole = Private(problem, privacy, b"key").gradients(x, 3)
    part = Private(problem.restrict([2]), privacy, b"key").gradients(x[2:], 3)
    assert np.array_equal(part[0], whole[2])


def test_streams_are_uniform_and_normal_and_apart():
    assert stats.kstest(uniform(20_000, b"a", b"b"), "uniform").pvalue > 1e-3
    assert stats.kstest(normal(20_000, b"a"), "norm").pvalue > 1e-3
    assert not np.array_equal(uniform(5, b"a", b"bc"), uniform(5, b"ab", b"c"))


@pytest.mark.parametrize("method", [d3gd.DiDGD, d3gd.PerronD3GD, d3gd.PushPull, d3gd.SGP])
def test_any_method_runs_with_it_and_says_epsilon(method):
    graph, problem = d3gd.graphs.ring(3), made("softmax", batch=4)
    privacy = d3gd.Privacy(clip=1.0, noise=2.0, delta=1e-4)
    result = d3gd.run(method(step_size=0.1), graph, problem, iterations=20, privacy=privacy)
    evaluated = d3gd.run(method(step_size=0.1), graph, problem, iterations=20, privacy=privacy, metrics=["gradients"])
    assert result.metrics["epsilon"][0] <= result.metrics["epsilon"][-1]
    steps = int(evaluated.metrics["gradients"][-1])
    assert result.metrics["epsilon"][-1] == privacy.epsilon(steps=steps, sample=4 / 12)
    assert result.settings["privacy"] == {"clip": 1.0, "noise": 2.0, "delta": 1e-4}


def test_a_private_run_resumes_to_the_bit(tmp_path):
    graph, problem = d3gd.graphs.ring(3), made("softmax", batch=4)
    how = {"privacy": d3gd.Privacy(clip=1.0, noise=1.0), "every": 5}
    whole = d3gd.run(d3gd.DiDGD(step_size=0.1), graph, problem, iterations=20, **how)
    folder = tmp_path / "run"
    d3gd.run(d3gd.DiDGD(step_size=0.1), graph, problem, iterations=10, out=folder, **how)
    again = d3gd.run(d3gd.DiDGD(step_size=0.1), graph, problem, iterations=20, out=folder, resume=True, **how)
    assert np.array_equal(again.x, whole.x)
    assert np.array_equal(again.metrics["epsilon"], whole.metrics["epsilon"])
    how["privacy"] = d3gd.Privacy(clip=1.0, noise=0.5)
    with pytest.raises(D3GDError, match=r"other settings|another|differ"):
        d3gd.run(d3gd.DiDGD(step_size=0.1), graph, problem, iterations=30, out=folder, resume=True, **how)


def test_what_cannot_be_private_is_refused():
    graph, privacy = d3gd.graphs.ring(3), d3gd.Privacy(clip=1.0, noise=1.0)
    how = {"iterations": 3, "privacy": privacy}
    with pytest.raises(ProblemError, match="no examples"):
        d3gd.run(d3gd.DiDGD(step_size=0.1), graph, d3gd.problems.quadratic(agents=3, dim=2), **how)
    with pytest.raises(SettingsError, match="would allow to publish"):
        Private(made("softmax"), d3gd.Privacy(clip=1.0, noise=1.0, delta=0.1), b"key")
    with pytest.raises(ProblemError, match="on all data"):
        Private(made("softmax", batch=4), privacy, b"key").gradients(points(made("softmax")), None)
    with pytest.raises(SettingsError, match="privacy is a dict"):
        d3gd.run(d3gd.DiDGD(step_size=0.1), graph, made("softmax"), iterations=3, privacy={"clip": 1.0})


@pytest.mark.parametrize("wrong", [{"clip": 0.0}, {"noise": 0.0}, {"noise": -1.0}, {"delta": 0.0}, {"delta": 1.0}])
def test_settings_without_a_guarantee_are_refused(wrong):
    with pytest.raises(SettingsError, match=next(iter(wrong))):
        d3gd.Privacy(**{"clip": 1.0, "noise": 1.0, **wrong})


def test_a_settings_file_may_ask_for_it(tmp_path):
    from d3gd.config.experiment import load

    text = """
iterations = 4
[graph]
kind = "ring"
n = 3
[problem]
kind = "mixture_classification"
samples = 12
batch = 4
[algorithm]
kind = "DiDGD"
step_size = 0.1
[privacy]
clip = 1.0
noise = 2.0
"""
    (tmp_path / "experiment.toml").write_text(text)
    result = load(tmp_path / "experiment.toml").run(tmp_path / "run")
    assert result.metrics["epsilon"][-1] == d3gd.Privacy(clip=1.0, noise=2.0).epsilon(steps=4, sample=1 / 3)
    assert json.loads((tmp_path / "run" / "settings.json").read_text())["privacy"]["noise"] == 2.0
    (tmp_path / "wrong.toml").write_text(text.replace("noise = 2.0", "nosie = 2.0"))
    with pytest.raises(SettingsError, match="nosie"):
        load(tmp_path / "wrong.toml")
