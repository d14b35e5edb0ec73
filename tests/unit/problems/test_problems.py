"""Problems: gradients are derivatives of the losses, and a block of agents computes what the whole does."""

import json
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import d3gd
from d3gd.problems import (
    Problem,
    digits_classification,
    mixture_classification,
    quadratic,
    sigmoid_classification,
    softmax_regression,
)
from d3gd.problems.classification import shares_right
from tests.helpers.problems import ALL, MAKERS, central_differences, models, parts


@ALL
def test_gradients_are_the_derivatives_of_the_losses(name):
    problem = MAKERS[name]()
    x = models(problem)
    np.testing.assert_allclose(problem.gradients(x, None), central_differences(problem.losses, x), atol=2e-9)


@ALL
def test_global_gradients_are_the_derivatives_of_the_global_loss(name):
    problem = MAKERS[name]()
    x = models(problem, rows=3)
    values = central_differences(lambda z: np.array([problem.loss(row[None]) for row in z]), x)
    np.testing.assert_allclose(problem.global_gradients(x), values, atol=2e-9)


@ALL
def test_pooled_sums_equal_the_sums_over_agents(name):
    problem = MAKERS[name]()
    x = models(problem, rows=problem.agents + 3)
    np.testing.assert_allclose(problem.sum_gradients(x), Problem.sum_gradients(problem, x), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(problem.sum_losses(x), Problem.sum_losses(problem, x), rtol=1e-11)
    assert problem.loss(x) == pytest.approx(problem.sum_losses(x).mean() / problem.agents)


@ALL
def test_results_do_not_depend_on_how_the_models_lie_in_memory(name):
    problem = MAKERS[name]()
    x = models(problem)
    same = np.broadcast_to(x[0], x.shape)
    for other in (np.asfortranarray(x), same):
        assert np.array_equal(problem.gradients(other, 3), problem.gradients(np.ascontiguousarray(other), 3))
        for function in (problem.global_gradients, problem.sum_losses, problem.losses):
            np.testing.assert_allclose(function(other), function(np.ascontiguousarray(other)), atol=1e-13)


@ALL
@pytest.mark.parametrize("block", [[0], [4], [1, 2, 3], [4, 0, 2], [0, 1, 2, 3]])
def test_a_restricted_problem_computes_bitwise_its_rows(name, block):
    problem = MAKERS[name]()
    small = problem.restrict(np.array(block))
    again = problem.restrict([0, *block]).restrict(np.arange(1, len(block) + 1))
    x = models(problem)
    assert (small.agents, small.dim) == (len(block), problem.dim)
    for k in (None, 0, 1, 17):
        whole = problem.gradients(x, k)
        assert np.array_equal(small.gradients(x[block], k), whole[block])
        assert np.array_equal(again.gradients(x[block], k), whole[block])
    assert np.array_equal(small.losses(x[block]), problem.losses(x)[block])
    np.testing.assert_allclose(
        small.sum_gradients(x), sum(problem.restrict([i]).sum_gradients(x) for i in block), atol=1e-12
    )


@pytest.mark.parametrize("samples", [1, 2, 3, 7, 8, 9, 33])
@pytest.mark.parametrize("classes", [2, 5, 10, 17])
def test_softmax_blocks_are_bitwise_equal_whatever_the_shapes(samples, classes):
    """Vector instructions treat the ends of arrays apart; agents must not notice where their rows begin."""
    problem = softmax_regression(parts([samples] * 7, features=5, classes=classes), classes=classes, batch=samples)
    x = models(problem)
    for k in (None, 3):
        whole = problem.gradients(x, k)
        for agent in range(7):
            assert np.array_equal(problem.restrict([agent]).gradients(x[[agent]], k)[0], whole[agent])
        assert np.array_equal(problem.restrict([2, 3, 4]).gradients(x[2:5], k), whole[2:5])


@pytest.mark.parametrize("batch", [None, 5])
def test_data_made_for_a_block_alone_give_bitwise_the_same_gradients(batch):
    alphas = [0.1, 100.0, 1.0, 0.5, 0.01]
    block = [3, 1]
    whole = sigmoid_classification(agents=5, alpha=alphas, seed=9, batch=batch)
    alone = sigmoid_classification(agents=5, alpha=alphas, seed=9, batch=batch, block=block)
    x = models(whole)
    assert np.array_equal(alone.gradients(x[block], 4), whole.gradients(x, 4)[block])
    assert alone.fingerprint() == whole.restrict(block).fingerprint()
    assert alone.describe() == whole.restrict(block).describe()


@pytest.mark.parametrize("name", ["sigmoid batch", "softmax batch"])
def test_mini_batches_average_to_the_full_gradient(name):
    problem = MAKERS[name]()
    x = models(problem)
    draws = np.stack([problem.gradients(x, k) for k in range(3000)])
    full = problem.gradients(x, None)
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert np.all(np.abs(draws.mean(axis=0) - full) <= 4.5 * error + 1e-12)
    assert not np.array_equal(draws[0], draws[1])
    assert np.array_equal(problem.gradients(x, 0), draws[0])


@ALL
def test_fingerprints_recognise_the_problem(name):
    problem = MAKERS[name]()
    assert problem.fingerprint() == MAKERS[name]().fingerprint()
    assert len(problem.fingerprint()) == 64
    assert problem.restrict([0, 1]).fingerprint() != problem.fingerprint()
    assert json.loads(json.dumps(problem.describe())) == problem.describe()


def test_fingerprints_change_with_data_and_settings():
    prints = {
        sigmoid_classification(agents=3, **change).fingerprint()
        for change in (
            {},
            {"seed": 1},
            {"alpha": 0.2},
            {"regularization": 0.1},
            {"batch": 3},
            {"test_samples": 5},
        )
    }
    assert len(prints) == 6


def test_a_described_generator_makes_the_same_problem_again():
    for make, problem in (
        (sigmoid_classification, sigmoid_classification(agents=3, alpha=[0.1, 1.0, 2.0], batch=2)),
        (sigmoid_classification, sigmoid_classification(agents=3).restrict([2, 0])),
        (digits_classification, digits_classification(agents=4, seed=3)),
        (mixture_classification, mixture_classification(agents=3, alpha=[0.1, 1.0, 2.0], batch=2)),
        (mixture_classification, mixture_classification(agents=3).restrict([2, 0])),
        (quadratic, quadratic(agents=3, dim=2, heterogeneity=0.5)),
    ):
        settings = problem.describe()
        assert settings.pop("kind") == make.__name__
        assert make(**settings).fingerprint() == problem.fingerprint()


@pytest.mark.parametrize("best", [np.maximum, np.minimum])
@given(seed=st.integers(0, 999), coarse=st.booleans())
def test_the_share_that_is_right_is_that_of_the_first_best_class(best, seed, coarse):
    rng = np.random.default_rng(seed)
    theta, X, y = rng.normal(size=(4, 3, 2)), rng.normal(size=(20, 2)), rng.integers(0, 3, 20)
    if coarse:  # ties
        theta, X = np.round(theta), np.round(X)
    winner = np.argmax if best is np.maximum else np.argmin
    expected = [np.mean([winner(row @ sample) == label for sample, label in zip(X, y, strict=True)]) for row in theta]
    assert shares_right(theta, X, y, best).tolist() == expected


@pytest.mark.parametrize("kind", ["sigmoid", "softmax"])
def test_losses_that_come_with_gradients_are_the_same_and_of_the_right_models(kind):
    if kind == "sigmoid":
        make = partial(d3gd.problems.sigmoid_classification, agents=4, samples=9, seed=1)
    else:
        make = partial(d3gd.problems.digits_classification, agents=4)
    problem, other = make(), make()
    x = np.random.default_rng(0).normal(size=(2, 4, problem.dim))
    problem.sum_gradients(x[0])
    for rows in (x[0], x[1], x[0][:2]):
        np.testing.assert_allclose(problem.sum_losses(rows), other.sum_losses(rows), rtol=1e-13)
    kept = x[0].copy()
    x[0] += 1  # whoever asked may go on with the array
    np.testing.assert_allclose(problem.sum_losses(kept), other.sum_losses(kept), rtol=1e-13)
    np.testing.assert_allclose(problem.sum_losses(x[0]), other.sum_losses(x[0]), rtol=1e-13)


@pytest.mark.parametrize("batch", [None, 5])
def test_gradients_follow_the_precision_of_the_models(batch):
    for problem in (
        d3gd.problems.sigmoid_classification(agents=3, seed=1, batch=batch),
        d3gd.problems.digits_classification(agents=3, batch=batch),
    ):
        x = np.random.default_rng(0).normal(size=(3, problem.dim))
        single = problem.gradients(x.astype(np.float32), 2)
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, problem.gradients(x, 2), atol=1e-5)
        whole = np.round(x).astype(np.int64)
        assert np.array_equal(problem.gradients(whole, 2), problem.gradients(whole.astype(np.float64), 2))
