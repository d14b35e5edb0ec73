"""Errors of problems for invalid arguments."""

import json
from collections.abc import Callable

import numpy as np
import pytest

from d3gd.errors import ProblemError
from d3gd.problems import (
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
from tests.helpers.problems import logistic_functions


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
    "half a batch": (lambda: sigmoid_classification(batch=2.5), r"batch = 2\.5"),
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
    "sigmoid test features": (
        lambda: SigmoidClassification(X, Y, classes=2, test=(np.ones((3, 4)), GOOD[1])),
        "the test set has 4 features",
    ),
    "sigmoid test labels": (
        lambda: SigmoidClassification(X, Y, classes=2, test=GOOD),
        "the label 2; the agents have 2 features and labels from 0 to 1",
    ),
    "labels that number no classes": (
        lambda: softmax_regression([(GOOD[0], np.array([0, 1, 10**9]))]),
        "a label 1000000000 among 3 samples",
    ),
    "half an agent": (lambda: sigmoid_classification(agents=2.5), r"agents = 2\.5"),
    "too many agents": (lambda: sigmoid_classification(agents=2**62), "an array may hold"),
    "too many features": (lambda: sigmoid_classification(features=2**62), "an array may hold"),
    "divided labels that number no classes": (
        lambda: label_skewed_classification(np.ones((9, 2)), np.arange(9) + 10**9, agents=2),
        "label 1000000008 among 9 samples",
    ),
    "a mixture of too many": (lambda: sigmoid_classification(classes=10**9), "classes = 1000000000"),
    "alpha in words": (lambda: sigmoid_classification(alpha="some"), "alpha = 'some'"),
    "conditioning in words": (lambda: quadratic(agents=3, dim=2, conditioning="bad"), "conditioning = 'bad'"),
    "too many classes": (lambda: softmax_regression([GOOD], classes=2**62), "an array may hold"),
    "too long models": (lambda: quadratic(agents=2, dim=2**31), "an array may hold"),
    "no parts": (lambda: softmax_regression([]), r"parts = \[\]"),
    "parts that are no list": (lambda: softmax_regression(lambda agent: GOOD), "parts = <function"),
    "a part that is no pair": (lambda: softmax_regression([GOOD, GOOD[0]]), "the data of agent 1 are a ndarray"),
    "a part of three": (lambda: softmax_regression([(*GOOD, GOOD[1])]), "the data of agent 0 are a tuple of 3"),
    "a test set that is no pair": (lambda: softmax_regression([GOOD], test=[]), "the data of the test set are a list"),
    "ids": (lambda: softmax_regression([GOOD], agent_ids=[1, 2]), "one integer per agent"),
    "nan quadratic": (
        lambda: Quadratic(np.stack([np.eye(2)] * 2), with_nan(np.ones((2, 2)), (1, 0))),
        "b is nan at agent 1, entry 0",
    ),
    "asymmetric": (lambda: Quadratic(np.array([[[1.0, 0.5], [0.0, 1.0]]]), np.ones((1, 2))), "not symmetric"),
    "indefinite": (lambda: Quadratic(-np.eye(2)[None], np.ones((1, 2))), "eigenvalue -1"),
    "quadratic shapes": (lambda: Quadratic(np.eye(2), np.ones((1, 2))), "do not match"),
    "conditioning": (lambda: quadratic(agents=2, dim=2, conditioning=0.5), "conditioning = 0.5"),
    "heterogeneity": (lambda: quadratic(agents=2, dim=2, heterogeneity=-1.0), "heterogeneity = -1.0"),
    "gradient shape": (
        lambda: from_functions(agents=2, dim=2, gradient=lambda i, x: 0.0).gradients(np.ones((2, 2)), 0),
        r"gradient\(0, x\) returned a float.*shape \(2,\)",
    ),
    "models": (
        lambda: logistic_functions().gradients(np.ones((4, 3)), 0),
        r"pass an array of shape \(5, 3\)",
    ),
    "restrict": (lambda: logistic_functions().restrict([1, 5]), "there is no agent 5"),
    "restrict none": (lambda: logistic_functions().restrict([]), "pass a list of agents"),
}


@pytest.mark.parametrize("make", [sigmoid_classification, mixture_classification, digits_classification])
@pytest.mark.parametrize("batch", [0, -1, 2**31, 2**62, 2**63 - 1, 2**63, np.int64(2**63 - 1)])
def test_a_mini_batch_that_no_memory_holds_is_refused(make, batch):
    with pytest.raises(ProblemError, match="batch = "):
        make(agents=3, batch=batch)


def test_numbers_may_be_those_of_numpy():
    plain = {"agents": 3, "alpha": 0.5, "seed": 4, "regularization": 0.5, "batch": 2}
    kinds = {"agents": np.int64, "alpha": np.float32, "seed": np.uint8, "regularization": np.float64, "batch": np.int32}
    numpys = {name: kinds[name](value) for name, value in plain.items()}
    for make in (sigmoid_classification, mixture_classification, digits_classification):
        one = make(**plain)
        for others in (numpys, {name: np.array(value) for name, value in plain.items()}):
            other = make(**others)
            assert one.fingerprint() == other.fingerprint()
            assert json.dumps(one.describe()) == json.dumps(other.describe())
    one, other = quadratic(agents=3, dim=2), quadratic(agents=np.int8(3), dim=np.int64(2), conditioning=np.float32(10))
    assert json.dumps(one.describe()) == json.dumps(other.describe())


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_in_one_line_that_says_where(case):
    make, message = BAD[case]
    with pytest.raises(ProblemError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)
