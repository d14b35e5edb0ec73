"""Facts about single kinds of problems: formula, optimum, what is learned."""

import numpy as np
import pytest

from d3gd.errors import ProblemError
from d3gd.problems import (
    SigmoidClassification,
    digits_classification,
    from_functions,
    label_skewed_classification,
    quadratic,
    sigmoid_classification,
    softmax_regression,
)
from tests.helpers.problems import Distance, models, parts


def test_sigmoid_agrees_with_the_printed_formula():
    problem = sigmoid_classification(agents=4, features=3, classes=5, samples=20, regularization=0.3)
    x = models(problem)
    for i in range(4):
        theta = x[i].reshape(5, 3)
        Y = np.eye(5)[problem.y[i]]
        terms = 1.0 / (1.0 + np.exp(-Y * (problem.X[i] @ theta.T)))
        value = terms.sum() / 20 + 0.15 * (theta**2).sum()
        assert problem.losses(x)[i] == pytest.approx(value, rel=1e-13)


def test_sigmoid_predicts_the_class_with_the_smallest_score():
    X, y = np.eye(3)[None], np.array([[0, 1, 2]])
    problem = SigmoidClassification(X, y, classes=3, test=(X[0], y[0]))
    x = np.stack([-np.eye(3).ravel(), np.eye(3).ravel()])
    assert problem.accuracies(x).tolist() == [1.0, 0.0]


def test_gradient_descent_on_the_sigmoid_loss_learns_to_classify():
    problem = sigmoid_classification(agents=10, alpha=1.0)
    x = np.zeros((1, problem.dim))
    for _ in range(300):
        x = x - problem.global_gradients(x)
    assert problem.accuracies(x)[0] > 0.6


def test_sigmoid_does_not_overflow_far_out():
    problem = sigmoid_classification(agents=3)
    x = 1e4 * models(problem)
    assert np.isfinite(problem.gradients(x, 0)).all()
    assert np.isfinite(problem.sum_losses(x)).all()


def test_softmax_is_stable_for_huge_scores():
    problem = softmax_regression(parts([6, 3]))
    x = 1e6 * models(problem)
    assert np.isfinite(problem.gradients(x, None)).all()
    assert np.isfinite(problem.losses(x)).all()


def test_softmax_at_zero_costs_the_logarithm_of_the_classes():
    problem = softmax_regression(parts([6, 3, 8]), classes=7)
    np.testing.assert_allclose(problem.losses(np.zeros((3, problem.dim))), np.log(7.0))


def test_uneven_agents_agree_with_each_agent_alone():
    pieces = parts([9, 1, 17, 4, 5])
    together = softmax_regression(pieces, classes=3)
    x = models(together)
    for i, piece in enumerate(pieces):
        alone = softmax_regression([piece], classes=3, agent_ids=[i])
        np.testing.assert_allclose(together.gradients(x, None)[i], alone.gradients(x[[i]], None)[0], atol=1e-15)


def test_softmax_learns_separable_classes_and_reports_it():
    X, y = np.repeat(np.eye(3), 10, axis=0), np.repeat(np.arange(3), 10)
    problem = label_skewed_classification(X, y, agents=3, test_fraction=0.2)
    assert problem.accuracies(np.eye(3).reshape(1, -1)).tolist() == [1.0]
    assert label_skewed_classification(X, y, agents=3, test_fraction=0.0).accuracies(np.eye(3)[None]) is None


def test_class_proportions_are_the_shares_of_the_labels():
    uneven = parts([3, 7, 1])
    shares = softmax_regression(uneven, classes=4).class_proportions()
    for row, (_, y) in zip(shares, uneven, strict=True):
        assert row.tolist() == [np.mean(y == c) for c in range(4)]
    y = np.array([[2, 0, 2, 2], [1, 1, 1, 1]])
    problem = SigmoidClassification(np.ones((2, 4, 1)), y, classes=3)
    assert problem.class_proportions().tolist() == [[0.25, 0.0, 0.75], [0.0, 1.0, 0.0]]
    assert problem.restrict([1]).class_proportions().tolist() == [[0.0, 1.0, 0.0]]


def test_digits_are_learnt():
    problem = digits_classification(agents=10)
    assert (problem.dim, problem.sizes.tolist()) == (650, [143] * 10)
    x = np.zeros((1, problem.dim))
    for _ in range(100):
        x = x - 0.5 * problem.global_gradients(x)
    assert problem.accuracies(x)[0] > 0.9


def test_the_optimum_of_a_quadratic_has_no_global_gradient():
    problem = quadratic(agents=7, dim=5, seed=1, conditioning=100.0, heterogeneity=3.0)
    gradients = problem.gradients(np.tile(problem.optimum, (7, 1)), None)
    assert np.abs(gradients).max() > 0.1
    np.testing.assert_allclose(gradients.sum(axis=0), 0.0, atol=1e-12)
    assert np.array_equal(problem.global_gradients(problem.optimum[None])[0], np.zeros(5))
    around = problem.optimum + 0.1 * models(problem, rows=20)
    assert (problem.sum_losses(around) > problem.sum_losses(problem.optimum[None])).all()


def test_the_spectrum_of_a_quadratic_is_as_asked():
    problem = quadratic(agents=3, dim=6, conditioning=50.0)
    np.testing.assert_allclose(np.linalg.eigvalsh(problem.Q)[:, [0, -1]], [[0.02, 1.0]] * 3)
    assert problem.smoothness == pytest.approx(1.0)


def test_agents_without_heterogeneity_share_their_minimiser():
    problem = quadratic(agents=4, dim=3, heterogeneity=0.0)
    np.testing.assert_allclose(problem.gradients(np.tile(problem.optimum, (4, 1)), None), 0.0, atol=1e-14)


def test_a_problem_without_a_loss_says_so():
    problem = from_functions(agents=2, dim=1, gradient=lambda i, x: x - i)
    assert not problem.has_loss
    assert problem.global_gradients(np.zeros((1, 1))).tolist() == [[-0.5]]
    with pytest.raises(ProblemError, match="pass loss="):
        problem.losses(np.zeros((2, 1)))


def test_a_subclass_inherits_what_it_does_not_write():
    problem = Distance(np.arange(6.0).reshape(3, 2))
    assert problem.has_loss
    assert problem.accuracies(np.zeros((3, 2))) is None
    assert problem.describe()["kind"] == "Distance"
    assert problem.fingerprint() != Distance(np.ones((3, 2))).fingerprint()
    with pytest.raises(ProblemError, match=r"write its restrict\(agents\)"):
        problem.restrict([0])


def test_functions_cannot_change_the_models():
    def gradient(i, x):
        x -= 1.0
        return x

    problem = from_functions(agents=1, dim=2, gradient=gradient)
    with pytest.raises(ValueError, match="read-only"):
        problem.gradients(np.zeros((1, 2)), 0)
