"""The study of logistic regression: its loss gap, its sample and its page."""

import numpy as np
import pytest

import d3gd
from studies.logistic import plan
from studies.logistic.__main__ import main
from studies.logistic.plan import LossGap
from studies.logistic.sample import binarized, libsvm
from studies.settings import CENTRAL, DEFAULT

LAMBDA = 1e-2


def regression(seed=0):
    rng = np.random.default_rng(seed)
    parts = [(rng.normal(size=(m, 4)), rng.integers(2, size=m)) for m in (9, 4, 7)]
    return d3gd.problems.softmax_regression(parts, regularization=LAMBDA, classes=2)


def test_the_gap_lies_between_the_bounds_of_strong_convexity():
    problem = regression()
    gap = LossGap(problem, LAMBDA)
    far = np.random.default_rng(1).normal(size=(20, problem.dim))
    values = np.array([gap.loss(row[None]) for row in far])
    np.testing.assert_allclose(np.diff(values), np.diff([problem.loss(row[None]) for row in far]), atol=1e-13)
    squares = (problem.global_gradients(far) ** 2).sum(axis=1)
    largest = max(np.linalg.norm(X, 2) ** 2 / len(X) for X in [problem.X.reshape(-1, 4)]) * 3 + LAMBDA
    assert (values <= squares / (2 * LAMBDA)).all()
    assert (values >= squares / (2 * largest)).all()
    assert gap.within < 1e-15


def test_gradient_descent_closes_the_gap_down_to_the_rounding_of_the_loss():
    problem = LossGap(regression(), LAMBDA)
    x = np.zeros((1, problem.dim))
    for _ in range(4000):
        x -= problem.global_gradients(x)
    assert 0 < problem.loss(x) < 1e-14


def test_of_five_features_each_sample_has_one_and_a_file_brings_them_back(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(50, 3)), np.arange(50) % 2
    features = binarized(X)
    assert (features.reshape(50, 3, 5).sum(axis=2) == 1).all()
    assert (features.sum(axis=0) == 10).all()
    (tmp_path / "file").write_text(libsvm(features, y))
    read, labels = d3gd.data.read_libsvm(tmp_path / "file")
    assert np.array_equal(read, features)
    assert np.array_equal(labels, y)


def test_one_command_makes_the_page_of_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr(plan, "NAMES", ("SGP", DEFAULT, CENTRAL))
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 3)), np.arange(120) % 2
    (tmp_path / "small").write_text(libsvm(binarized(X + y[:, None]), y))
    command = ["--data", str(tmp_path / "small"), "--out", str(tmp_path / "out"), "--about", "Drawn numbers."]
    command += ["--seeds", "2", "--iterations", "30", "--cells", "1", "--jobs", "1"]
    assert main(command) == 0
    page = (tmp_path / "out/logistic.md").read_text()
    assert "Drawn numbers. small: 120 samples of 15 features, 50% of class 1." in page
    for cell in plan.CELLS[:1]:
        assert f"## {str(cell).capitalize()}" in page
        assert f"({cell.folder}.png)" in page
        assert (tmp_path / "out" / f"{cell.folder}.png").exists()
    for name in ("SGP", DEFAULT, CENTRAL):
        assert page.count(f"| {name} |") == 1
    assert page.count(f"{DEFAULT} ends at ") == 1
    runs = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("step-*.json")}
    assert main(command) == 0  # nothing is run again
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("step-*.json")} == runs
    assert (tmp_path / "out/logistic.md").read_text() == page


@pytest.mark.parametrize(
    ("lines", "more", "message"),
    [
        ("+1 1:1\n-1 2:1\n3 1:1\n", [], "has 3 classes; logistic regression needs two"),
        ("+1 1:1\n-1 2:1\n", ["--sha256", "0" * 64], "has the SHA-256"),
        ("a 1:1\n", [], "line 1"),
    ],
)
def test_another_file_is_refused_in_a_line(lines, more, message, tmp_path, capsys):
    (tmp_path / "wrong").write_text(lines)
    assert main(["--data", str(tmp_path / "wrong"), "--out", str(tmp_path / "out"), *more]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
