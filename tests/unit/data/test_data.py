"""Data: the requested distributions, no sample twice, and blocks equal to the whole."""

import builtins

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from d3gd.data import digits, dirichlet_mixture, hold_out, read_table, split_by_label
from d3gd.data.mixture import class_means, dirichlet, mixture_test_set
from d3gd.errors import D3GDError, ProblemError
from tests.helpers.strategies import examples

# The paper's mixture


@given(
    block=st.lists(st.integers(0, 29), min_size=1, max_size=6),
    seed=st.integers(0, 2**32),
    alpha=st.floats(1e-3, 1e3),
)
@examples(25)
def test_a_block_made_alone_is_bitwise_the_same(block, seed, alpha):
    X, y = dirichlet_mixture(agents=30, alpha=alpha, seed=seed, samples=12)
    block_X, block_y = dirichlet_mixture(agents=30, alpha=alpha, seed=seed, samples=12, block=block)
    assert np.array_equal(block_X, X[block])
    assert np.array_equal(block_y, y[block])


def test_features_are_standard_normal_around_their_class_mean():
    X, y = dirichlet_mixture(agents=200, alpha=1.0, seed=4)
    noise = (X - class_means(seed=4, classes=10, features=10)[y]).reshape(-1, 10)
    n = len(noise)
    assert np.abs(noise.mean(axis=0)).max() < 4.5 / np.sqrt(n)
    assert np.abs(np.cov(noise.T) - np.eye(10)).max() < 4.5 * np.sqrt(2.0 / n)


def test_class_means_are_standard_normal():
    means = np.stack([class_means(seed=s, classes=10, features=10) for s in range(200)]).ravel()
    assert abs(means.mean()) < 4.5 / np.sqrt(means.size)
    assert abs(means.var() - 1.0) < 4.5 * np.sqrt(2.0 / means.size)


@pytest.mark.parametrize("alpha", [0.1, 1.0, 100.0])
def test_class_counts_have_the_moments_of_a_dirichlet_multinomial(alpha):
    agents, K, M = 3000, 10, 100
    _, y = dirichlet_mixture(agents=agents, alpha=alpha, seed=1, features=1, samples=M)
    counts = (y[:, :, None] == np.arange(K)).sum(axis=1)
    variance = M * (1 / K) * (1 - 1 / K) * (M + K * alpha) / (1 + K * alpha)
    assert np.abs(counts.mean(axis=0) - M / K).max() < 4.5 * np.sqrt(variance / agents)
    assert counts.var(axis=0).mean() == pytest.approx(variance, rel=0.1)


def test_alpha_may_differ_from_agent_to_agent():
    _, y = dirichlet_mixture(agents=40, alpha=[0.05] * 20 + [1000.0] * 20, seed=0)
    seen = [len(np.unique(labels)) for labels in y]
    assert max(seen[:20]) < min(seen[20:]) == 10


@given(alpha=st.floats(1e-300, 1e12), seed=st.integers(0, 1000))
def test_dirichlet_draws_are_probabilities_for_any_alpha(alpha, seed):
    shares = dirichlet(np.random.default_rng(seed), alpha, 10)
    assert shares.min() >= 0.0
    assert shares.sum() == pytest.approx(1.0)


def test_the_test_set_has_equal_classes_and_the_same_means():
    X, y = mixture_test_set(seed=2, classes=4, features=3, samples=20_000)
    means = np.stack([X[y == c].mean(axis=0) for c in range(4)])
    assert np.abs(np.bincount(y) / len(y) - 0.25).max() < 0.015
    np.testing.assert_allclose(means, class_means(seed=2, classes=4, features=3), atol=0.07)


# Dividing a real set

labelled = st.lists(st.integers(0, 6), min_size=1, max_size=120).map(np.array)


@given(y=labelled, data=st.data(), alpha=st.sampled_from([1e-6, 0.1, 1.0, 100.0]), seed=st.integers(0, 99))
def test_parts_have_equal_size_and_no_sample_twice(y, data, alpha, seed):
    agents = data.draw(st.integers(1, len(y)))
    X = np.arange(len(y))[:, None]
    pieces = split_by_label(X, y, agents=agents, alpha=alpha, seed=seed)
    rows = np.concatenate([X_i[:, 0] for X_i, _ in pieces])
    assert [len(y_i) for _, y_i in pieces] == [len(y) // agents] * agents
    assert len(np.unique(rows)) == len(rows)
    for X_i, y_i in pieces:
        assert np.array_equal(y[X_i[:, 0]], y_i)
        assert np.array_equal(np.sort(y_i), y_i)


def test_small_alpha_gives_few_classes_and_large_alpha_all():
    y = np.repeat(np.arange(10), 200)
    X = np.arange(2000)[:, None]

    def classes_seen(alpha):
        return np.mean([len(np.unique(y_i)) for _, y_i in split_by_label(X, y, agents=20, alpha=alpha)])

    assert classes_seen(0.01) < 3.0
    assert classes_seen(1000.0) > 9.0  # the last agents find some classes used up


def test_the_division_depends_on_the_seed_alone():
    y = np.repeat(np.arange(5), 20)
    X = np.arange(100)[:, None]
    one, same, other = (split_by_label(X, y, agents=4, alpha=0.5, seed=s) for s in (1, 1, 2))
    assert all(np.array_equal(a[0], b[0]) for a, b in zip(one, same, strict=True))
    assert any(not np.array_equal(a[0], b[0]) for a, b in zip(one, other, strict=True))


@given(y=labelled, fraction=st.floats(0.0, 0.99), seed=st.integers(0, 99))
def test_hold_out_is_stratified_and_loses_nothing(y, fraction, seed):
    X = np.arange(len(y))[:, None]
    (train_X, train_y), (test_X, test_y) = hold_out(X, y, fraction=fraction, seed=seed)
    assert np.array_equal(np.sort(np.concatenate([train_X, test_X]).ravel()), np.arange(len(y)))
    assert np.array_equal(y[train_X[:, 0]], train_y)
    assert len(test_y) == round(fraction * len(y))
    for c in np.unique(y):
        assert abs((test_y == c).sum() - fraction * (y == c).sum()) < 1.0 + 1e-9


def test_digits_are_as_scikit_learn_has_them():
    X, y = digits()
    assert (X.shape, y.shape) == ((1797, 65), (1797,))
    assert (X.min(), X.max()) == (0.0, 1.0)
    assert (X[:, -1] == 1.0).all()
    assert np.bincount(y).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert digits(constant=False)[0].shape == (1797, 64)


def test_digits_without_scikit_learn_say_what_to_install(monkeypatch):
    genuine = builtins.__import__

    def refuse(name, *rest):
        if name.startswith("sklearn"):
            raise ImportError(name)
        return genuine(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(D3GDError, match=r"pip install 'd3gd\[data\]'"):
        digits()


# Tables


def test_a_csv_table_is_read(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("height, kind ,width\n1.5,0,2\n\n-3e2,2.0,4\n")
    X, y = read_table(path, label="kind")
    assert X.tolist() == [[1.5, 2.0], [-300.0, 4.0]]
    assert y.tolist() == [0, 2]
    assert y.dtype == np.int64


def test_an_npz_table_is_read(tmp_path):
    path = tmp_path / "table.npz"
    np.savez(path, points=np.arange(6).reshape(3, 2), kind=np.array([0, 1, 1]))
    X, y = read_table(str(path), label="kind")
    assert X.dtype == np.float64
    assert X.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert y.tolist() == [0, 1, 1]


CSV_ERRORS = {
    "a,b\n1,2\n": "has no column 'kind'; it has a, b",
    "": "has no column 'kind'; it has none",
    "kind\n1\n": "needs samples and features",
    "a,kind\n": "has 0 rows",
    "a,kind\n1,0\nnan,1\n": "line 3: a is nan",
    "a,kind\n1,0\n2,inf\n": "line 3: kind is inf",
    "a,kind\n1,0.5\n": "line 2: kind is 0.5",
    "a,kind\n1,-1\n": "line 2: kind is -1",
    "a,kind\n1,cat\n": "line 2: kind is 'cat'",
    "a,kind\n,1\n": "line 2: a is ''",
    "a,kind\n1_0,1\n": "line 2: a is '1_0'",
    "a,a,kind\n1,2,0\n": "two columns 'a'",
    "a,kind\n1,0\n\n1,2,3\n": "line 4: 3 values under 2 columns",
}


@pytest.mark.parametrize("text", CSV_ERRORS)
def test_a_bad_csv_table_is_refused_naming_the_line(tmp_path, text):
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(ProblemError, match=CSV_ERRORS[text]):
        read_table(path, label="kind")


GOOD_X, GOOD_Y = np.ones((3, 2)), np.array([0, 1, 1])
NPZ_ERRORS = {
    "missing": ({"x": GOOD_X}, "has no array 'kind'; it has x"),
    "three arrays": ({"x": GOOD_X, "z": GOOD_X, "kind": GOOD_Y}, "and one with the features"),
    "nan": ({"x": np.where(np.eye(3, 2) > 0, np.nan, 1.0), "kind": GOOD_Y}, r"row 0: x\[0, 0\] is nan"),
    "nan label": ({"x": GOOD_X, "kind": np.array([0.0, np.nan, 1.0])}, "row 1: kind is nan"),
    "fractional label": ({"x": GOOD_X, "kind": np.array([0.0, 1.0, 1.5])}, "row 2: kind is 1.5"),
    "shape": ({"x": GOOD_X, "kind": GOOD_Y[:2]}, r"of shape \(2,\)"),
    "strings": ({"x": GOOD_X, "kind": np.array(["a", "b", "c"])}, "store numbers"),
    "objects": ({"x": np.array([[object()]]), "kind": GOOD_Y}, "cannot be read"),
}


@pytest.mark.parametrize("case", NPZ_ERRORS)
def test_a_bad_npz_table_is_refused(tmp_path, case):
    arrays, message = NPZ_ERRORS[case]
    path = tmp_path / "table.npz"
    np.savez(path, **arrays)
    with pytest.raises(ProblemError, match=message):
        read_table(path, label="kind")


def test_files_that_are_not_tables_are_refused(tmp_path):
    for name, content, message in (
        ("nothing.csv", None, "nothing.csv .*No such file"),
        ("table.xlsx", b"", "give a .csv or .npz file"),
        ("broken.npz", b"not a zip file", "cannot be read"),
        ("latin.csv", b"a,kind\n\xff,1\n", "latin.csv .*UTF-8"),
    ):
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(ProblemError, match=message):
            read_table(tmp_path / name, label="kind")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: split_by_label(np.ones((3, 1)), np.arange(3), agents=4, alpha=1.0),
            "3 samples cannot fill 4",
        ),
        (lambda: split_by_label(np.ones((3, 1)), np.arange(3), agents=2, alpha=0.0), "or more"),
        (lambda: split_by_label(np.ones((3, 1)), np.arange(2), agents=2, alpha=1.0), "one label per sample"),
        (lambda: hold_out(np.ones((3, 1)), np.ones(3), fraction=0.1), "labels of type float64"),
        (lambda: hold_out(np.ones((3, 1)), np.arange(3), fraction=1.0), "fraction = 1.0"),
        (lambda: dirichlet_mixture(agents=3, alpha=np.nan), "alpha = nan"),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(ProblemError, match=message):
        call()


class TestUnequalParts:
    """Parts of given sizes."""

    X, y = np.arange(30.0)[:, None], np.arange(30) % 4

    def test_they_have_their_sizes_and_share_no_sample(self):
        parts = split_by_label(self.X, self.y, agents=4, alpha=0.2, sizes=[1, 20, 3, 6])
        assert [len(labels) for _, labels in parts] == [1, 20, 3, 6]
        assert sorted(np.concatenate([X[:, 0] for X, _ in parts])) == self.X[:, 0].tolist()
        assert all((X[:, 0] % 4 == labels).all() for X, labels in parts)

    def test_equal_sizes_are_the_default(self):
        by_default, given = (split_by_label(self.X, self.y, agents=4, alpha=0.2, sizes=s) for s in (None, [7] * 4))
        assert all(np.array_equal(a[0], b[0]) for a, b in zip(by_default, given, strict=True))

    @pytest.mark.parametrize("sizes", [[1, 2], [1, 2, 3, 0], [1.5, 1, 1, 1], [10, 10, 10, 10], 7, "abcd"])
    def test_sizes_that_do_not_fit_are_refused(self, sizes):
        with pytest.raises(ProblemError, match="sizes"):
            split_by_label(self.X, self.y, agents=4, alpha=0.2, sizes=sizes)
