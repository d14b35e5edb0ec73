"""STL-FW: what its construction and its paper promise."""

from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import d3gd
from d3gd.arrays import Array, Floats
from d3gd.errors import D3GDError, GraphError
from d3gd.topologies import stl_fw, stl_fw_objective
from d3gd.topologies.stl_fw import _improved, _objective
from tests.helpers.strategies import examples


def shares(n: int, classes: int, seed: int, alpha: float = 0.3) -> Floats:
    return np.random.default_rng(seed).dirichlet(np.full(classes, alpha), size=n)


def iterates(Pi: Floats, lam: float, count: int) -> list[Floats]:
    centred, W = Pi - Pi.mean(axis=0), np.eye(len(Pi))
    found = [W]
    for _ in range(count):
        found.append(W := _improved(W, centred, lam))
    return found


@given(st.integers(2, 14), st.integers(2, 6), st.integers(0, 10**6), st.sampled_from([0.0, 0.01, 0.1, 2.0]))
@examples(40)
def test_iterates_keep_what_the_paper_promises(n: int, classes: int, seed: int, lam: float) -> None:
    Pi = shares(n, classes, seed)
    spread = np.sum((Pi - Pi.mean(axis=0)) ** 2) / n
    values = []
    for steps, W in enumerate(iterates(Pi, lam, n + 2)):
        np.testing.assert_allclose(W.sum(axis=0), 1, atol=1e-13)
        np.testing.assert_allclose(W.sum(axis=1), 1, atol=1e-13)
        assert W.min() >= 0
        assert np.diag(W).min() >= 2.0**-steps
        others = (W > 0) & ~np.eye(n, dtype=bool)
        assert max(others.sum(axis=0).max(), others.sum(axis=1).max()) <= steps
        values.append(stl_fw_objective(W, Pi, lam=lam))
        assert steps == 0 or values[-1] <= 16 / (steps + 2) * (lam + spread)
    assert values[0] == pytest.approx(spread + lam * (1 - 1 / n), rel=1e-12)
    assert all(later <= earlier * (1 + 1e-12) + 1e-15 for earlier, later in pairwise(values))


@pytest.mark.parametrize("seed", range(5))
def test_a_step_is_the_best_permutation_and_the_best_length(seed: int) -> None:
    n, lam = 5, 0.1
    Pi = shares(n, 3, seed)
    centred = Pi - Pi.mean(axis=0)

    def slope(W: Floats, D: Floats) -> float:
        ahead, behind = _objective(W + 1e-6 * D, centred, lam), _objective(W - 1e-6 * D, centred, lam)
        return (ahead - behind) / 2e-6

    W, V = iterates(Pi, lam, 3)[-2:]
    least = min(slope(W, np.eye(n)[list(p)] - W) for p in permutations(range(n)))
    step = np.max((V - W)[W == 0])  # a new permutation enters with its step as its weight
    P = W + (V - W) / step
    assert set(np.round(P, 9).ravel()) == {0.0, 1.0}
    assert slope(W, P - W) == pytest.approx(least, rel=1e-6)
    assert slope(V, P - W) == pytest.approx(0, abs=1e-8)


@pytest.mark.parametrize("n", [2, 3, 5, 8])
@pytest.mark.parametrize("lam", [0.0, 0.1, 1.0])
def test_one_class_each_gives_averages_of_disjoint_permutations(n: int, lam: float) -> None:
    # With Pi = I the objective is (1 + lam) / n ||W - J||^2: each step adds a permutation of untouched entries.
    for steps, W in enumerate(iterates(np.eye(n), lam, n - 1)):
        np.testing.assert_allclose(W[W > 0], 1 / (steps + 1), rtol=1e-12)
        assert stl_fw_objective(W, np.eye(n), lam=lam) == pytest.approx(
            (1 + lam) * (1 / (steps + 1) - 1 / n), abs=1e-14
        )


def test_a_budget_of_all_others_averages_everyone() -> None:
    graph, weights = stl_fw(np.eye(6), budget=5)
    assert graph.link_count == 30
    np.testing.assert_allclose(weights.toarray(), 1 / 6, rtol=1e-12)


def test_once_nothing_is_to_be_gained_more_budget_changes_nothing() -> None:
    W = iterates(np.eye(4), 0.1, 20)
    assert np.array_equal(W[4], W[20])


@given(st.integers(3, 16), st.integers(2, 5), st.integers(1, 6), st.integers(0, 10**6))
@examples(40)
def test_it_connects_everyone_or_says_which_budget_would(n: int, classes: int, budget: int, seed: int) -> None:
    Pi = shares(n, classes, seed)
    try:
        graph, weights = stl_fw(Pi, budget)
    except GraphError as error:
        enough = int(str(error).split("a budget of ")[1].split()[0])
        assert budget < enough
        with pytest.raises(GraphError, match=f"a budget of {enough} "):
            stl_fw(Pi, enough - 1)
        graph, weights = stl_fw(Pi, enough)
        budget = enough
    assert graph.is_strongly_connected
    assert max(graph.in_degrees.max(), graph.out_degrees.max()) <= budget
    assert weights.data.min() > 0
    np.testing.assert_allclose(weights.sum(axis=0), 1, atol=1e-13)
    d3gd.weights.check(weights, graph)
    W = weights.toarray()
    direct = np.sum((W @ Pi - Pi.mean(axis=0)) ** 2) / n + 0.1 / n * np.sum((W - np.full((n, n), 1 / n)) ** 2)
    assert stl_fw_objective(weights, Pi) == pytest.approx(direct, rel=1e-9, abs=1e-14)


def test_without_lam_agents_whose_classes_balance_stay_apart() -> None:
    pairs = [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]
    with pytest.raises(GraphError, match=r"2 groups that do not hear each other, and 4 more would not.*raise lam = 0"):
        stl_fw(pairs, budget=3, lam=0.0)


def test_methods_run_with_its_links_and_weights() -> None:
    problem = d3gd.problems.digits_classification(agents=10, seed=1)
    graph, weights = stl_fw(problem.class_proportions(), budget=4)
    result = d3gd.run(d3gd.DiDGD(step_size=0.1), graph, problem, weights=weights, iterations=5)
    assert np.array_equal(result.weights.toarray(), weights.toarray())


@pytest.mark.parametrize(
    ("proportions", "arguments", "words"),
    [
        ([[0.5, 0.5], [np.nan, 1.0]], {}, "class proportions of agent 1 hold NaN"),
        ([[0.5, 0.5], [0.5, 0.4]], {}, "class proportions of agent 1 sum to 0.9 .* divide"),
        ([[30, 70], [50, 50]], {}, "class proportions of agent 0 sum to 100"),
        ([[1.5, -0.5], [0.5, 0.5]], {}, "-0.5 at agent 0, class 1"),
        ([0.5, 0.5], {}, "shape .2,.; give one row"),
        ([["a"]], {}, "real numbers"),
        ([[1.0, 0.0], [0.0, 1.0]], {"budget": 0}, "budget = 0: it must be a whole number, 1 or more"),
        ([[1.0, 0.0], [0.0, 1.0]], {"budget": 1.5}, "budget = 1.5"),
        ([[1.0, 0.0], [0.0, 1.0]], {"lam": -1.0}, "lam = -1.0"),
        ([[1.0, 0.0], [0.0, 1.0]], {"lam": np.nan}, "lam = nan"),
    ],
)
def test_bad_input(proportions: Array, arguments: dict[str, float], words: str) -> None:
    with pytest.raises(D3GDError, match=words):
        stl_fw(proportions, **{"budget": 2, **arguments})  # type: ignore[arg-type]


def test_an_objective_needs_weights_and_proportions_of_the_same_agents():
    with pytest.raises(d3gd.errors.ProblemError, match="3 agents and weights of 2"):
        stl_fw_objective(np.eye(2), np.full((3, 2), 0.5))
