"""Problems: gradients are derivatives of the losses, and a block of agents computes what the whole does."""

import json
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

import d3gd
from d3gd.errors import ProblemError
from d3gd.problems import (
    Problem,
    Quadratic,
    SigmoidClassification,
    digits_classification,
    from_functions,
    label_skewed_classification,
    mixture_classification,
    quadratic,
    sigmoid_classification,
    softmax_regression,
)
from d3gd.problems.base import shares_right


def parts(sizes: list[int], features: int = 4, classes: int = 3, seed: int = 0):
    draw = np.random.default_rng(seed)
    return [(draw.standard_normal((m, features)), draw.integers(classes, size=m)) for m in sizes]


def logistic_functions(agents: int = 5, dim: int = 3) -> Problem:
    data = np.random.default_rng(3).standard_normal((agents, dim))
    return from_functions(
        agents=agents,
        dim=dim,
        gradient=lambda i, x: expit(data[i] @ x) * data[i],
        loss=lambda i, x: float(np.logaddexp(0.0, data[i] @ x)),
    )


class Distance(Problem):
    """A user's own subclass: only gradients and losses, everything else inherited."""

    def __init__(self, targets):
        self.targets = targets
        self.agents, self.dim = targets.shape

    def gradients(self, x, k=None):
        return x - self.targets

    def losses(self, x):
        return 0.5 * ((x - self.targets) ** 2).sum(axis=1)


MAKERS: dict[str, Callable[[], Problem]] = {
    "sigmoid": lambda: sigmoid_classification(agents=6, alpha=0.5, features=4, classes=3, samples=15),
    "sigmoid batch": lambda: sigmoid_classification(
        agents=6, features=4, classes=3, samples=15, batch=4, regularization=0.1
    ),
    "softmax equal": lambda: softmax_regression(parts([9] * 5), test=parts([8])[0]),
    "softmax uneven": lambda: softmax_regression(parts([9, 1, 17, 4, 5]), regularization=0.1),
    "softmax batch": lambda: softmax_regression(parts([9, 1, 17, 4, 5]), batch=3, seed=5),
    "mixture": lambda: mixture_classification(agents=5, features=4, classes=3, samples=15, batch=4),
    "quadratic": lambda: quadratic(agents=5, dim=4, seed=2, conditioning=30.0),
    "functions": logistic_functions,
}
ALL = pytest.mark.parametrize("name", MAKERS)


def models(problem: Problem, rows: int | None = None, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows or problem.agents, problem.dim))


def central_differences(value: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.ndarray:
    """Row r holds the derivative of value(x)[r] by x[r]."""
    step, out = 1e-5, np.empty_like(x)
    for j in range(x.shape[1]):
        shift = np.zeros(x.shape[1])
        shift[j] = step
        out[:, j] = (value(x + shift) - value(x - shift)) / (2 * step)
    return out


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


# The paper's sigmoid loss


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


# Softmax


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


# Quadratics


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


# The user's own problem


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


# Bad input


def with_nan(array, place, value=np.nan):
    array = np.array(array, dtype=float)
    array[place] = value
    return array


X, Y = np.ones((2, 3, 2)), np.zeros((2, 3), dtype=int)
GOOD = (np.ones((3, 2)), np.array([0, 1, 2]))
BAD: dict[str, tuple[Callable[[], object], str]] = {
    "nan sigmoid": (
        lambda: SigmoidClassification(with_nan(X, (1, 2, 0)), Y, classes=2, agent_ids=[4, 7]),
        "X is nan at agent 7, sample 2, feature 0",
    ),
    "sigmoid labels": (lambda: SigmoidClassification(X, Y + 2, classes=2), "label 2 at agent 0, sample 0"),
    "sigmoid shapes": (lambda: SigmoidClassification(X, Y[:1], classes=2), r"X of shape \(2, 3, 2\)"),
    "alpha": (lambda: sigmoid_classification(agents=3, alpha=[1.0, 2.0]), "one for each of 3 agents"),
    "negative alpha": (lambda: sigmoid_classification(alpha=-1.0), "or more"),
    "block": (lambda: sigmoid_classification(agents=3, block=[3]), "from 0 to 2"),
    "test samples": (lambda: sigmoid_classification(test_samples=-1), "test_samples = -1"),
    "no agents": (lambda: sigmoid_classification(agents=0), "agents = 0"),
    "batch": (lambda: sigmoid_classification(batch=0), "batch = 0"),
    "regularization": (lambda: sigmoid_classification(regularization=-1.0), "regularization = -1.0"),
    "nan softmax": (
        lambda: softmax_regression([GOOD, (with_nan(GOOD[0], (2, 1), np.inf), GOOD[1])]),
        "X of agent 1 is inf at sample 2, feature 1",
    ),
    "float labels": (lambda: softmax_regression([(GOOD[0], GOOD[1] * 1.0)]), "labels of type float64"),
    "negative labels": (lambda: softmax_regression([(GOOD[0], GOOD[1] - 1)]), "the label -1"),
    "features": (lambda: softmax_regression([GOOD, (np.ones((3, 4)), GOOD[1])]), "agent 1 has 4 features"),
    "test features": (
        lambda: softmax_regression([GOOD], test=(np.ones((3, 4)), GOOD[1])),
        "the test set has 4",
    ),
    "classes": (lambda: softmax_regression([GOOD], classes=2), "label 2 of 2 classes"),
    "lengths": (lambda: softmax_regression([(GOOD[0], GOOD[1][:2])]), r"y of shape \(2,\)"),
    "no parts": (lambda: softmax_regression([]), "parts is empty"),
    "ids": (lambda: softmax_regression([GOOD], agent_ids=[1, 2]), "one integer per agent"),
    "nan quadratic": (
        lambda: Quadratic(np.stack([np.eye(2)] * 2), with_nan(np.ones((2, 2)), (1, 0))),
        "b is nan at agent 1, entry 0",
    ),
    "asymmetric": (lambda: Quadratic(np.array([[[1.0, 0.5], [0.0, 1.0]]]), np.ones((1, 2))), "not symmetric"),
    "indefinite": (lambda: Quadratic(-np.eye(2)[None], np.ones((1, 2))), "eigenvalue -1"),
    "quadratic shapes": (lambda: Quadratic(np.eye(2), np.ones((1, 2))), "do not fit"),
    "conditioning": (lambda: quadratic(agents=2, dim=2, conditioning=0.5), "conditioning = 0.5"),
    "heterogeneity": (lambda: quadratic(agents=2, dim=2, heterogeneity=-1.0), "heterogeneity = -1.0"),
    "gradient shape": (
        lambda: from_functions(agents=2, dim=2, gradient=lambda i, x: 0.0).gradients(np.ones((2, 2)), 0),
        r"gradient\(0, x\) has shape \(\)",
    ),
    "models": (
        lambda: logistic_functions().gradients(np.ones((4, 3)), 0),
        r"pass an array of shape \(5, 3\)",
    ),
    "restrict": (lambda: logistic_functions().restrict([1, 5]), "there is no agent 5"),
    "restrict none": (lambda: logistic_functions().restrict([]), "pass a list of agents"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_in_one_line_that_says_where(case):
    make, message = BAD[case]
    with pytest.raises(ProblemError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


# What metrics ask for ----------------------------------------------------------------------------------------------


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
